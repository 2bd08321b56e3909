"""One SGLang everywhere: the image, the CPU set and what the documentation names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_image_and_the_cpu_set_have_the_same_sglang() -> None:
    dockerfile = (ROOT / "container" / "Dockerfile").read_text()
    (image,) = re.findall(r"^ARG BASE_IMAGE=lmsysorg/sglang:v([\d.]+)$", dockerfile, re.M)
    (wheel,) = re.findall(r"^sglang==([\d.]+)$", (ROOT / "requirements-cpu.txt").read_text(), re.M)
    assert image == wheel


def test_what_the_image_adds_has_the_versions_of_the_cpu_set() -> None:
    pins = dict(
        line.split("#")[0].strip().split("==")
        for name in ("requirements-cpu.txt", "requirements.txt")
        for line in (ROOT / name).read_text().splitlines()
        if "==" in line.split("#")[0]
    )
    for line in (ROOT / "container" / "requirements.txt").read_text().splitlines():
        name, _, version = line.split("#")[0].strip().partition("==")
        if name in pins:
            assert version == pins[name], name
