from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
import sagemaker_sticky
from sagemaker_sticky import InvalidRequest, StickyError, StreamInterrupted, errors

ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, StickyError)]


def test_the_tree_drawn_is_the_tree() -> None:
    drawn: dict[str, str | None] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^    ([│├└─ ]*)(\w+)  ", errors.__doc__ or "", re.MULTILINE):
        path[len(indent) // 4 :] = [name]
        drawn[name] = path[-2] if len(path) > 1 else None

    assert drawn == {each.__name__: each.__bases__[0].__name__ if each is not StickyError else None for each in ERRORS}


def test_every_error_is_public() -> None:
    assert {each.__name__ for each in ERRORS} <= set(sagemaker_sticky.__all__)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_survives_pickling(kind: type[StickyError]) -> None:
    copy = pickle.loads(pickle.dumps(kind("why", code="c", status=400, request_id="r")))

    assert (type(copy), str(copy), copy.code, copy.status, copy.request_id) == (kind, "why", "c", 400, "r")


def test_a_stream_error_keeps_its_text_through_pickling() -> None:
    assert pickle.loads(pickle.dumps(StreamInterrupted("why", text="so far"))).text == "so far"


def test_a_wrong_request_is_a_value_error() -> None:
    assert issubclass(InvalidRequest, ValueError)


def test_an_error_without_code_is_named_after_its_class() -> None:
    assert errors.SessionClosed("why").code == "SessionClosed"


def test_the_readme_draws_the_same_tree() -> None:
    drawing = [line[4:] for line in (errors.__doc__ or "").splitlines() if "──" in line]

    assert "\n".join(drawing) in (Path(__file__).parents[2] / "client" / "README.md").read_text()
