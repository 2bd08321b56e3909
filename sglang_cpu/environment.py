"""What SGLang takes to run on a CPU: stand-ins on the path of Python, and settings that suit a laptop."""

from __future__ import annotations

import os
from pathlib import Path

SHIM = Path(__file__).with_name("shim")
"""Folder of the stand-ins, first on the path of Python."""
MODEL = Path(__file__).parents[1] / ".venv" / "models" / "smollm2-135m-instruct"
"""The model that setup makes."""


def sglang_environment(*, model: str = "", processes: int) -> dict[str, str]:
    """The variables of a container with SGLang on this machine's CPU; :data:`SHIM` has to lead its ``PYTHONPATH``.

    Args:
        model: Folder, or name in the Hugging Face cache; empty: :data:`MODEL`.
        processes: How many such containers share the machine.
    """
    model = model or str(MODEL)
    return {
        "SM_SGLANG_MODEL_PATH": str(Path(model).resolve()) if Path(model).exists() else model,
        "SM_SGLANG_DEVICE": "cpu",
        # In bfloat16 the answer at a near tie depends on how much of the prompt came from the cache.
        "SM_SGLANG_DTYPE": "float32",
        "SM_SGLANG_LOG_LEVEL": "error",
        "SM_SGLANG_SLEEP_ON_IDLE": "true",  # else an idle scheduler takes a core from the other container
        # SGLang would size its cache by the machine's whole memory, for each container.
        "SM_SGLANG_MAX_TOTAL_TOKENS": "16384",
        "SM_SGLANG_MAX_RUNNING_REQUESTS": "8",
        "SGLANG_USE_CPU_ENGINE": "1",
        "TORCHDYNAMO_DISABLE": "1",  # else repetition_penalty hangs
        "OMP_WAIT_POLICY": "passive",  # else idle threads spin and starve the other container
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes)),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
