"""The catalog: all tables, stored on disk and kept in memory for every request.

A change is visible to later requests as soon as it is decided, while its own response waits for
the commit. When a commit is lost, the catalog is reloaded from disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from secrets import token_bytes

import msgspec

from partita.database.logs.change_log.change_streams import close_stream
from partita.database.logs.change_log.kinesis_captures import capture_prefixes
from partita.database.storage.engine import Engine, Snapshot, prefix_end
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables import table_layout
from partita.database.tables.definition.table_schema import CREATING, DELETING, Table
from partita.errors import ResourceNotFoundException, StorageError

FORMAT_VERSION = 2
UPGRADED_FORMATS = (b"1",)
"""Format 1 had no write-ahead log in front of the tree; otherwise the two are the same."""
COPYING_FORMAT = b"copying"
"""The format of a folder while `partita storage copy` fills it."""

SECRET_BYTES = 32

LAST_KEY = b"\xff" * 1024
"""A key that sorts after every storage key."""

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(Table)


class TableCatalog:
    """All tables of a database, in memory; `save` and `remove` change one in a write batch."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables: dict[str, Table] = {}
        self.on_change: Callable[[], None] = _ignore
        self.version = 0
        """Grows with every change of the catalog in memory."""
        self.reload()

    def reload(self) -> None:
        self.version += 1
        self._tables = {
            table.name: table
            for key, value in self._snapshot.range(
                table_layout.CATALOG, prefix_end(table_layout.CATALOG)
            )
            for table in [decode_table(key, value)]
        }

    def __iter__(self) -> Iterator[Table]:
        return iter(list(self._tables.values()))

    def encoded(self) -> list[bytes]:
        """Returns all tables in the encoding of the storage."""
        return [_encode(table) for table in self]

    def names(self) -> list[str]:
        return sorted(self._tables)

    def find(self, name: str) -> Table | None:
        return self._tables.get(name)

    def table(self, name: str, now: float) -> Table:
        """Returns a table for reading and writing items.

        A table that is being created or deleted is not found.
        """
        table = self._tables.get(name)
        if table is None or not _is_active(table, now):
            raise ResourceNotFoundException("Requested resource not found")
        return table

    def committed(self, table: Table) -> Table | None:
        """Returns the committed state of a table, whose last change may not be committed yet."""
        key = table_layout.catalog_key(table.name)
        value = self._snapshot.get(key)
        committed = None if value is None else decode_table(key, value)
        return committed if committed and committed.number == table.number else None

    def described(self, name: str) -> Table:
        """Returns a table for the control plane, whatever its status."""
        table = self._tables.get(name)
        if table is None:
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
        return table

    def save(self, write_batch: WriteBatch, table: Table) -> None:
        write_batch.put(table_layout.catalog_key(table.name), _encode(table))
        write_batch.after_merge(partial(self._set, table.name, table))

    def remove(self, write_batch: WriteBatch, table: Table) -> None:
        """Remove a table; its data is removed in the background, its stream after a day.

        Changes that have not reached their Kinesis destination yet are removed too.
        """
        if table.stream is not None:
            close_stream(write_batch, table.name, table.stream)
        write_batch.delete(table_layout.catalog_key(table.name))
        logs = {destination.log for destination in table.destinations if not destination.is_over}
        captured = [prefix for log in logs for prefix in capture_prefixes(log)]
        for prefix in [*table_layout.table_prefixes(table.number), *captured]:
            write_batch.put(table_layout.leftover_key(prefix), b"")
        write_batch.after_merge(partial(self._set, table.name, None))

    def _set(self, name: str, table: Table | None) -> None:
        self.version += 1
        if table is None:
            self._tables.pop(name, None)
        else:
            self._tables[name] = table
        self.on_change()


def _is_active(table: Table, now: float) -> bool:
    # Every request calls this, so the usual case comes first.
    if table.transition != DELETING and now >= table.settles_at:
        return True
    return table.status(now) not in (CREATING, DELETING)


def _ignore() -> None:
    pass


def next_table_number(write_batch: WriteBatch) -> int:
    """Returns a number that no table or stream has had; both are numbered from one sequence."""
    number = int.from_bytes(write_batch.get(table_layout.NUMBERS_KEY) or b"", "big") + 1
    write_batch.put(table_layout.NUMBERS_KEY, number.to_bytes(4, "big"))
    return number


def decode_table(catalog_key: bytes, value: bytes) -> Table:
    try:
        return _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        name = catalog_key.removeprefix(table_layout.CATALOG).decode(errors="replace")
        raise StorageError(
            f"The data folder is damaged: its entry for table {name} cannot be read ({error})."
        ) from error


def check_format(engine: Engine) -> None:
    """Check the format of a data folder; give a new or older folder the current format and a
    secret."""
    snapshot = engine.snapshot()
    missing: dict[bytes, bytes | None] = {}
    if not has_format(snapshot) or snapshot.get(table_layout.FORMAT_KEY) in UPGRADED_FORMATS:
        missing[table_layout.FORMAT_KEY] = str(FORMAT_VERSION).encode()
    if snapshot.get(table_layout.SECRET_KEY) is None:
        missing[table_layout.SECRET_KEY] = new_secret()
    if missing:
        engine.commit(missing)
        engine.refresh()


def new_secret() -> bytes:
    """Returns a new key for sealing the tokens that clients get."""
    return token_bytes(SECRET_BYTES)


def has_format(snapshot: Snapshot) -> bool:
    """True when a folder has data in a format that this version reads, False when it is empty.

    Raises StorageError for everything else, so that it is never written to.
    """
    stored_format = snapshot.get(table_layout.FORMAT_KEY)
    if stored_format == COPYING_FORMAT:
        raise StorageError(
            "A copy into the data folder was not finished; run partita storage copy again."
        )
    is_readable = stored_format == str(FORMAT_VERSION).encode() or stored_format in UPGRADED_FORMATS
    if stored_format is not None and not is_readable:
        raise StorageError(
            f"The data folder has format {stored_format.decode(errors='replace')}, but this "
            f"Partita reads format {FORMAT_VERSION}; use the Partita that wrote it."
        )
    if stored_format is None and next(snapshot.range(b"", LAST_KEY), None) is not None:
        raise StorageError("The data folder holds data that Partita did not write.")
    return stored_format is not None
