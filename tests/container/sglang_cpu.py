"""SGLang containers on a CPU."""

from __future__ import annotations

from pathlib import Path

from emulator import EmulatorConfig
from emulator.fleet import container_environment

VERSIONS = ("0.5.23", "0.5.17")
"""The one everything is pinned to, and the one of AWS's public image."""
OTHER = Path(__file__).parents[2] / ".venv" / "sglang-0.5.17"


def settings(version: str = VERSIONS[0], **more: str) -> dict[str, str]:
    """The environment of a container on that SGLang."""
    environment = container_environment(EmulatorConfig(engine="sglang", instances=2), "i-0", 0)
    ours = {
        name: value
        for name, value in environment.items()
        if name.startswith(("SM_SGLANG_", "STICKY_", "SGLANG_", "OMP_", "TORCH", "TOKENIZERS", "HF_", "PYTHONPATH"))
    }
    if version != VERSIONS[0]:
        ours["PYTHONPATH"] = f"{OTHER}:{ours['PYTHONPATH']}"
    return {**ours, **more}
