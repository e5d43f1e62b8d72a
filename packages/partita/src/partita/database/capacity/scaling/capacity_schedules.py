"""Scheduled changes of capacity: AWS's schedule expressions, with the range of units to set.

An expression is `at(2026-12-01T08:00:00)`, `rate(1 day)` or `cron(0 8 ? * MON-FRI *)`, in UTC. The
six fields of cron() are minutes, hours, day of month, month, day of week and year; `L`, `W` and `#`
are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from partita.errors import PartitaError

MINUTE_SECONDS = 60
LOOK_BACK_SECONDS = 7 * 24 * 3600
"""When the clock jumps forward, changes that were due this long ago are still made."""

IsDue = Callable[[float, float], bool]
"""True when a change is due after one time and up to another."""
IsDueIn = Callable[[int], bool]
"""True when a change is due at the beginning of a minute, counted since the epoch."""

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
RATE_MINUTES = {"minute": 1, "hour": 60, "day": 24 * 60}
FIELDS: Sequence[tuple[str, int, int, Sequence[str]]] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("day of week", 1, 7, DAYS),
    ("year", 1970, 2199, ()),
)
UNITS = ("read_minimum", "read_maximum", "write_minimum", "write_maximum")


@dataclass(frozen=True, slots=True)
class ScheduledChange:
    """A change of the minimum and maximum units of a table or index, with its schedule."""

    table: str
    index: str | None
    expression: str
    is_due_between: IsDue
    units: Mapping[str, int]
    """Some of the settings named in `UNITS`."""


def scheduled_changes(section: Mapping[str, Any]) -> list[ScheduledChange]:
    """Returns the changes in the section `capacity` of partita.toml."""
    if unknown := sorted(section.keys() - {"schedule"}):
        raise PartitaError(f"The section capacity has no setting {unknown[0]!r}.")
    entries = section.get("schedule", [])
    if not isinstance(entries, list):
        raise PartitaError("Schedules are written as [[capacity.schedule]], with two brackets.")
    return [scheduled_change(entry) for entry in entries]


def scheduled_change(entry: Mapping[str, Any]) -> ScheduledChange:
    """Returns the change of one `[[capacity.schedule]]` of partita.toml."""
    unknown = sorted(entry.keys() - {"table", "index", "schedule", *UNITS})
    if unknown:
        raise PartitaError(f"A capacity schedule has no setting {unknown[0]!r}.")
    for name in ("table", "schedule"):
        if not isinstance(entry.get(name), str):
            raise PartitaError(f"A capacity schedule needs a {name}, as a string.")
    units = {name: entry[name] for name in UNITS if name in entry}
    if not units:
        raise PartitaError(
            f"The schedule of table {entry['table']} changes nothing: give it {' or '.join(UNITS)}."
        )
    for name, value in units.items():
        if type(value) is not int or value < 1:
            raise PartitaError(f"{name} must be a whole number of at least 1, not {value!r}.")
    for kind in ("read", "write"):
        if units.get(f"{kind}_minimum", 0) > units.get(f"{kind}_maximum", float("inf")):
            raise PartitaError(f"{kind}_minimum is above {kind}_maximum.")
    expression = entry["schedule"]
    return ScheduledChange(
        entry["table"], entry.get("index"), expression, parse_schedule(expression), units
    )


def parse_schedule(expression: str) -> IsDue:
    match = re.fullmatch(r"(at|rate|cron)\((.*)\)", expression.strip())
    if match is None:
        raise PartitaError(
            f"A schedule must be at(...), rate(...) or cron(...), not {expression!r}."
        )
    return _PARSERS[match.group(1)](match.group(2).strip())


def _at(moment: str) -> IsDue:
    try:
        when = datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise PartitaError(f"at() takes yyyy-mm-ddThh:mm:ss, not {moment!r}.") from None
    return lambda last, now: last < when <= now


def _each_minute(is_due_in: IsDueIn) -> IsDue:
    def is_due(last: float, now: float) -> bool:
        first = int(max(last, now - LOOK_BACK_SECONDS) // MINUTE_SECONDS) + 1
        return any(map(is_due_in, range(first, int(now // MINUTE_SECONDS) + 1)))

    return is_due


def _rate(text: str) -> IsDue:
    match = re.fullmatch(r"([1-9]\d*) (minute|hour|day)s?", text)
    if match is None:
        raise PartitaError(f"rate() takes a number of minutes, hours or days, not {text!r}.")
    minutes = int(match.group(1)) * RATE_MINUTES[match.group(2)]
    return _each_minute(lambda minute: minute % minutes == 0)


def _cron(text: str) -> IsDue:
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise PartitaError(f"cron() takes six fields, not {text!r}.")
    minutes, hours, days, months, weekdays, years = (
        _field(part, *field) for part, field in zip(parts, FIELDS, strict=True)
    )

    def is_due_in(minute: int) -> bool:
        when = datetime.fromtimestamp(minute * MINUTE_SECONDS, UTC)
        return (
            when.minute in minutes
            and when.hour in hours
            and when.day in days
            and when.month in months
            and when.isoweekday() % 7 + 1 in weekdays
            and when.year in years
        )

    return _each_minute(is_due_in)


_PARSERS: dict[str, Callable[[str], IsDue]] = {"at": _at, "rate": _rate, "cron": _cron}


def _field(text: str, name: str, first: int, last: int, names: Sequence[str]) -> frozenset[int]:
    """Returns the values of one field, such as `*`, `?`, `5`, `MON-FRI`, `0/15` or `1,15`."""

    def number(part: str) -> int:
        value = names.index(part.upper()) + 1 if part.upper() in names else int(part)
        if not first <= value <= last:
            raise ValueError
        return value

    values: set[int] = set()
    for part in text.split(","):
        try:
            span, _, step = part.partition("/")
            start, _, stop = span.partition("-")
            low = first if start in ("*", "?") else number(start)
            high = number(stop) if stop else (last if step or start in ("*", "?") else low)
            every = int(step) if step else 1
            if low > high or every < 1:
                raise ValueError
            values.update(range(low, high + 1, every))
        except ValueError:
            raise PartitaError(
                f"{part!r} is not valid for the {name} of a cron schedule."
            ) from None
    return frozenset(values)
