"""``python -m container serve`` is what SageMaker runs: the server, started again when it dies.

``python -m container run`` is the server alone.
"""

from __future__ import annotations

import os
import sys

from container import logs
from container.app import serve
from container.config import ContainerConfig
from container.engine import Engine
from container.lifecycle import WRONG_CONFIGURATION
from container.supervise import supervise


def main() -> int:
    """Read the environment and run; gives the exit status."""
    if sys.argv[1:] not in (["serve"], ["run"]):
        sys.stderr.write("usage: python -m container serve|run\n")
        return 2
    logs.configure()
    try:
        config = ContainerConfig.from_env(os.environ)
    except ValueError as problem:
        sys.stderr.write(f"configuration: {problem}\n")
        return WRONG_CONFIGURATION
    if sys.argv[1] == "serve":
        return supervise(max_restarts=config.max_restarts)
    return serve(config, lambda: make_engine(config))


def make_engine(config: ContainerConfig) -> Engine:
    """The engine that the configuration names; SGLang is only imported where it is used."""
    if config.engine == "echo":
        from container.engine_echo import EchoEngine

        return EchoEngine(config)
    from container.engine_sglang import SGLangEngine

    engine: Engine = SGLangEngine(config)
    return engine


if __name__ == "__main__":
    sys.exit(main())
