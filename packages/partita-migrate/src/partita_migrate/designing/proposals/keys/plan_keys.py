"""Plans the keys of every type of item."""

from __future__ import annotations

from dataclasses import replace

from partita_migrate.designing.proposals.design_inputs import DesignInputs
from partita_migrate.designing.proposals.keys.identities import (
    identities,
    is_identified,
    is_unique_in_source,
)
from partita_migrate.designing.proposals.keys.index_plans import plan_indexes
from partita_migrate.designing.proposals.keys.key_plan import EntityWorkload, KeyPlan, PlannedKey
from partita_migrate.designing.proposals.keys.table_keys import choose_table_key, explain_table_key
from partita_migrate.designing.proposals.roles.table_roles import TableRoles
from partita_migrate.designing.proposals.workload import PatternRead, Workload
from partita_migrate.understanding.schema.column_refs import ColumnRef


def plan_keys(inputs: DesignInputs, roles: TableRoles, workload: Workload) -> dict[str, KeyPlan]:
    """Returns the key plans by entity, in the order of the source's tables."""
    entities = [name for name in inputs.schema.tables if roles.entity_of(name) == name]
    return {name: _plan(_subject(inputs, roles, workload, name)) for name in entities}


def _plan(subject: EntityWorkload) -> KeyPlan:
    base = choose_table_key(subject)
    planned = plan_indexes(subject, base)
    return KeyPlan(
        base=base,
        why=explain_table_key(subject, base),
        indexes=planned.indexes,
        served=planned.served,
        advice=planned.advice,
    )


def _subject(
    inputs: DesignInputs, roles: TableRoles, workload: Workload, entity: str
) -> EntityWorkload:
    item_identities = identities(inputs, entity)
    return EntityWorkload(
        entity=entity,
        schema=inputs.schema,
        volumes=inputs.volumes,
        identities=item_identities,
        reads=[_reduced(read, item_identities) for read in workload.reads_of(entity)],
        writes=workload.writes_of(entity),
        neighbours=[read for read in workload.reads if read.entity != entity],
        fixed=_version_key(inputs, roles, entity),
        is_unique_in_source=is_unique_in_source(inputs, entity),
        is_identified=is_identified(inputs, entity),
    )


def _reduced(read: PatternRead, item_identities: list[list[ColumnRef]]) -> PatternRead:
    """Reduces a read that identifies an item to that identity: its other conditions can only agree
    or not."""
    for identity in item_identities:
        if set(identity) <= set(read.equality):
            return replace(read, equality=tuple(identity), order=())
    return read


def _version_key(inputs: DesignInputs, roles: TableRoles, entity: str) -> PlannedKey | None:
    """Returns the key of versions: the parent's key, then the version number."""
    version = roles.versions.get(entity)
    if version is None:
        return None
    parent = (inputs.schema.canonical(ColumnRef(entity, name)) for name in version.link.key.columns)
    return PlannedKey(tuple(parent), (ColumnRef(entity, version.column),))
