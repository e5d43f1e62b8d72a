"""Finds signs of analytical processing, which needs joins and scans that DynamoDB does not have."""

from __future__ import annotations

from collections.abc import Iterator

from partita_migrate.understanding.planning.difficulties.difficulty import Difficulty
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.schema.name_words import words

FACT_FOREIGN_KEYS_MIN = 3
FACT_MEASURES_MIN = 2
FACT_WORDS = {"fact", "facts", "cube", "rollup", "aggregate", "aggregates", "summary"}
DIMENSION_WORDS = {"dim", "dimension"}
NUMBERS = {"integer", "decimal", "float"}


def star(table: SourceTable, inventory: Inventory) -> Iterator[Difficulty]:
    if is_fact_table(table):
        what = f"{table.name} looks like a fact table: measures that joins explain."
    elif DIMENSION_WORDS & set(words(table.name)[:1]):
        what = f"{table.name} looks like a dimension of a star schema."
    else:
        return
    yield Difficulty(
        kind="analytical",
        severity="care",
        table=table.name,
        what=what,
        strategy="Leave analytical processing where it is, or export items to S3 and query them"
        " there.",
    )


def is_fact_table(table: SourceTable) -> bool:
    """True for the center of a star schema: measures, and foreign keys to dimensions."""
    if FACT_WORDS & set(words(table.name)):
        return True
    keys = {name for key in table.foreign_keys for name in key.columns} | set(table.primary_key)
    rest = [column for column in table.columns if column.name not in keys]
    measures = [column for column in rest if column.kind in NUMBERS]
    # Texts are in the dimensions of a star schema, not in its fact table.
    texts = [column for column in rest if column.kind in ("string", "json", "binary")]
    return (
        len(table.foreign_keys) >= FACT_FOREIGN_KEYS_MIN
        and len(measures) >= FACT_MEASURES_MIN
        and not texts
    )
