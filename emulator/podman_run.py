"""An instance that is the image itself, started as SageMaker starts it: ``run IMAGE serve``, with its environment.

The fleet runs ``python -m emulator.podman_run IMAGE NAME=VALUE...`` like any container process. This becomes ``podman
run``, which passes SIGTERM on to the container and ends with it. A SIGKILL it cannot pass on: then the container is
left to ``podman rm --force``; its label is ``sagemaker-sticky``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

LABEL = "sagemaker-sticky"
CONTAINER_PORT = 8080
"""Where SageMaker expects a container to listen."""


def command(image: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What the fleet runs for each instance."""
    settings = (f"{name}={value}" for name, value in sorted(environment.items()))
    return (sys.executable, "-m", "emulator.podman_run", image, *settings)


def arguments(image: str, settings: list[str], *, name: str, port: int) -> list[str]:
    """``podman run`` for one instance.

    Args:
        image: As the Model names it; pulled again, as on a fresh instance.
        settings: ``NAME=VALUE`` of the Model's environment, which is all that the container gets.
        name: Of the instance; the container takes it for its host's.
        port: On loopback, that leads to the container's.
    """
    variables = [part for each in settings for part in ("--env", each)]
    publish = f"127.0.0.1:{port}:{CONTAINER_PORT}"
    run = ["podman", "run", "--rm", "--pull", "always", "--label", LABEL, "--name", f"{LABEL}-{name}-{port}"]
    return [*run, "--hostname", name, "--publish", publish, *variables, image, "serve"]


def main(image: str, settings: list[str]) -> None:
    """Become ``podman run``; the fleet tells name and port as it tells any container."""
    port, name = int(os.environ["SAGEMAKER_BIND_TO_PORT"]), os.environ["STICKY_INSTANCE"]
    os.execvp("podman", arguments(image, settings, name=name, port=port))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
