"""What a design is made from: volumes, access patterns, settings, and the graph of the schema."""

from __future__ import annotations

from dataclasses import dataclass

from partita.migrate.designing.proposals.usage import PatternUsage
from partita.migrate.designing.settings import ModelSettings
from partita.migrate.model.design import DesignKind
from partita.migrate.model.volumes import Volumes
from partita.migrate.understanding.patterns.access_patterns import AccessPattern
from partita.migrate.understanding.schema.graph import SchemaGraph


@dataclass(frozen=True)
class DesignInputs:
    kind: DesignKind
    volumes: Volumes
    patterns: list[AccessPattern]
    settings: ModelSettings
    schema: SchemaGraph
    usage: PatternUsage


def design_inputs(
    kind: DesignKind, volumes: Volumes, patterns: list[AccessPattern], settings: ModelSettings
) -> DesignInputs:
    """Where several ways lead from one table to another, the patterns say which comes first."""
    preferred = [name for pattern in patterns for name in pattern.through]
    return DesignInputs(
        kind=kind,
        volumes=volumes,
        patterns=patterns,
        settings=settings,
        schema=SchemaGraph(volumes.inventory, settings.exclude, preferred),
        usage=PatternUsage(patterns),
    )
