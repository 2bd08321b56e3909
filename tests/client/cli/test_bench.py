from __future__ import annotations

import json

import pytest
from sagemaker_sticky import cli

from tests.client.house import House


def test_a_bench_tells_what_a_turn_takes(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    load = ["--sessions", "3", "--turns", "2", "--concurrency", "1"]
    assert cli.main(["bench", "--endpoint-name", "house", *load, "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    figures = {row["figure"]: row["value"] for row in report["figures"]}
    assert figures["turns"] == 6
    assert figures["first token, median"] <= figures["whole turn, median"]
    assert figures["cached after the first turn"] > 0
    assert cli.main(["bench", "--endpoint-name", "house", *load]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["turns", "6", "turns"]


def test_a_bench_takes_no_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["bench", "--endpoint-name", "house", "--turns", "0"])

    assert caught.value.code == 2
    assert "should be at least 1, got 0" in capsys.readouterr().err
