from __future__ import annotations

import pytest

from emulator.config import EmulatorConfig, Readings


def test_every_problem_is_in_one_message() -> None:
    with pytest.raises(ValueError, match="engine") as caught:
        EmulatorConfig(
            engine="ecko",
            instances=0,
            ttl_minutes=0,
            endpoint_name="a_b",
            part_bytes=(0,),
            readings=Readings(unknown_session="guess"),  # type: ignore[arg-type]
        )
    assert str(caught.value).split("; ") == [
        "'engine' should be one of sglang, echo, got 'ecko'",
        "'instances' should be from 1 to 16, got 0",
        "'ttl_minutes' should be above 0, got 0",
        "'endpoint_name' should be 1 to 63 letters, digits and inner hyphens, got 'a_b'",
        "'part_bytes' should be sizes of at least 1, got (0,)",
        "'unknown_session' should be one of forward, reject, got 'guess'",
    ]


@pytest.mark.parametrize("name", ["a", "a-b", "a--1", "A" * 63])
def test_endpoint_names(name: str) -> None:
    assert EmulatorConfig(endpoint_name=name).endpoint_name == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "a.b", "a" * 64])
def test_endpoint_names_that_aws_refuses(name: str) -> None:
    with pytest.raises(ValueError, match="endpoint_name"):
        EmulatorConfig(endpoint_name=name)


def test_the_first_choice_of_a_reading_is_its_default() -> None:
    default = Readings()
    assert {name: choices[0] for name, choices in Readings.choices().items()} == {
        name: getattr(default, name) for name in Readings.choices()
    }
