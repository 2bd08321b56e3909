"""``python -m sagemaker_sticky``: the command ``sticky``."""

import sys

from .cli import main

sys.exit(main())
