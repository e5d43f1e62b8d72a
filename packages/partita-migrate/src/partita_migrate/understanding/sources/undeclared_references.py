"""Foreign keys that the schema does not declare, as a person writes them in `migration.toml`.

[source]
    references = ["revision.rev_actor = actor.actor_id"]

In the inventory they are foreign keys like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

from msgspec.structs import replace

from partita.errors import PartitaError
from partita_migrate.understanding.schema.column_refs import ColumnRef, parse_join
from partita_migrate.understanding.schema.inventory import ForeignKey, SourceTable
from partita_migrate.understanding.schema.relationships import is_unique


def with_references(tables: list[SourceTable], written: Iterable[str]) -> list[SourceTable]:
    """Returns the tables with these foreign keys added. Raises PartitaError for an invalid one."""
    by_name = {table.name: table for table in tables}
    for text in written:
        child, key = _foreign_key(text, by_name)
        table = by_name[child]
        if key.columns not in [existing.columns for existing in table.foreign_keys]:
            by_name[child] = replace(table, foreign_keys=[*table.foreign_keys, key])
    return list(by_name.values())


def _foreign_key(text: str, tables: dict[str, SourceTable]) -> tuple[str, ForeignKey]:
    join = parse_join(text)
    if join is None or any(len({ref.table for ref in side}) != 1 for side in join):
        _refuse(text, "expected child.column = parent.column")
    before = [_resolved(text, ref, tables) for ref in join.before]
    after = [_resolved(text, ref, tables) for ref in join.after]
    parent = tables[after[0].table]
    columns = [ref.column for ref in after]
    if not is_unique(parent, columns):
        _refuse(
            text, f"{', '.join(columns)} of {parent.name} is neither its primary key nor unique"
        )
    return before[0].table, ForeignKey(
        columns=[ref.column for ref in before],
        referenced_table=parent.name,
        referenced_columns=columns,
    )


def _resolved(text: str, ref: ColumnRef, tables: dict[str, SourceTable]) -> ColumnRef:
    """Returns the reference in the source's spelling: PostgreSQL stores an unquoted ID as id."""
    table = _spelled(ref.table, tables)
    if table is None:
        _refuse(text, f"there is no table {ref.table}{_near(ref.table, tables)}")
    columns = [column.name for column in tables[table].columns]
    column = _spelled(ref.column, columns)
    if column is None:
        _refuse(text, f"{table} has no column {ref.column}{_near(ref.column, columns)}")
    return ColumnRef(table, column)


def _spelled(name: str, names: Iterable[str]) -> str | None:
    matches = [candidate for candidate in names if candidate.lower() == name.lower()]
    return name if name in matches else matches[0] if len(matches) == 1 else None


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _refuse(text: str, what: str) -> NoReturn:
    end = "" if what.endswith("?") else "."
    raise PartitaError(f"[source] references, {text!r}: {what}{end}")
