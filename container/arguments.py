"""SGLang's command line: from ``SM_SGLANG_*`` settings, and from the GPUs that are there. Pure; no SGLang is imported.

The settings become flags exactly as in AWS's SGLang image: underscores become hyphens, ``true`` a bare flag, ``false``
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from container.config import ENGINE_ARGUMENT_PREFIX, engine_argument
from container.errors import nearest

MODEL_DIRECTORY = Path("/opt/ml/model")
"""Where SageMaker mounts model data."""
_WEIGHTS_SHARE = 0.7
"""Most of a GPU's memory that weights may take, so that KV has room."""
_HOST_SHARE = 0.5
"""Most of the free host memory that KV may take."""
_HOST_RATIO = 2.0
"""SGLang's own default for host KV over GPU KV (``--hicache-ratio``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What decides the defaults. Sizes in bytes."""

    gpus: Sequence[int]
    """Memory of each GPU."""
    free_host_memory: int
    weights: int | None
    """Size of the model; None where it is not known before the start."""


def model_path(arguments: Mapping[str, str], mounted: Path = MODEL_DIRECTORY) -> str:
    """The model to load: what is set, else what SageMaker mounted.

    Raises:
        ValueError: neither is there.
    """
    if "model_path" in arguments:
        return arguments["model_path"]
    if (mounted / "config.json").exists():
        return str(mounted)
    raise ValueError(f"no model: '{ENGINE_ARGUMENT_PREFIX}MODEL_PATH' is not set, and {mounted} holds none")


def first_names(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments under the first of SGLang's names for each, by which this module knows them."""
    return {engine_argument(name): value for name, value in arguments.items()}


def command_line(arguments: Mapping[str, str]) -> list[str]:
    """Flags for ``arguments``, as AWS's image makes them."""
    return list(_flags(arguments))


def _flags(arguments: Mapping[str, str]) -> Iterator[str]:
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if value.lower() == "true":
            yield flag
        elif value.lower() != "false":
            yield flag
            yield value


def check_known(arguments: Collection[str], options: Collection[str]) -> None:
    """Refuse settings for which SGLang has no option.

    Args:
        arguments: names as in the settings, lower case with underscores.
        options: SGLang's option strings, such as ``--model-path``.

    Raises:
        ValueError: with every unknown one, and the nearest known.
    """
    known = {each.lstrip("-").replace("-", "_") for each in options if each.startswith("--")}
    unknown = [
        f"'{ENGINE_ARGUMENT_PREFIX}{name.upper()}' is not an engine argument{nearest(name, known)}"
        for name in arguments
        if name not in known
    ]
    if unknown:
        raise ValueError("; ".join(unknown))


def defaults(machine: Machine, given: Mapping[str, str]) -> dict[str, str]:
    """Arguments that suit the machine, where ``given``, by first names, leaves them open.

    As few GPUs a copy of the model as hold it (tensor parallel), as many copies as there is room for (data parallel).
    The share of a GPU's memory is left to SGLang, which derives it from the GPU. KV also goes to host memory where that
    is large enough for it: sessions that idle live or die by it.
    """
    if not machine.gpus:
        return {}
    chosen: dict[str, str] = {}
    data = int(given.get("dp_size", 1))
    if not given.keys() & {"tp_size", "dp_size", "pp_size"}:
        tensor = _gpus_a_copy(machine)
        data = len(machine.gpus) // tensor
        chosen |= {name: str(size) for name, size in (("tp_size", tensor), ("dp_size", data)) if size > 1}
    if "enable_hierarchical_cache" not in given and _host_holds_kv(machine, copies=data):
        chosen["enable_hierarchical_cache"] = "true"
    return chosen


def _gpus_a_copy(machine: Machine) -> int:
    count = len(machine.gpus)
    sizes = [size for size in (1, 2, 4, 8, 16) if size <= count]
    if machine.weights is None:
        return sizes[-1]
    room = min(machine.gpus) * _WEIGHTS_SHARE
    return next((size for size in sizes if machine.weights <= size * room), sizes[-1])


def _host_holds_kv(machine: Machine, *, copies: int) -> bool:
    weights = (machine.weights or 0) * copies
    return _HOST_RATIO * max(0, sum(machine.gpus) - weights) <= _HOST_SHARE * machine.free_host_memory
