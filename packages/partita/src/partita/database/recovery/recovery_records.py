"""The records of backups, recovery bases, exports, imports and bulk puts.

They are kept in storage, and in memory for requests. As with the catalog, the next request sees a
change as soon as it is decided; if its commit is lost, all records are read from storage again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from partita.database.recovery import recovery_layout
from partita.database.storage.engine import Snapshot, prefix_end
from partita.database.storage.recovery_log import STAMP_KEY
from partita.database.storage.write_batch import WriteBatch
from partita.database.tables.definition.table_schema import Table
from partita.errors import StorageError

USER, SYSTEM = "USER", "SYSTEM"
IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
COMPLETED_WITH_ERRORS = "COMPLETED_WITH_ERRORS"
CANCELLING, CANCELLED = "CANCELLING", "CANCELLED"


class BackupRecord(msgspec.Struct, frozen=True, kw_only=True, tag="backup"):
    id: str
    name: str
    kind: str
    table: Table
    """The table at the time of the CreateBackup request."""
    created_at: float
    item_count: int
    size_bytes: int
    expires_at: float | None = None
    is_available: bool = False

    @property
    def manifest(self) -> str:
        return f"backup-{self.id}"

    @property
    def table_name(self) -> str:
        return self.table.name


class RecoveryBase(msgspec.Struct, frozen=True, kw_only=True, tag="base"):
    """The state of a table with point-in-time recovery at a stamp.

    A later state is this base plus the commits in the recovery log from its stamp on.
    """

    id: str
    table_id: str
    stamp: int

    @property
    def manifest(self) -> str:
        return f"base-{self.id}"


class ExportRecord(msgspec.Struct, frozen=True, kw_only=True, tag="export"):
    id: str
    table: Table
    request: dict[str, Any]
    started_at: float
    exported_at: float
    """The exported moment of a full export."""
    until: int
    """The stamp of that moment; for an incremental export the end of the period, exclusive."""
    since: int = 0
    status: str = IN_PROGRESS
    ended_at: float | None = None
    item_count: int | None = None
    billed_bytes: int | None = None
    failure_code: str | None = None
    failure_message: str | None = None

    @property
    def table_name(self) -> str:
        return self.table.name


class ImportRecord(msgspec.Struct, frozen=True, kw_only=True, tag="import"):
    id: str
    table_name: str
    table_id: str
    request: dict[str, Any]
    started_at: float
    status: str = IN_PROGRESS
    ended_at: float | None = None
    processed_items: int = 0
    processed_bytes: int = 0
    imported_items: int = 0
    errors: int = 0
    failure_code: str | None = None
    failure_message: str | None = None


class BulkPutRecord(msgspec.Struct, frozen=True, kw_only=True, tag="bulk"):
    """A bulk put: items of a bucket's objects that are put into a table in use."""

    id: str
    table_name: str
    table_id: str
    request: dict[str, Any]
    started_at: float
    status: str = IN_PROGRESS
    ended_at: float | None = None
    processed_items: int = 0
    processed_bytes: int = 0
    total_bytes: int | None = None
    failed_items: int = 0
    usage: dict[str, int] = {}
    """Bytes put, by index name; "" stands for the table itself."""
    done_objects: int = 0
    done_records: int = 0
    """Records of the current object that are done."""
    done_object_bytes: int = 0
    """The total size of the finished objects."""
    reports: list[str] = []
    """Lines for the next report file, kept here so that a crash does not lose them."""
    report_files: list[tuple[str, int, str]] = []
    """The finished report files: key, number of lines, MD5."""
    failure_code: str | None = None
    failure_message: str | None = None


Record = BackupRecord | RecoveryBase | BulkPutRecord | ExportRecord | ImportRecord
Kind = TypeVar("Kind", BackupRecord, RecoveryBase, BulkPutRecord, ExportRecord, ImportRecord)
Resource = BackupRecord | BulkPutRecord | ExportRecord | ImportRecord
"""Records that have an ARN."""

_encode = msgspec.json.encode
_decoder = msgspec.json.Decoder(Record)


class RecoveryRecords:
    """All records of a database, in memory."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._records: dict[bytes, Record] = {}
        self.on_change: Callable[[], None] = _ignore
        self.removals = 0
        """How many records have been removed since the start."""
        self.reload()

    def reload(self) -> None:
        self._records = dict(read_records(self._snapshot))

    def of(self, kind: type[Kind]) -> list[Kind]:
        """All records of a kind, sorted by id, so the oldest comes first."""
        return [record for record in self._records.values() if isinstance(record, kind)]

    def find(self, kind: type[Kind], record_id: str) -> Kind | None:
        record = self._records.get(_key(kind, record_id))
        return record if isinstance(record, kind) else None

    def is_committed(self, record: Record) -> bool:
        """True when the record is on disk, and with it every commit before it."""
        return self._snapshot.get(_key(type(record), record.id)) is not None

    def save(self, write_batch: WriteBatch, record: Record) -> None:
        key = _key(type(record), record.id)
        write_batch.put(key, _encode(record))
        write_batch.after_merge(partial(self._set, key, record))

    def remove(self, write_batch: WriteBatch, record: Record) -> None:
        key = _key(type(record), record.id)
        write_batch.delete(key)
        write_batch.after_merge(partial(self._set, key, None))

    def _set(self, key: bytes, record: Record | None) -> None:
        if record is None:
            self._records.pop(key, None)
            self.removals += 1
        else:
            self._records[key] = record
        self.on_change()


class SharedRecoveryRecords(RecoveryRecords):
    """The records of a database that several servers share.

    Only the leader works on imports and bulk puts, so the other servers read the progress of these
    from storage.
    """

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [self._latest(record) for record in super().of(kind)]

    def find(self, kind: type[Kind], record_id: str) -> Kind | None:
        record = super().find(kind, record_id)
        return None if record is None else self._latest(record)

    def _latest(self, record: Kind) -> Kind:
        if not isinstance(record, BulkPutRecord | ImportRecord) or record.ended_at is not None:
            return record
        value = self._snapshot.get(_key(type(record), record.id))
        stored = None if value is None else _decoder.decode(value)
        return stored if isinstance(stored, type(record)) else record


def read_records(snapshot: Snapshot) -> Iterator[tuple[bytes, Record]]:
    for key, value in snapshot.range(recovery_layout.RECORDS, prefix_end(recovery_layout.RECORDS)):
        if key == STAMP_KEY:
            continue
        try:
            yield key, _decoder.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            name = key[1:].decode(errors="replace").replace("\0", " ")
            raise StorageError(
                f"The data folder is damaged: its entry for {name} cannot be read ({error})."
            ) from error


def kind_of(record: type[Record]) -> str:
    """The kind of a record as it occurs in storage keys and ARNs: "backup", "export", ..."""
    return str(record.__struct_config__.tag)


def _key(kind: type[Record], record_id: str) -> bytes:
    return recovery_layout.record_key(kind_of(kind), record_id)


def _ignore() -> None:
    pass
