"""What a check found, with the model that was looked at."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from partita.migrate.model.design import Design
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.graph import SchemaGraph


class Finding(Struct, frozen=True, kw_only=True):
    severity: Literal["error", "warning"]
    place: str
    message: str


class Subject:
    """A design, and all that it is measured by."""

    def __init__(self, design: Design, patterns: list[AccessPattern], volumes: Volumes) -> None:
        self.design = design
        self.patterns = {pattern.name: pattern for pattern in patterns}
        self.volumes = volumes
        self.schema = SchemaGraph(volumes.inventory)


class Rule:
    """Looks at a design, and at all that it is measured by."""

    def __init__(self, subject: Subject) -> None:
        self.design = subject.design
        self.patterns = subject.patterns
        self.volumes = subject.volumes
        self.schema = subject.schema


def error(place: str, message: str) -> Finding:
    return Finding(severity="error", place=place, message=f"{message}.")


def warning(place: str, message: str) -> Finding:
    return Finding(severity="warning", place=place, message=f"{message}.")
