"""References that applications keep and the schema does not declare, as a person writes them.

    [source]
    references = ["revision.rev_actor = actor.actor_id"]

In the inventory they are foreign keys like others.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

from msgspec.structs import replace

from partita.errors import PartitaError
from partita.migrate.understanding.schema.column_refs import Ref, parse_join
from partita.migrate.understanding.schema.inventory import ForeignKey, Table
from partita.migrate.understanding.schema.relationships import is_unique


def with_references(tables: list[Table], written: Iterable[str]) -> list[Table]:
    """The tables with these foreign keys too; one that cannot be is refused."""
    found = {table.name: table for table in tables}
    for text in written:
        child, key = _foreign_key(text, found)
        table = found[child]
        if key.columns not in [known.columns for known in table.foreign_keys]:
            found[child] = replace(table, foreign_keys=[*table.foreign_keys, key])
    return list(found.values())


def _foreign_key(text: str, tables: dict[str, Table]) -> tuple[str, ForeignKey]:
    join = parse_join(text)
    if join is None or any(len({ref.table for ref in side}) != 1 for side in join):
        _refuse(text, "write it as child.column = parent.column")
    for ref in (*join.before, *join.after):
        _refuse_unknown(text, ref, tables)
    parent = tables[join.after[0].table]
    columns = [ref.column for ref in join.after]
    if not is_unique(parent, columns):
        _refuse(text, f"{', '.join(columns)} of {parent.name} is neither its key nor unique")
    return join.before[0].table, ForeignKey(
        columns=[ref.column for ref in join.before],
        referenced_table=parent.name,
        referenced_columns=columns,
    )


def _refuse_unknown(text: str, ref: Ref, tables: dict[str, Table]) -> None:
    if ref.table not in tables:
        _refuse(text, f"there is no table {ref.table}{_near(ref.table, tables)}")
    columns = [column.name for column in tables[ref.table].columns]
    if ref.column not in columns:
        _refuse(text, f"{ref.table} has no column {ref.column}{_near(ref.column, columns)}")


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _refuse(text: str, what: str) -> NoReturn:
    end = "" if what.endswith("?") else "."
    raise PartitaError(f"[source] references, {text!r}: {what}{end}")
