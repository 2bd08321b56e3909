from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from container.arguments import Machine, check_known, command_line, defaults, first_names, model_path
from container.config import engine_argument

from .sglang_cpu import VERSIONS, settings

GB = 1024**3
A10G = 24 * GB
SEVEN_B = 15 * GB


def machine(gpus: int, *, weights: int | None = SEVEN_B, host: int = 20 * GB, memory: int = A10G) -> Machine:
    return Machine(gpus=[memory] * gpus, free_host_memory=host, weights=weights)


def test_settings_become_flags_as_in_awss_image() -> None:
    arguments = {"context_length": "4096", "trust_remote_code": "true", "disable_radix_cache": "False"}
    assert command_line(arguments) == ["--context-length", "4096", "--trust-remote-code"]


def test_unknown_settings_are_refused_all_at_once_naming_the_nearest() -> None:
    with pytest.raises(ValueError, match="SM_SGLANG_CONTEXT_LENGHT") as problem:
        check_known(["context_lenght", "model_path", "warp_speed"], ["--model-path", "--context-length", "-h"])
    assert "(did you mean 'context_length'?)" in str(problem.value)
    assert "'SM_SGLANG_WARP_SPEED' is not an engine argument" in str(problem.value)
    assert "MODEL_PATH" not in str(problem.value)


def test_the_model_is_what_is_set_else_what_is_mounted(tmp_path: Path) -> None:
    assert model_path({"model_path": "Qwen/Qwen2.5-7B-Instruct"}, tmp_path) == "Qwen/Qwen2.5-7B-Instruct"
    with pytest.raises(ValueError, match=f"'SM_SGLANG_MODEL_PATH' is not set, and {tmp_path} holds none"):
        model_path({}, tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert model_path({}, tmp_path) == str(tmp_path)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (machine(0), {}),
        (machine(1), {}),
        (machine(4), {"dp_size": "4"}),
        (machine(4, weights=30 * GB), {"tp_size": "2", "dp_size": "2"}),
        (machine(4, weights=60 * GB), {"tp_size": "4"}),
        (machine(8, weights=140 * GB, memory=80 * GB), {"tp_size": "4", "dp_size": "2"}),
        (machine(4, weights=None), {"tp_size": "4"}),
    ],
    ids=["cpu", "one gpu", "a copy each", "two gpus a copy", "all for one", "70B on 8", "size unknown"],
)
def test_gpus_are_used_as_the_model_needs_them(given: Machine, expected: dict[str, str]) -> None:
    assert defaults(given, {}) == expected


OPTIONS = """
import argparse, json
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
names = [[each[2:].replace("-", "_") for each in action.option_strings] for action in parser._actions]
print(json.dumps(names[1:]))  # without --help
"""


@pytest.mark.sglang
@pytest.mark.parametrize("version", VERSIONS)
def test_every_second_name_that_sglang_has_for_an_argument_is_known(version: str) -> None:
    environment = {**os.environ, **settings(version)}
    done = subprocess.run([sys.executable, "-c", OPTIONS], env=environment, text=True, capture_output=True, check=True)
    for first, *others in json.loads(done.stdout.splitlines()[-1]):
        assert {engine_argument(each.removeprefix("no_")) for each in others} <= {first}


@pytest.mark.parametrize("name", ["tp", "tp_size", "tensor_parallel_size", "dp", "data_parallel_size", "pp"])
def test_what_is_set_stays_whichever_of_sglangs_names_it_has(name: str) -> None:
    assert defaults(machine(4), first_names({name: "2"})) == {}


def test_kv_goes_to_host_memory_where_it_fits() -> None:
    large = machine(1, host=64 * GB)
    assert defaults(large, {}) == {"enable_hierarchical_cache": "true"}
    assert defaults(large, {"enable_hierarchical_cache": "false"}) == {}
