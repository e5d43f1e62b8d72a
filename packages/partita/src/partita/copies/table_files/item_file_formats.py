"""Files of items: JSON lines, CSV and Parquet, chosen by the ending of the file's name.

JSON lines have the format of Amazon's own exports and imports, {"Item": {...}}. All formats keep
attribute types, so that an import of an export yields the same items: a CSV header names the type
where the content does not show it, as in `price:N`, and a Parquet field has it in its metadata.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final, Protocol, TextIO, cast

import orjson

from partita.copies.table_files.column_types import ColumnTypes
from partita.copies.table_files.plain_values import (
    KINDS,
    is_item,
    plain,
    read_plain,
    text_of,
    typed,
    value_of,
)
from partita.copies.table_files.table_reading import Item, TableDescription
from partita.errors import PartitaError
from partita.installation.optional_packages import packages_required

JSON_LINES, CSV, PARQUET = "jsonl", "csv", "parquet"
FORMATS: Final = (CSV, JSON_LINES, PARQUET)
ENDINGS: Final = {
    ".csv": CSV,
    ".json": JSON_LINES,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".parquet": PARQUET,
    ".pq": PARQUET,
}
STANDARD: Final = "-"
"""The file name that stands for standard input or output."""
FIELD_CHARS_MAX: Final = 1 << 24

Record = tuple[int, Item | str]
"""The number of the record in its file, and its item, or the reason why it is not an item."""


class ItemWriter(Protocol):
    def write(self, items: list[Item]) -> None: ...

    def finish(self) -> None: ...


def format_of(path: str, chosen_format: str | None) -> str:
    """The format of a file: the chosen one, or else by the ending of the file's name."""
    if chosen_format is not None:
        return chosen_format
    name = path.removesuffix(".gz")
    if path == STANDARD:
        return JSON_LINES
    kind = ENDINGS.get(Path(name).suffix.lower())
    if kind is None:
        raise PartitaError(
            f"The format of {path} is unknown: its name does not end with one of "
            f"{', '.join(ENDINGS)}. Give --format."
        )
    return kind


# Writing


@contextmanager
def writing(
    path: str, kind: str, table: TableDescription, *, is_plain: bool
) -> Iterator[ItemWriter]:
    """Opens a file for writing items; it gets its name when it is complete."""
    if path == STANDARD:
        if kind == PARQUET:
            raise PartitaError("Parquet needs a file, not standard output.")
        writer = _writer(sys.stdout.buffer, kind, table, is_plain=is_plain)
        yield writer
        writer.finish()
        sys.stdout.buffer.flush()
        return
    part = Path(f"{path}.part")
    try:
        with _open(part, path, "wb") as out:
            writer = _writer(out, kind, table, is_plain=is_plain)
            yield writer
            writer.finish()
        os.replace(part, path)
    except OSError as error:
        raise PartitaError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)


def _open(path: Path, name: str, mode: str) -> IO[bytes]:
    open_file: Any = gzip.open if name.endswith(".gz") else open
    return cast("IO[bytes]", open_file(path, mode))


def _writer(out: IO[bytes], kind: str, table: TableDescription, *, is_plain: bool) -> ItemWriter:
    if kind == JSON_LINES:
        return JsonLinesWriter(out, is_plain=is_plain)
    if is_plain:
        raise PartitaError("--plain only works with JSON lines; leave it out for CSV and Parquet.")
    return ColumnsWriter(out, _finish_csv if kind == CSV else _finish_parquet, table)


class JsonLinesWriter:
    def __init__(self, out: IO[bytes], *, is_plain: bool) -> None:
        self._out = out
        self._is_plain = is_plain

    def write(self, items: list[Item]) -> None:
        lines = [orjson.dumps(plain(item) if self._is_plain else {"Item": item}) for item in items]
        self._out.write(b"".join(b"%b\n" % line for line in lines))

    def finish(self) -> None:
        pass


class ColumnsWriter:
    """Writes CSV or Parquet.

    Items go to a temporary file first, because the columns are only known after the last item.
    """

    def __init__(self, out: IO[bytes], finish: Any, table: TableDescription) -> None:
        if finish is _finish_parquet:
            _require_pyarrow()
        self._out = out
        self._finish = finish
        self._columns = ColumnTypes(table.key_names)
        self._items: BinaryIO = cast("BinaryIO", TemporaryFile("w+b"))  # noqa: SIM115

    def write(self, items: list[Item]) -> None:
        for item in items:
            self._columns.note(item)
            self._items.write(orjson.dumps(item) + b"\n")

    def finish(self) -> None:
        with self._items as items:
            items.seek(0)
            self._finish(self._out, self._columns, map(orjson.loads, items))


