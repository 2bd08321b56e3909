"""Make a 16 MB Llama with random weights: many times faster than a real model, and what it says means nothing.

Usage: ``python -m sglang_cpu.make_tiny LIKE TARGET``; it has the tokenizer and chat template of the model in LIKE.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def make_tiny(like: Path, target: Path) -> None:
    """Make it in a process of its own, so that torch stays out of this one.

    Raises:
        CalledProcessError: it could not be made.
    """
    command = [sys.executable, "-W", "ignore", "-m", "sglang_cpu.make_tiny", str(like), str(target)]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True)


def main(like: str, target: str) -> None:
    """Write the model to the folder ``target``."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(like)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
