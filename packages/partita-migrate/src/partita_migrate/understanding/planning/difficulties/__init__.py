"""Finds what makes a migration hard, with a strategy for each difficulty.

`whitepaper_challenges` has those of AWS's whitepaper on migrating from an RDBMS (table 3). The
others are things that a relational database does for an application and DynamoDB leaves to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from partita_migrate.understanding.planning.difficulties import (
    analytical_tables,
    column_difficulties,
    database_difficulties,
    key_difficulties,
    table_difficulties,
)
from partita_migrate.understanding.planning.difficulties.difficulty import SEVERITIES, Difficulty
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable

TABLE_CHECKS: tuple[Callable[[SourceTable, Inventory], Iterator[Difficulty]], ...] = (
    table_difficulties.access,
    key_difficulties.primary_key,
    key_difficulties.key_structure,
    column_difficulties.large_values,
    analytical_tables.star,
    key_difficulties.auto_increment,
    key_difficulties.unique_constraints,
    key_difficulties.collations,
    column_difficulties.types,
    column_difficulties.generated,
    table_difficulties.foreign_keys,
    table_difficulties.polymorphic_references,
    table_difficulties.triggers,
    table_difficulties.rules,
    table_difficulties.indexes,
    table_difficulties.partitions,
    table_difficulties.names,
)
DATABASE_CHECKS: tuple[Callable[[Inventory], Iterator[Difficulty]], ...] = (
    database_difficulties.views,
    database_difficulties.routines,
    database_difficulties.cycles,
    database_difficulties.no_foreign_keys,
    database_difficulties.left_out,
)


def find_difficulties(inventory: Inventory) -> list[Difficulty]:
    """Returns the difficulties of the database and of every table, in each the hardest first."""
    difficulties = [
        difficulty
        for table in inventory.tables
        for check in TABLE_CHECKS
        for difficulty in check(table, inventory)
    ]
    difficulties += [difficulty for check in DATABASE_CHECKS for difficulty in check(inventory)]
    return sorted(
        difficulties,
        key=lambda difficulty: (difficulty.table or "", SEVERITIES.index(difficulty.severity)),
    )
