"""What a check finds, and where it looks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from partita.database.item.attribute_values import Item
from partita.database.logs.change_log.change_streams import ChangeStream
from partita.database.logs.event_log.event_streams import EventStream
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.tables.definition.table_schema import Index, Table

SHOWN_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One thing that is wrong."""

    where: str
    what: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        sides = (("expected", self.expected), ("found", self.found))
        details = [f"{side} {_short(content)}" for side, content in sides if content]
        return f"{text} ({', '.join(details)})" if details else text


@dataclass(slots=True)
class CheckedFolder:
    """A data folder under examination, and how much of it has been looked at."""

    snapshot: Snapshot
    tables: list[Table] = field(default_factory=list)
    streams: list[ChangeStream] = field(default_factory=list)
    event_streams: list[EventStream] = field(default_factory=list)
    has_unreadable_entries: bool = False
    """Of tables or streams: then nobody can say what belongs to them."""
    items: int = 0
    entries: int = 0
    changes: int = 0
    records: int = 0
    is_encrypted: bool = False

    def under(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.snapshot.range(prefix, prefix_end(prefix))


def at(table: Table, item: Item | None = None, index: Index | None = None) -> str:
    """A place that a person can find: table, index, key."""
    words = [f"table {table.name}"]
    if index is not None:
        words.append(f"index {index.name}")
    if item is not None:
        key = {name: item[name] for name in table.key_names}
        words.append(f"item {_short(msgspec.json.encode(key).decode())}")
    return ", ".join(words)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."
