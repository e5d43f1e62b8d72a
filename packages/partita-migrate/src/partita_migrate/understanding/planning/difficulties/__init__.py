"""What makes a migration hard, found in an inventory, each with what to do about it.

`challenges` are those of AWS's whitepaper on migrating from an RDBMS (table 3); the others are what
relational databases do for an application and DynamoDB leaves to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita_migrate.understanding.planning.difficulties import (
    analytics,
    columns,
    database,
    keys,
    tables,
)
from partita_migrate.understanding.planning.difficulties.difficulty import SEVERITIES, Difficulty
from partita_migrate.understanding.schema.inventory import Inventory, Table

TABLE_CHECKS: tuple[Callable[[Table, Inventory], Iterator[Difficulty]], ...] = (
    tables.access,
    keys.primary_key,
    keys.key_structure,
    columns.large_values,
    analytics.star,
    keys.auto_increment,
    keys.unique_constraints,
    keys.collations,
    columns.types,
    columns.generated,
    tables.foreign_keys,
    tables.polymorphic_references,
    tables.triggers,
    tables.rules,
    tables.indexes,
    tables.partitions,
    tables.names,
)
DATABASE_CHECKS: tuple[Callable[[Inventory], Iterator[Difficulty]], ...] = (
    database.views,
    database.routines,
    database.cycles,
    database.no_foreign_keys,
    database.left_out,
)


def find_difficulties(inventory: Inventory) -> list[Difficulty]:
    """Of the database and of every table, the hardest first within each."""
    found = [
        difficulty
        for table in inventory.tables
        for check in TABLE_CHECKS
        for difficulty in check(table, inventory)
    ]
    found += [difficulty for check in DATABASE_CHECKS for difficulty in check(inventory)]
    return sorted(found, key=lambda one: (one.table or "", SEVERITIES.index(one.severity)))
