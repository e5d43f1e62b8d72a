"""Collects what a design is made from: volumes, access patterns, settings and the schema's
graph."""

from __future__ import annotations

from dataclasses import dataclass

from partita_migrate.designing.model_settings import ModelSettings
from partita_migrate.designing.proposals.pattern_usage import PatternUsage
from partita_migrate.model.design import DesignKind
from partita_migrate.model.volumes import Volumes
from partita_migrate.understanding.patterns.access_patterns import AccessPattern
from partita_migrate.understanding.schema.foreign_key_graph import SchemaGraph


@dataclass(frozen=True)
class DesignInputs:
    """Everything that the passes of a proposal read."""

    kind: DesignKind
    volumes: Volumes
    patterns: list[AccessPattern]
    settings: ModelSettings
    schema: SchemaGraph
    usage: PatternUsage


def design_inputs(
    kind: DesignKind, volumes: Volumes, patterns: list[AccessPattern], settings: ModelSettings
) -> DesignInputs:
    """Collects the inputs. Where several foreign keys lead from one table to another, the one that
    patterns name first is preferred."""
    preferred = [name for pattern in patterns for name in pattern.through]
    return DesignInputs(
        kind=kind,
        volumes=volumes,
        patterns=patterns,
        settings=settings,
        schema=SchemaGraph(volumes.inventory, settings.exclude, preferred),
        usage=PatternUsage(patterns),
    )
