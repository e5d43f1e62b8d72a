"""A difficulty: what it is, how hard, where, and what to do about it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

DifficultyKind = Literal[
    "writes continue",
    "volume",
    "transformation",
    "key structure",
    "no primary key",
    "large values",
    "type",
    "collation",
    "auto-increment key",
    "unique constraint",
    "generated column",
    "foreign key",
    "polymorphic reference",
    "trigger",
    "view",
    "routine",
    "analytical",
    "ad-hoc queries",
    "indexes",
    "partitions",
    "inheritance",
    "name",
    "access",
    "server",
    "left out",
]
Severity = Literal["obstacle", "care", "note"]
"""Must be solved first; needs a decision; good to know."""

SEVERITIES: tuple[Severity, ...] = ("obstacle", "care", "note")


class Difficulty(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: DifficultyKind
    severity: Severity
    table: str | None = None
    columns: list[str] = field(default_factory=list)
    what: str
    strategy: str


def listed(names: list[str] | None) -> str:
    return ", ".join(names or [])


def first_few(names: list[str], at_most: int = 5) -> str:
    """Lists the first names, and the number of the others."""
    more = len(names) - at_most
    return listed(names[:at_most]) + (f" and {more} more" if more > 0 else "")


def number_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
