"""Schedules as EventBridge and Application Auto Scaling take them."""

import pytest

from infra.context import read_config
from infra.schedule import MOST_SCHEDULES, Schedule


def refusal(**settings) -> str:
    with pytest.raises(ValueError, match="should") as caught:
        read_config(settings)
    return str(caught.value)


def problem(**fields) -> str:
    with pytest.raises(ValueError, match="should") as caught:
        Schedule(**{"cron": "0 8 ? * MON-FRI *", "min_instances": 2, "max_instances": 6, **fields})
    return str(caught.value)


@pytest.mark.parametrize(
    "cron",
    [
        "0 8 ? * MON-FRI *",
        "30 6 ? * MON *",
        "0/5 8-17 ? * MON-FRI *",
        "*/15 * * * ? *",
        "0 18 ? * 2-6 2026-2030",
        "0 10 L * ? *",
        "0 10 LW * ? *",
        "0 10 15W * ? *",
        "15 12 * JAN-MAR,12 ? *",
        "0 9 ? * 2#1 *",
        "0 9 ? * FRI#4 *",
        "0 9 ? * 6L *",
        "0 9 ? * mon *",
        "10,20,30-40 0 1,15 1/2 ? 2026/2",
    ],
)
def test_what_eventbridge_takes_is_taken(cron):
    assert Schedule(cron=cron, min_instances=1, max_instances=2).cron == cron


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("a b c d e f", "'cron': minutes should be of 0-59, got 'a'"),
        ("cron(0 8 ? * MON-FRI *)", "'cron' should be six fields such as '0 8 ? * MON-FRI *', without cron(), got"),
        ("0 8 ? * MON-FRI", "'cron' should be six fields"),
        ("0  8 ? * MON-FRI *", "'cron' should be six fields"),
        ("", "'cron' should be six fields"),
        ("0 8 * * MON-FRI *", "'cron' should have ? for one of day-of-month and day-of-week, got '0 8 * * MON-FRI *'"),
        ("0 8 ? * ? *", "'cron' should have ? for one of"),
        ("60 8 ? * MON *", "minutes should be of 0-59, got '60'"),
        ("? 8 ? * MON *", "minutes should be of 0-59, got '?'"),
        ("0 24 ? * MON *", "hours should be of 0-23, got '24'"),
        ("0 17-8 ? * MON *", "hours should be of 0-23, got '17-8'"),
        ("0 1-2-3 ? * MON *", "hours should be of 0-23, got '1-2-3'"),
        ("0 8 32 * ? *", "day-of-month should be of 1-31, got '32'"),
        ("0 8 0 * ? *", "day-of-month should be of 1-31, got '0'"),
        ("0 8 32W * ? *", "day-of-month should be of 1-31, got '32W'"),
        ("0 8 1,L * ? *", "day-of-month should be of 1-31, got '1,L'"),
        ("0 8 ? 13 MON *", "month should be of 1-12 or JAN-DEC, got '13'"),
        ("0 8 ? JANUARY MON *", "month should be of 1-12 or JAN-DEC, got 'JANUARY'"),
        ("0 8 ? * 0 *", "day-of-week should be of 1-7 or SUN-SAT, got '0'"),
        ("0 8 ? * FRI-MON *", "day-of-week should be of 1-7 or SUN-SAT, got 'FRI-MON'"),
        ("0 8 ? * MON#6 *", "day-of-week should be of 1-7 or SUN-SAT, got 'MON#6'"),
        ("0 8 ? * MON/2 *", "day-of-week should be of 1-7 or SUN-SAT, got 'MON/2'"),
        ("0 8 ? * MON 1969", "year should be of 1970-2199, got '1969'"),
        ("0 8 ? * MON 2200", "year should be of 1970-2199, got '2200'"),
        ("*/0 8 ? * MON *", "minutes should be of 0-59, got '*/0'"),
        ("*/60 8 ? * MON *", "minutes should be of 0-59, got '*/60'"),
        ("0/ 8 ? * MON *", "minutes should be of 0-59, got '0/'"),
        ("0, 8 ? * MON *", "minutes should be of 0-59, got '0,'"),
        ("-1 8 ? * MON *", "minutes should be of 0-59, got '-1'"),
        ("\u0661 8 ? * MON *", "minutes should be of 0-59, got"),
    ],
)
def test_what_eventbridge_refuses_is_refused(cron, message):
    assert message in problem(cron=cron)


@pytest.mark.parametrize("timezone", ["Mars/Base", "Europe", "europe/berlin", "localtime", "Factory", "../UTC", ""])
def test_a_zone_that_iana_does_not_know_is_refused(timezone):
    assert f"'timezone' should be a zone of IANA such as Europe/Berlin, got {timezone!r}" in problem(timezone=timezone)


def test_the_nearest_zone_is_named():
    assert "(did you mean 'Europe/Berlin'?)" in problem(timezone="Europe/Berln")


@pytest.mark.parametrize(("low", "high"), [(0, 2), (3, 2), (1, 99_999_999), (-1, 1)])
def test_bounds_agree_with_each_other_and_with_those_of_an_endpoint(low, high):
    bounds = "at least 1, at most 'max_instances' and that at most 10000"
    assert f"'min_instances' should be {bounds}, got {low} and {high}" in problem(min_instances=low, max_instances=high)


def test_all_that_is_wrong_with_a_schedule_is_said_under_its_field():
    given = {"cron": "x", "min_instances": 3, "max_instances": 2, "timezone": "Mars"}
    message = refusal(schedules=[given])
    assert message.startswith("'schedules': 'min_instances' should be")
    assert message.count(" should be ") == 3


AT_EIGHT = {"cron": "0 8 ? * MON-FRI *", "min_instances": 2, "max_instances": 6}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"schedules": [AT_EIGHT], "min_instances": 2, "max_instances": 2},
            "'schedules' should be empty where nothing scales",
        ),
        (
            {"schedules": [AT_EIGHT, {**AT_EIGHT, "cron": "0 8 ? * mon-fri *", "max_instances": 8}]},
            "'schedules' should name a moment once, got '0 8 ? * MON-FRI *' in UTC more than once",
        ),
        (
            {"schedules": [{**AT_EIGHT, "cron": f"{n % 60} {n // 60} ? * 1 *"} for n in range(MOST_SCHEDULES + 1)]},
            "'schedules' should be at most 200, got 201",
        ),
        (
            {"schedules": [{**AT_EIGHT, "min_instances": 1}], "routing_strategy": "PREFIX_AWARE", "min_instances": 2},
            "'schedules' should leave at least 2 instances with 'routing_strategy' PREFIX_AWARE, got 1",
        ),
    ],
)
def test_schedules_agree_with_each_other_and_with_the_deployment(settings, message):
    assert message in refusal(**settings)


def test_the_same_moment_in_two_zones_is_two():
    read_config({"schedules": [AT_EIGHT, {**AT_EIGHT, "timezone": "Europe/Berlin"}]})
