"""Settings of the container: one frozen value, made from the environment at start and passed in.

``infra`` checks the same class at synth and ships it as environment variables, so ``from_env(c.to_env()) == c``.
``SM_SGLANG_*`` become engine arguments exactly as in AWS's own SGLang image; ``SES_TTL_MIN`` is the 2025 sample's name;
``SAGEMAKER_BIND_TO_PORT`` is SageMaker's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sagemaker_sticky_protocol import nearest

CHOICES = {"engine": ("sglang", "echo"), "session_journal": ("on", "off")}
_SECRET_ARN = re.compile(r"arn:[\w-]+:secretsmanager:[\w-]+:\d{12}:secret:[\w/+=.@-]+")
ENGINE_ARGUMENT_PREFIX = "SM_SGLANG_"
_ENGINE_ARGUMENT = re.compile(r"[a-z][a-z0-9_]*")
ENGINE_ARGUMENT_ALIASES = {
    "attention_context_parallel_size": "attn_cp_size",
    "attention_data_parallel_size": "attn_dp_size",
    "context_bucket": "cuda_graph_prefill_max_context",
    "data_parallel_size": "dp_size",
    "decode_context_parallel_size": "dcp_size",
    "dp": "dp_size",
    "enable_hicache": "enable_hierarchical_cache",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "grpc_http_sidecar_port": "smg_http_sidecar_port",
    "hierarchical_sparse_attention_extra_config": "hisparse_config",
    "model": "model_path",
    "moe_data_parallel_size": "moe_dp_size",
    "nccl_init_addr": "dist_init_addr",
    "pipeline_parallel_size": "pp_size",
    "pp": "pp_size",
    "speculative_draft_model": "speculative_draft_model_path",
    "tensor_parallel_size": "tp_size",
    "tp": "tp_size",
}
"""SGLang's second names for an argument. Source: ``ServerArgs.add_cli_args``; ``tp``, ``dp`` and ``pp`` are the short
forms of its documents, which its command line takes for the beginnings of the full names."""
LIMITS: dict[str, tuple[float, float]] = {
    "port": (1, 65535),
    "session_ttl_minutes": (0.01, 24 * 60),
    "max_sessions": (0, 1_000_000),
    "max_restarts": (0, 1000),
    "session_queue": (0, 1000),
    "turn_timeout_seconds": (1, 3600),
    "drain_seconds": (0, 28),
    "echo_token_seconds": (0, 60),
}
"""Lowest and highest value allowed, by field. Draining ends before SageMaker's SIGKILL, 30 s after its SIGTERM."""