def _finish_csv(out: IO[bytes], columns: ColumnTypes, items: Iterator[Item]) -> None:
    headers = columns.headers()
    # With "\r\n" as the line terminator, csv quotes a field that contains either character.
    rows = csv.writer(_Text(out), lineterminator="\r\n")
    rows.writerow(headers.values())
    for item in items:
        cells = {(name, kind): text_of(kind, item[name][kind]) for name, kind in _kinds(item)}
        rows.writerow([cells.get(column, "") for column in headers])


def _kinds(item: Item) -> Iterator[tuple[str, str]]:
    return ((name, next(iter(value))) for name, value in item.items())


class _Text:
    """The text file that the csv module writes to.

    TextIOWrapper would close the file below it, which may be standard output.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text.encode())


def _finish_parquet(out: IO[bytes], columns: ColumnTypes, items: Iterator[Item]) -> None:
    from partita.copies.table_files.parquet_files import write_parquet

    write_parquet(out, columns, items)


def _require_pyarrow() -> None:
    with packages_required("partita[parquet]"):
        import pyarrow.parquet  # noqa: F401


# Reading


def read_records(
    path: str, kind: str, table: TableDescription, *, is_plain: bool
) -> Iterator[Record]:
    try:
        if path == STANDARD:
            if kind == PARQUET:
                raise PartitaError("Parquet needs a file, not standard input.")
            yield from _read(sys.stdin.buffer, kind, table, is_plain=is_plain)
            return
        with _open(Path(path), path, "rb") as source:
            yield from _read(source, kind, table, is_plain=is_plain)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PartitaError(f"{path} cannot be read: {reason}.") from error


def _read(
    source: IO[bytes], kind: str, table: TableDescription, *, is_plain: bool
) -> Iterator[Record]:
    if kind == JSON_LINES:
        return _read_json(source, is_plain=is_plain)
    if kind == CSV:
        return _read_csv(cast("TextIO", _Lines(source)), table)
    _require_pyarrow()
    from partita.copies.table_files.parquet_files import read_parquet

    return enumerate(read_parquet(source), 1)


def _read_json(source: IO[bytes], *, is_plain: bool) -> Iterator[Record]:
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        try:
            record = read_plain(line) if is_plain else orjson.loads(line)
        except ValueError as error:
            yield number, f"it is not JSON ({error})"
            continue
        if isinstance(record, dict) and is_plain:
            yield number, {name: typed(value) for name, value in record.items()}
        elif isinstance(record, dict) and is_item(record.get("Item")):
            yield number, record["Item"]
        elif is_item(record):
            yield number, record
        else:
            yield number, "it is not an item in DynamoDB JSON (--plain reads plain JSON)"


class _Lines:
    """Decodes lines without translating their ends: csv needs a line break in a field as it is."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._is_first = True

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        text = next(self._source).decode("utf-8-sig" if self._is_first else "utf-8")
        self._is_first = False
        return text


def _read_csv(lines: TextIO, table: TableDescription) -> Iterator[Record]:
    csv.field_size_limit(FIELD_CHARS_MAX)
    rows = csv.reader(lines)
    try:
        columns = [_column(header, table) for header in next(rows, [])]
        for row in rows:
            if row:
                yield rows.line_num, _item(columns, row)
    except UnicodeDecodeError as error:
        yield rows.line_num + 1, f"it is not UTF-8 ({error})"
    except csv.Error as error:
        yield rows.line_num, f"it is not CSV ({error})"


def _column(header: str, table: TableDescription) -> tuple[str, str, bool]:
    """Returns the attribute of a column, its type, and whether the header named the type."""
    name, colon, kind = header.rpartition(":")
    if colon and kind in KINDS:
        return name, kind, True
    return header, table.attribute_types.get(header, "S"), False


def _item(columns: list[tuple[str, str, bool]], row: list[str]) -> Item | str:
    if len(row) != len(columns):
        return f"it has {len(row)} fields, and there are {len(columns)} headers"
    item: Item = {}
    for (name, kind, is_typed), text in zip(columns, row, strict=True):
        if not text:
            continue
        try:
            item[name] = value_of(kind, text) if is_typed else {kind: text}
        except ValueError as error:
            return f"{name} is not a value of type {kind} ({error})"
    return item
