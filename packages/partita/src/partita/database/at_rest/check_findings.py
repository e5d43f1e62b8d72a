"""The findings of a check, and the data that it looks at."""

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
    """A violated invariant, such as "table music: its counts are wrong (expected 2, found 3)"."""

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
    """The data that is being checked, with the number of items and entries checked so far."""

    snapshot: Snapshot
    tables: list[Table] = field(default_factory=list)
    streams: list[ChangeStream] = field(default_factory=list)
    event_streams: list[EventStream] = field(default_factory=list)
    has_unreadable_entries: bool = False
    """True if a table or stream cannot be read, so that its keys cannot be told from strays."""
    items: int = 0
    entries: int = 0
    changes: int = 0
    records: int = 0
    is_encrypted: bool = False

    def under(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.snapshot.range(prefix, prefix_end(prefix))


def at(table: Table, item: Item | None = None, index: Index | None = None) -> str:
    """Describes a place for people: table, index and key."""
    words = [f"table {table.name}"]
    if index is not None:
        words.append(f"index {index.name}")
    if item is not None:
        key = {name: item[name] for name in table.key_names}
        words.append(f"item {_short(msgspec.json.encode(key).decode())}")
    return ", ".join(words)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."