def env(name: str, default: Any) -> Any:
    """A field with the environment variable that carries it."""
    return field(default=default, metadata={"env": name})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerConfig:
    """What one container process needs to know.

    Raises:
        ValueError: every problem found, in one message.
    """

    engine: str = env("STICKY_ENGINE", "sglang")
    """``sglang``, or ``echo``: a stand-in that answers at once and imitates a prefix cache."""
    host: str = env("STICKY_HOST", "0.0.0.0")
    """Address to listen on."""
    port: int = env("SAGEMAKER_BIND_TO_PORT", 8080)
    """TCP port to listen on."""
    instance: str = env("STICKY_INSTANCE", "")
    """Name of this instance in ``served_by``; empty: the host's name."""
    session_ttl_minutes: float = env("SES_TTL_MIN", 30.0)
    """Life of a session from its open, in minutes. It is not renewed: SageMaker's router keeps the first expiry."""
    max_sessions: int = env("MAX_SESSIONS", 0)
    """Open sessions at once; 0: one for every 256 tokens of the engine's KV cache, and 16 at least. More can be open
    than fit the cache, as the KV of idle ones is evicted and computed again when they speak."""
    session_queue: int = env("SESSION_QUEUE", 4)
    """Turns of one session that may wait for the running one."""
    turn_timeout_seconds: float = env("TURN_TIMEOUT_S", 480.0)
    """Longest generation, in seconds; SageMaker ends a response stream after about 8 minutes anyway."""
    session_journal: str = env("SESSION_JOURNAL", "on")
    """``on``: transcripts are kept on local disk, so that sessions go on after a restart of this process; ``off``."""
    session_journal_directory: str = env("SESSION_JOURNAL_DIR", "/tmp/sticky-sessions")
    """Where, one file a session, readable by this user only. One process a folder."""
    max_restarts: int = env("MAX_RESTARTS", 5)
    """How often a server that died is started again before the container ends."""
    hf_token_secret_arn: str = env("HF_TOKEN_SECRET_ARN", "")
    """Secret in Secrets Manager whose string is the Hugging Face token; empty: no token."""
    metrics_namespace: str = env("STICKY_METRICS_NAMESPACE", "")
    """CloudWatch namespace of the metrics written to stdout (EMF); empty: none are written."""
    drain_seconds: float = env("DRAIN_S", 25.0)
    """How long running turns may go on after SIGTERM, in seconds."""
    echo_token_seconds: float = env("STICKY_ECHO_TOKEN_S", 0.0)
    """Time that the echo engine takes for each token of an answer, in seconds."""
    engine_arguments: Mapping[str, str] = field(default_factory=dict)
    """SGLang's own arguments, by name in lower case with underscores (``model_path``, ``context_length``)."""

    def __post_init__(self) -> None:
        """Check every field."""
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems))

    def to_env(self) -> dict[str, str]:
        """The environment variables that give this configuration; defaults are left out."""
        variables = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if "env" in each.metadata and value != each.default:
                variables[each.metadata["env"]] = str(value)
        for name, value in self.engine_arguments.items():
            variables[ENGINE_ARGUMENT_PREFIX + name.upper()] = value
        return variables

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> ContainerConfig:
        """Read the variables that this class knows; others are none of its business.

        Raises:
            ValueError: every problem found, naming variables.
        """
        values: dict[str, Any] = {}
        problems = []
        for each in fields(cls):
            variable = each.metadata.get("env")
            if variable is None or environ.get(variable, "") == "":
                continue
            try:
                values[each.name] = _read(environ[variable], each.default)
            except ValueError:
                kind = "a whole number" if isinstance(each.default, int) else "a number"
                problems.append(f"'{variable}' should be {kind}, got {environ[variable]!r}")
        if problems:
            raise ValueError("; ".join(problems))
        values["engine_arguments"] = {
            name.removeprefix(ENGINE_ARGUMENT_PREFIX).lower(): value
            for name, value in sorted(environ.items())
            if name.startswith(ENGINE_ARGUMENT_PREFIX)
        }
        return cls(**values)


def engine_argument(name: str) -> str:
    """The first of SGLang's names for an argument, in its spelling here, whichever of them ``name`` is in any case."""
    spelled = name.lower().replace("-", "_").strip("_")
    return ENGINE_ARGUMENT_ALIASES.get(spelled, spelled)


def _read(text: str, default: Any) -> Any:
    """``text`` as the type of ``default``."""
    kind: type[Any] = type(default)
    return kind(text)


def _problems(config: ContainerConfig) -> Iterable[str]:
    for name, allowed in CHOICES.items():
        value = getattr(config, name)
        if value not in allowed:
            yield f"'{name}' should be one of {', '.join(allowed)}, got {value!r}{nearest(value, allowed)}"
    if config.hf_token_secret_arn and not _SECRET_ARN.fullmatch(config.hf_token_secret_arn):
        # The value is not shown: it may be the token itself.
        yield "'hf_token_secret_arn' should be the ARN of a Secrets Manager secret, got something else"
    yield from _argument_names(config.engine_arguments)
    for name, (lowest, highest) in LIMITS.items():
        value = getattr(config, name)
        if not lowest <= value <= highest:
            yield f"'{name}' should be from {lowest:,} to {highest:,}, got {value:,}"


def _argument_names(names: Iterable[str]) -> Iterable[str]:
    """What is wrong with the names of engine arguments: SGLang would take the last of two for one."""
    seen: dict[str, str] = {}
    for name in names:
        first = engine_argument(name)
        if not _ENGINE_ARGUMENT.fullmatch(name):
            yield f"'engine_arguments' should have names in lower case such as 'context_length', got '{name}'"
        elif first in seen:
            yield f"'engine_arguments' should name an argument once, got '{seen[first]}' and '{name}' for '{first}'"
        seen[first] = name
