from __future__ import annotations

import sys

import pytest
from sagemaker_sticky import cli

from tests.client.house import House


@pytest.mark.parametrize("with_rich", [True, False])
def test_a_terminal_has_colours_where_rich_is_there(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], with_rich: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    if not with_rich:
        for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "rich", None)

    assert cli.main(["smoke", "--endpoint-name", "house"]) == 0

    out = capsys.readouterr().out
    assert ("\x1b[32mpass" in out) is with_rich
    assert "session_closes" in out
