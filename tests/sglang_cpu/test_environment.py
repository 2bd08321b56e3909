from __future__ import annotations

import os
from pathlib import Path

import pytest

from sglang_cpu.environment import MODEL, SHIM, sglang_environment


def test_a_model_is_a_folder_a_name_or_what_setup_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    folder, name, default = (sglang_environment(model=each, processes=2) for each in ("model", "org/name", ""))
    assert folder["SM_SGLANG_MODEL_PATH"] == str(tmp_path / "model")
    assert name["SM_SGLANG_MODEL_PATH"] == "org/name"
    assert Path(default["SM_SGLANG_MODEL_PATH"]).resolve() == MODEL.resolve()


def test_containers_share_the_cores() -> None:
    alone, of_many = (int(sglang_environment(processes=each)["OMP_NUM_THREADS"]) for each in (1, 1000))
    assert (alone, of_many) == (os.cpu_count(), 1)


def test_the_stand_ins_are_where_a_container_looks_for_them() -> None:
    assert {"sgl_kernel", "torchvision", "triton"} <= {each.name for each in SHIM.iterdir()}
