"""The catalog: which tables there are, in storage, and in memory for every request.

A change is visible to the requests behind it as soon as it is decided; its own answer waits for
the commit. When a commit is lost, the catalog is read again from what the disk has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from secrets import token_bytes

import msgspec

from partita.database.changes.captures import capture_prefixes
from partita.database.changes.streams import close_stream
from partita.database.storage.engine import Engine, Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import layout
from partita.database.tables.schema import CREATING, DELETING, Table
from partita.errors import ResourceNotFoundException, StorageError

FORMAT_VERSION = 2
UPGRADED_FORMATS = (b"1",)
"""Format 1 had no write-ahead log in front of the tree, and is the same in all else."""
COPYING_FORMAT = b"copying"
"""Of a folder that `partita storage copy` has not filled yet."""

SECRET_BYTES = 32

LAST_KEY = b"\xff" * 1024
"""Behind every key of the layout."""

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(Table)


class Catalog:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables: dict[str, Table] = {}
        self.on_change: Callable[[], None] = _ignore
        self.version = 0
        """Of what is in memory: higher after every change."""
        self.reload()

    def reload(self) -> None:
        self.version += 1
        self._tables = {
            table.name: table
            for key, value in self._snapshot.range(layout.CATALOG, prefix_end(layout.CATALOG))
            for table in [decode_table(key, value)]
        }

    def __iter__(self) -> Iterator[Table]:
        return iter(list(self._tables.values()))

    def encoded(self) -> list[bytes]:
        """All tables as storage has them."""
        return [_encode(table) for table in self]

    def names(self) -> list[str]:
        return sorted(self._tables)

    def find(self, name: str) -> Table | None:
        return self._tables.get(name)

    def table(self, name: str, now: float) -> Table:
        """The table that items are read from and written to."""
        table = self._tables.get(name)
        if table is None or not _is_active(table, now):
            raise ResourceNotFoundException("Requested resource not found")
        return table

    def committed(self, table: Table) -> Table | None:
        """The same table as the disk has it, while its last change may still be under way."""
        key = layout.catalog_key(table.name)
        value = self._snapshot.get(key)
        committed = None if value is None else decode_table(key, value)
        return committed if committed and committed.number == table.number else None

    def described(self, name: str) -> Table:
        """The table that the control plane shows or changes, whatever its status."""
        table = self._tables.get(name)
        if table is None:
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
        return table

    def save(self, write_batch: WriteBatch, table: Table) -> None:
        write_batch.put(layout.catalog_key(table.name), _encode(table))
        write_batch.after_merge(partial(self._set, table.name, table))

    def remove(self, write_batch: WriteBatch, table: Table) -> None:
        """Remove a table; its data is removed in the background, its stream after a day.

        Changes that are still on their way to a destination go with it.
        """
        if table.stream is not None:
            close_stream(write_batch, table.name, table.stream)
        write_batch.delete(layout.catalog_key(table.name))
        logs = {one.log for one in table.destinations if not one.is_over}
        captured = [prefix for log in logs for prefix in capture_prefixes(log)]
        for prefix in [*layout.table_prefixes(table.number), *captured]:
            write_batch.put(layout.leftover_key(prefix), b"")
        write_batch.after_merge(partial(self._set, table.name, None))

    def _set(self, name: str, table: Table | None) -> None:
        self.version += 1
        if table is None:
            self._tables.pop(name, None)
        else:
            self._tables[name] = table
        self.on_change()


def _is_active(table: Table, now: float) -> bool:
    # Every request passes here: the usual case first.
    if table.transition != DELETING and now >= table.settles_at:
        return True
    return table.status(now) not in (CREATING, DELETING)


def _ignore() -> None:
    pass


def next_table_number(write_batch: WriteBatch) -> int:
    """Numbers are never used again; streams take theirs from here too."""
    number = int.from_bytes(write_batch.get(layout.NUMBERS_KEY) or b"", "big") + 1
    write_batch.put(layout.NUMBERS_KEY, number.to_bytes(4, "big"))
    return number


def decode_table(catalog_key: bytes, value: bytes) -> Table:
    try:
        return _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        name = catalog_key.removeprefix(layout.CATALOG).decode(errors="replace")
        raise StorageError(
            f"The data folder is damaged: its entry for table {name} cannot be read ({error})."
        ) from error


def check_format(engine: Engine) -> None:
    """A data folder records its format and has a secret; a new folder, or an older one, gets the
    current ones."""
    snapshot = engine.snapshot()
    missing: dict[bytes, bytes | None] = {}
    if not has_format(snapshot) or snapshot.get(layout.FORMAT_KEY) in UPGRADED_FORMATS:
        missing[layout.FORMAT_KEY] = str(FORMAT_VERSION).encode()
    if snapshot.get(layout.SECRET_KEY) is None:
        missing[layout.SECRET_KEY] = new_secret()
    if missing:
        engine.commit(missing)
        engine.refresh()


def new_secret() -> bytes:
    """What tokens for clients are sealed with."""
    return token_bytes(SECRET_BYTES)


def has_format(snapshot: Snapshot) -> bool:
    """Whether a folder has data of this format, or none yet; any other data is not touched."""
    found = snapshot.get(layout.FORMAT_KEY)
    if found == COPYING_FORMAT:
        raise StorageError(
            "A copy into the data folder was not finished; run partita storage copy again."
        )
    is_known = found == str(FORMAT_VERSION).encode() or found in UPGRADED_FORMATS
    if found is not None and not is_known:
        raise StorageError(
            f"The data folder has format {found.decode(errors='replace')}, this Partita reads "
            f"format {FORMAT_VERSION}; use the Partita that wrote it."
        )
    if found is None and next(snapshot.range(b"", LAST_KEY), None) is not None:
        raise StorageError("The data folder holds data that Partita did not write.")
    return found is not None
