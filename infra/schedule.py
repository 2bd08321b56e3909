"""Other bounds for autoscaling at set times, checked as Application Auto Scaling and EventBridge check them.

Source: "Cron expressions" of the EventBridge User Guide, to which the guide of Application Auto Scaling points. Not
checked, because it takes a calendar: whether a day exists in a month or a year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import available_timezones

from sagemaker_sticky_protocol import nearest

from infra.secrets import shown

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
NO_ZONES = {"Factory", "localtime"}
"""What stands among the zones of a system and is none of IANA's."""
MOST_INSTANCES = 10_000
MOST_SCHEDULES = 200
"""Scheduled actions that Application Auto Scaling keeps for one target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One of the six fields of a cron expression.

    Attributes:
        name: In AWS's words.
        lowest: The lowest number.
        highest: The highest number.
        names: Words for the numbers from ``lowest`` on.
        steps: Whether a value may have a step after a slash.
        special: Regular expression of what else may stand there, alone.
    """

    name: str
    lowest: int
    highest: int
    names: Sequence[str] = ()
    steps: bool = True
    special: str = r"(?!)"

    def problem(self, text: str) -> str | None:
        """What is wrong with the field, or None."""
        if re.fullmatch(self.special, text, re.IGNORECASE):
            return None
        if all(self._is_item(item) for item in text.split(",")):
            return None
        words = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{self.name} should be of {self.lowest}-{self.highest}{words}, got {shown(text)}"

    def _is_item(self, text: str) -> bool:
        """Whether this is ``*``, a value or a range, with or without a step."""
        values, slash, step = text.partition("/")
        if slash and not (self.steps and re.fullmatch(r"[0-9]{1,4}", step) and 1 <= int(step) <= self.highest):
            return False
        if values == "*":
            return True
        numbers = [self._number(each) for each in values.split("-")]
        first, last = numbers[0], numbers[-1]
        return len(numbers) <= 2 and first is not None and last is not None and first <= last

    def _number(self, text: str) -> int | None:
        if text.upper() in self.names:
            return self.lowest + self.names.index(text.upper())
        number = int(text) if re.fullmatch(r"[0-9]{1,4}", text) else -1
        return number if self.lowest <= number <= self.highest else None


_DAY = r"([1-9]|[12]\d|3[01])W"
_WEEKDAY = rf"([1-7]|{'|'.join(WEEKDAYS)})(L|#[1-5])"
FIELDS = (
    Field(name="minutes", lowest=0, highest=59),
    Field(name="hours", lowest=0, highest=23),
    Field(name="day-of-month", lowest=1, highest=31, special=rf"\?|L|LW|{_DAY}"),
    Field(name="month", lowest=1, highest=12, names=MONTHS),
    Field(
        name="day-of-week",
        lowest=1,
        highest=7,
        names=WEEKDAYS,
        steps=False,
        special=rf"\?|L|{_WEEKDAY}",
    ),
    Field(name="year", lowest=1970, highest=2199),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """From a moment on, other bounds for autoscaling.

    Raises:
        ValueError: every problem found, in one message.
    """

    cron: str
    """Six fields, as in ``0 8 ? * MON-FRI *``: one of day-of-month and day-of-week is ``?``."""
    min_instances: int
    max_instances: int
    timezone: str = "UTC"
    """IANA name, such as Europe/Berlin."""

    def __post_init__(self) -> None:
        """Check every field."""
        if problems := list(_problems(self)):
            raise ValueError("; ".join(problems))


def _problems(schedule: Schedule) -> Iterator[str]:
    low, high = schedule.min_instances, schedule.max_instances
    if not 1 <= low <= high <= MOST_INSTANCES:
        bounds = f"at least 1, at most 'max_instances' and that at most {MOST_INSTANCES}"
        yield f"'min_instances' should be {bounds}, got {low} and {high}"
    fields = schedule.cron.split(" ")
    if len(fields) != len(FIELDS) or "(" in schedule.cron:
        yield f"'cron' should be six fields such as '0 8 ? * MON-FRI *', without cron(), got {shown(schedule.cron)}"
    else:
        found = (field.problem(text) for field, text in zip(FIELDS, fields, strict=True))
        yield from (f"'cron': {each}, in {shown(schedule.cron)}" for each in found if each)
        if [fields[2], fields[4]].count("?") != 1:
            yield f"'cron' should have ? for one of day-of-month and day-of-week, got {shown(schedule.cron)}"
    # The default needs no file, and a system without a list of zones knows it, too.
    if schedule.timezone != "UTC" and schedule.timezone not in (zones := available_timezones() - NO_ZONES):
        hint = nearest(schedule.timezone, zones)
        yield f"'timezone' should be a zone of IANA such as Europe/Berlin, got {shown(schedule.timezone)}{hint}"


def agree(schedules: Sequence[Schedule], *, autoscales: bool, routing_strategy: str) -> Iterator[str]:
    """What is wrong with schedules beside each other and the rest of a deployment."""
    if schedules and not autoscales:
        yield "'schedules' should be empty where nothing scales, as 'min_instances' and 'max_instances' are the same"
    if len(schedules) > MOST_SCHEDULES:
        yield f"'schedules' should be at most {MOST_SCHEDULES}, got {len(schedules)}"
    moments = [(each.cron.upper(), each.timezone) for each in schedules]
    for cron, timezone in dict.fromkeys(moments):
        if moments.count((cron, timezone)) > 1:
            yield f"'schedules' should name a moment once, got {cron!r} in {timezone} more than once"
    if routing_strategy == "PREFIX_AWARE" and any(each.min_instances < 2 for each in schedules):
        yield "'schedules' should leave at least 2 instances with 'routing_strategy' PREFIX_AWARE, got 1"
