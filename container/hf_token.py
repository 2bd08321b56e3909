"""The Hugging Face token of gated models, read from Secrets Manager at start.

The one module of the container that uses boto3, imported only where a secret is configured.
"""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError, ClientError


def read_token(secret_arn: str) -> str:
    """The secret's string.

    Raises:
        RuntimeError: it cannot be read; the message names the secret, never its content.
    """
    region = secret_arn.split(":")[3]
    try:
        secret = boto3.client("secretsmanager", region_name=region).get_secret_value(SecretId=secret_arn)
    except (BotoCoreError, ClientError) as problem:
        raise RuntimeError(f"the Hugging Face token in {secret_arn} cannot be read: {problem}") from None
    token: str = secret.get("SecretString", "")
    if not token:
        raise RuntimeError(f"the secret {secret_arn} has no string")
    return token.strip()
