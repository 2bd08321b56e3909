"""SageMaker's runtime API on a laptop: real container processes behind a sticky router.

An unmodified boto3 talks to it through ``endpoint_url`` (or ``AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME``).
Use it to develop and test; it knows nothing of IAM, and what AWS leaves undocumented it answers as ``Readings`` says.
"""

from emulator.config import EmulatorConfig, Readings
from emulator.server import Emulator, running_emulator

__all__ = ["Emulator", "EmulatorConfig", "Readings", "running_emulator"]
