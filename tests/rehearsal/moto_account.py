"""``python -m tests.rehearsal.moto_account PORT``: an empty AWS account on loopback, until it is ended."""

from __future__ import annotations

import sys

from moto.server import main

from tests.rehearsal import moto_patches, moto_resources

ACCOUNT = "123456789012"
"""moto's account."""

if __name__ == "__main__":
    moto_patches.apply_all()
    assert moto_resources.Alarm.type_name  # importing it is what registers the types
    main(["-H", "127.0.0.1", "-p", sys.argv[1]])
