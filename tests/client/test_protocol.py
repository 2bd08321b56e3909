import pytest
from sagemaker_sticky_protocol import nearest


@pytest.mark.parametrize(
    ("name", "hint"),
    [("max_instance", " (did you mean 'max_instances'?)"), ("colour", ""), ("", ""), (7, ""), (None, "")],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, hint):
    assert nearest(name, {"max_instances", "min_instances", 8080}) == hint


def test_of_two_that_are_as_near_it_is_always_the_same():
    hint = " (did you mean 'max_b'?)"
    assert nearest("max_c", ["max_a", "max_b"]) == nearest("max_c", ["max_b", "max_a"]) == hint
