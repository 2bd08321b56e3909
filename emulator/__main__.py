"""``python -m emulator``: an endpoint on this machine until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields

from emulator.config import ENGINES, ROUTING_STRATEGIES, EmulatorConfig, Readings
from emulator.container_process import ContainerFailed
from emulator.server import serving


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, serve until SIGINT or SIGTERM, stop everything; gives the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO if options.verbose else logging.WARNING, format="%(name)s: %(message)s")
    try:
        asyncio.run(_serve(_config(options)))
    except ValueError as problem:
        print(f"emulator: {problem}", file=sys.stderr)
        return 2
    except (ContainerFailed, OSError) as failure:
        print(f"emulator: {failure}", file=sys.stderr)
        return 1
    return 0


async def _serve(config: EmulatorConfig) -> None:
    serve = asyncio.create_task(_serve_until_cancelled(config))
    stopping = asyncio.Event()

    def stop() -> None:
        # Once: a second signal would cut short the stopping of the containers, which is bounded anyway.
        if not stopping.is_set():
            stopping.set()
            _report("stopping")
            serve.cancel()

    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    try:
        await serve
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise


async def _serve_until_cancelled(config: EmulatorConfig) -> None:
    _report(f"starting {config.instances} {config.engine} containers")
    async with serving(config, _report) as emulator:
        names = ", ".join(emulator.router.instances)
        print(f"# Endpoint {config.endpoint_name!r} on {names}. Copy these lines; Ctrl-C stops.")
        for name, value in emulator.environment.items():
            print(f"export {name}={shlex.quote(value)}", flush=True)
        await asyncio.Event().wait()


def _report(line: str) -> None:
    print(f"emulator: {line}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    default = {each.name: each.default for each in fields(EmulatorConfig)}
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__)
    parser.add_argument("--instances", type=int, default=default["instances"], metavar="N")
    parser.add_argument("--engine", choices=ENGINES, default=default["engine"])
    parser.add_argument("--port", type=int, default=default["port"], help="of the runtime API; 0 picks a free one")
    parser.add_argument("--endpoint-name", default=default["endpoint_name"], metavar="NAME")
    parser.add_argument("--model", default=default["model"], metavar="PATH", help="default: the model that setup made")
    parser.add_argument("--ttl-minutes", type=float, metavar="X", help="life of a session")
    parser.add_argument("--routing-strategy", choices=ROUTING_STRATEGIES, default=default["routing_strategy"])
    parser.add_argument("--prefix-length", type=int, default=default["prefix_length"], metavar="BYTES")
    parser.add_argument(
        "--prefix-concurrency-threshold", type=int, default=default["prefix_concurrency_threshold"], metavar="N"
    )
    parser.add_argument(
        "--part-bytes", type=int, nargs="+", default=(), metavar="SIZE", help="cut streams into parts of these sizes"
    )
    parser.add_argument("--verbose", action="store_true", help="log a line for each request")
    readings = parser.add_argument_group("what AWS leaves undocumented")
    for name, choices in Readings.choices().items():
        readings.add_argument(f"--{name.replace('_', '-')}", choices=choices, default=choices[0])
    return parser


def _config(options: argparse.Namespace) -> EmulatorConfig:
    values = vars(options)
    readings = Readings(**{name: values[name] for name in Readings.choices()})
    own = {each.name for each in fields(EmulatorConfig)} & values.keys()
    given = {name: values[name] for name in own} | {"part_bytes": tuple(options.part_bytes)}
    return EmulatorConfig(**given, readings=readings)


if __name__ == "__main__":
    sys.exit(main())
