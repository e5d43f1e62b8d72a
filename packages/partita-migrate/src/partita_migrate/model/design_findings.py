"""The findings of `model --check`: errors and warnings, each with its place in the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from partita_migrate.model.design import Design
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.foreign_key_graph import SchemaGraph


class DesignFinding(Struct, frozen=True, kw_only=True):
    severity: Literal["error", "warning"]
    place: str
    message: str


@dataclass(frozen=True)
class CheckedDesign:
    """A design with everything that it is checked against."""

    design: Design
    patterns: dict[str, AccessPattern]
    """The access patterns by name."""
    volumes: Volumes
    schema: SchemaGraph


def subject_of(design: Design, patterns: list[AccessPattern], volumes: Volumes) -> CheckedDesign:
    return CheckedDesign(
        design=design,
        patterns={pattern.name: pattern for pattern in patterns},
        volumes=volumes,
        schema=SchemaGraph(volumes.inventory),
    )


def error(place: str, message: str) -> DesignFinding:
    return DesignFinding(severity="error", place=place, message=f"{message}.")


def warning(place: str, message: str) -> DesignFinding:
    return DesignFinding(severity="warning", place=place, message=f"{message}.")
