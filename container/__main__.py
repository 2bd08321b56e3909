"""``python -m container serve``: what SageMaker runs."""

from __future__ import annotations

import logging
import os
import sys

from container.app import serve
from container.config import ContainerConfig
from container.engine import Engine


def main() -> int:
    """Read the environment, choose the engine, serve; gives the exit status."""
    if sys.argv[1:] != ["serve"]:
        print("usage: python -m container serve", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        config = ContainerConfig.from_env(os.environ)
        return serve(config, lambda: make_engine(config))
    except ValueError as problem:
        print(f"configuration: {problem}", file=sys.stderr)
        return 2


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
