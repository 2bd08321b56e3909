"""SGLang's own arguments, as a deployment sets them: which are not its to set, and the GPUs that they take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from container.config import engine_argument
from infra.secrets import shown

RESERVED = {
    "model_path": "set 'model'",
    "host": "the container listens where SageMaker calls it",
    "port": "the container listens where SageMaker calls it",
    "nnodes": "each instance holds the whole model",
    "node_rank": "each instance holds the whole model",
    "dist_init_addr": "each instance holds the whole model",
}
"""Arguments that are not a user's, by their first names, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How the weights lie on the GPUs of an instance."""

    tensor: int = 1
    """GPUs that share each layer."""
    pipeline: int = 1
    """Groups of those, each with some of the layers."""
    data: int = 1
    """Copies of the whole."""
    chosen: bool = False
    """Whether the arguments say anything of it; else the container decides as it starts."""

    @property
    def gpus_a_copy(self) -> int:
        """GPUs that hold the weights once."""
        return self.tensor * self.pipeline

    @property
    def gpus(self) -> int:
        """All GPUs that are used."""
        return self.gpus_a_copy * self.data

    def __str__(self) -> str:
        """In SGLang's short words."""
        return f"tp {self.tensor} x dp {self.data} x pp {self.pipeline}"


def parallelism(arguments: Mapping[str, str]) -> Parallelism:
    """What the arguments say of GPUs, under whichever of SGLang's names.

    Raises:
        ValueError: a size is no whole number.
    """
    sizes = {}
    for name, value in arguments.items():
        if engine_argument(name) in ("tp_size", "pp_size", "dp_size"):
            if not re.fullmatch(r"[1-9]\d{0,3}", value):
                raise ValueError(f"'engine_arguments': '{name}' should be a whole number of GPUs, got {shown(value)}")
            sizes[engine_argument(name)] = int(value)
    data = sizes.get("dp_size", 1)
    if arguments.get("enable_dp_attention", "").lower() == "true":
        data = 1  # then data parallelism divides the tensor-parallel GPUs instead of repeating them
    return Parallelism(tensor=sizes.get("tp_size", 1), pipeline=sizes.get("pp_size", 1), data=data, chosen=bool(sizes))


def allowed(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments that are a user's to set."""
    return {name: value for name, value in arguments.items() if engine_argument(name) not in RESERVED}


def reserved(arguments: Mapping[str, str]) -> Iterator[str]:
    """The arguments that are not a user's to set."""
    for name in arguments:
        if reason := RESERVED.get(engine_argument(name)):
            yield f"'engine_arguments' should not hold '{name}': {reason}"
