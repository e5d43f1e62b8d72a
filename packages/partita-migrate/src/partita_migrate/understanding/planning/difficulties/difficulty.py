"""One difficulty: what it is, how severe, where, and what to do about it."""

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
"""An obstacle must be removed first, a care needs a decision, and a note is good to know."""

SEVERITIES: tuple[Severity, ...] = ("obstacle", "care", "note")


class Difficulty(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: DifficultyKind
    severity: Severity
    table: str | None = None
    columns: list[str] = field(default_factory=list)
    what: str
    strategy: str
