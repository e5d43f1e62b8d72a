"""Reads `patterns.toml`, written by people, and `patterns.mined.toml`, which has the same form.

    [[pattern]]
    name = "games that a player registered to"
    table = "players_games"
    by = "player_id"
    range = "registered_at"
    rate = "500/s"
    items = 3

A pattern can also be given as `sql = "SELECT ..."`, and members have many aliases. What is not
understood is refused with its line and its pattern.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from partita.errors import PartitaError
from partita_migrate.understanding.analysis import read_analysis
from partita_migrate.understanding.patterns.access_patterns import (
    AccessPattern,
    IgnoredStatements,
    Patterns,
    UnexplainedStatement,
)
from partita_migrate.understanding.patterns.item_counts import with_items
from partita_migrate.understanding.patterns.mining.schema_lookup import SchemaLookup
from partita_migrate.understanding.patterns.written_patterns import PatternBlock, WrittenPattern
from partita_migrate.understanding.schema.column_refs import ColumnRef
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.workspace.migration_folder import Folder

WRITTEN = "patterns.toml"
MINED = "patterns.mined.toml"

_TOP_LEVEL = (
    "pattern", "patterns", "unexplained", "ignored", "origin", "window_seconds", "references",
)  # fmt: skip


def read_patterns(folder: Folder, inventory: Inventory) -> Patterns:
    """Reads the patterns that people wrote, or else the mined ones, or else none."""
    name = next((name for name in (WRITTEN, MINED) if folder.has(name)), None)
    if name is None:
        return Patterns()
    path = folder.path / name
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PartitaError(f"{path} is not UTF-8 text.") from error
    except OSError as error:
        raise PartitaError(f"Cannot read {path}: {error.strerror}.") from error
    analysis = read_analysis(folder)
    return with_items(parse(text, inventory, str(path)), inventory, analysis)


def parse(text: str, inventory: Inventory, where: str = WRITTEN) -> Patterns:
    """Parses a file. PartitaError names the line and the pattern that is wrong."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PartitaError(f"{where} is not valid TOML: {error}.") from error
    unknown = [name for name in content if name not in _TOP_LEVEL]
    if unknown:
        raise PartitaError(
            f"{where} has {unknown[0]!r} outside of a pattern; begin each pattern with [[pattern]]."
        )
    schema = SchemaLookup(inventory)
    written = [
        WrittenPattern(table, text, where, schema) for table in _tables(content, text, where)
    ]
    patterns = [pattern.pattern() for pattern in written]
    _refuse_repeats(patterns, where)
    return Patterns(
        origin=str(content.get("origin", "")),
        window_seconds=float(content.get("window_seconds", 0.0)),
        patterns=patterns,
        unexplained=[
            UnexplainedStatement(**statement) for statement in content.get("unexplained", [])
        ],
        ignored=[IgnoredStatements(**statements) for statements in content.get("ignored", [])],
        references=[str(reference) for reference in content.get("references", [])],
    )


def _refuse_repeats(patterns: Iterable[AccessPattern], where: str) -> None:
    names: set[str] = set()
    for pattern in patterns:
        if pattern.name in names:
            raise PartitaError(f"{where} has two patterns with the name {pattern.name!r}.")
        names.add(pattern.name)


def _tables(content: dict[str, Any], text: str, where: str) -> list[PatternBlock]:
    """Collects the blocks, written as [[pattern]], [[patterns]] or [patterns.NAME]."""
    blocks: list[dict[str, Any]] = []
    for group in (content.get("pattern", []), content.get("patterns", [])):
        if isinstance(group, dict):
            blocks += [{"name": name, **members} for name, members in group.items()]
        else:
            blocks += group
    if not all(isinstance(block, dict) for block in blocks):
        raise PartitaError(
            f"{where} has a pattern that is not a table; begin each with [[pattern]]."
        )
    headers = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if re.match(r"\s*\[\[?\s*patterns?\b[^\]]*\]\]?", line)
    ]
    # The TOML parser reports no line numbers. A header inside a string would shift them, so a
    # different count of headers means that none are given.
    lines: list[int | None] = [*headers] if len(headers) == len(blocks) else [None] * len(blocks)
    return [PatternBlock(i + 1, members, lines[i]) for i, members in enumerate(blocks)]


def to_toml(patterns: Patterns) -> dict[str, Any]:
    """Returns the content for `Folder.write_toml`; `parse` reads it back."""
    content: dict[str, Any] = {}
    if patterns.origin:
        content |= {"origin": patterns.origin, "window_seconds": patterns.window_seconds}
    content["references"] = patterns.references
    content["pattern"] = [_written_form(pattern) for pattern in patterns.patterns]
    content["unexplained"] = [asdict(statement) for statement in patterns.unexplained]
    content["ignored"] = [asdict(statements) for statements in patterns.ignored]
    return {name: part for name, part in content.items() if part}


def _written_form(pattern: AccessPattern) -> dict[str, Any]:
    """Returns the members that have a value, with short names for the table's own columns."""

    def short(columns: list[str]) -> list[str]:
        refs = map(ColumnRef.parse, columns)
        return [
            str(ColumnRef("", ref.column) if ref.table == pattern.table else ref) for ref in refs
        ]

    members = {
        "name": pattern.name,
        "description": pattern.description,
        "category": pattern.category,
        "operation": pattern.operation,
        "table": pattern.table,
        "joins": pattern.joins,
        "through": pattern.through,
        "by": short(pattern.equality),
        "range": short(pattern.range),
        "order_by": short(pattern.order_by),
        "descending": pattern.is_descending,
        "hierarchy": "".join(short([pattern.hierarchy] if pattern.hierarchy else [])),
        "limit": pattern.limit,
        "filters": short(pattern.filters),
        "columns": short(pattern.columns),
        "values": pattern.values if pattern.values > 1 else 0,
        "items": pattern.items,
        "rate": pattern.calls_per_second,
        "peak": pattern.peak_per_second,
        "transaction": pattern.transaction,
        "consistent": pattern.is_consistent,
        "source": pattern.source if pattern.source == "mined" else "",
        "statement": pattern.statement,
    }
    kept = ("rate", "items")
    return {name: value for name, value in members.items() if value or name in kept}
