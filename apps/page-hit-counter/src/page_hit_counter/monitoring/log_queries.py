"""Queries logs with SQL, for which the thesis used Athena and Logs Insights.

The logs are read into a table in memory. Logs of a load balancer have Athena's columns. Lines of
JSON have a column for each member; in the files of a delivery stream, each visit is a row. The
dialect is SQLite's.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from urllib.parse import parse_qsl, urlsplit

from page_hit_counter.monitoring.load_balancer_logs import COLUMNS, read_line
from partita.errors import PartitaError

TABLE = "logs"
GZIP = b"\x1f\x8b"
READ_ONLY = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
NAMES = ("brand", "period", "resourceType", "section", "paidType")
"""The parameters of the API, in the order of their canonical form."""
Row = dict[str, Any]


class LogAnswer(NamedTuple):
    columns: list[str]
    rows: list[tuple[Any, ...]]
    unreadable: int
    """How many lines are neither a load balancer's nor JSON."""


def query(paths: Sequence[Path], sql: str) -> LogAnswer:
    rows, unreadable = read_rows(paths)
    connection = sqlite3.connect(":memory:")
    try:
        _fill(connection, rows)
        # From here on SQLite refuses statements that change data, attach files or load code.
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in READ_ONLY else sqlite3.SQLITE_DENY
        )
        cursor = connection.execute(sql)
        columns = [column[0] for column in cursor.description or ()]
        return LogAnswer(columns, cursor.fetchall(), unreadable)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise PartitaError(f"The query cannot be run: {error}.") from error
    finally:
        connection.close()


def _fill(connection: sqlite3.Connection, rows: list[Row]) -> None:
    """Creates the table. Members whose names differ only in case share a column, because SQLite
    ignores the case of column names."""
    names: dict[str, str] = {}
    # The columns of load balancers always exist, so that their queries run on any log.
    for name in (*COLUMNS, *(name for row in rows for name in row)):
        names.setdefault(name.lower(), name)
    columns = ", ".join(_quoted(name) for name in names.values())
    connection.execute(f"CREATE TABLE {TABLE} ({columns})")
    # The query that the thesis prints reads a table named prod.
    connection.execute(f"CREATE VIEW prod AS SELECT * FROM {TABLE}")
    marks = ", ".join("?" * len(names))
    values = ([_plain(row.get(name)) for name in names.values()] for row in rows)
    connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", values)


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _plain(value: Any) -> Any:
    is_plain = value is None or isinstance(value, str | float | bool)
    return value if is_plain or _is_integer(value) else json.dumps(value)


def _is_integer(value: Any) -> bool:
    """True for an integer that SQLite can store."""
    return isinstance(value, int) and -(2**63) <= value < 2**63


def read_rows(paths: Sequence[Path]) -> tuple[list[Row], int]:
    rows: list[Row] = []
    unreadable = 0
    for path in paths:
        for line in _lines(path):
            line_rows = _read(line)
            if line_rows is None:
                unreadable += 1
            else:
                rows += line_rows
    return rows, unreadable


def _read(line: str) -> list[Row] | None:
    if not line.startswith("{"):
        row = read_line(line)
        return None if row is None else [dict(row)]
    try:
        content: Row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    visits = content.get("visits")
    if isinstance(visits, list) and all(isinstance(visit, dict) for visit in visits):
        return visits
    return [content]


def _lines(path: Path) -> Iterator[str]:
    try:
        with _open(path) as file:
            for line in file:
                text = line.decode("utf-8", "replace").strip()
                if text:
                    yield text
    except (OSError, EOFError, zlib.error) as error:
        raise PartitaError(f"The log {path} cannot be read: {error}.") from error


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == GZIP
    return cast(IO[bytes], gzip.open(path, "rb")) if is_gzip else path.open("rb")


class ParameterShare(NamedTuple):
    parameters: str
    """The names of the parameters, such as `period&section`."""
    requests: int
    share: float


def parameter_shares(paths: Sequence[Path], path_prefix: str = "/") -> list[ParameterShare]:
    """Returns the shares of successful GET requests by the combination of their parameters (table
    4.1 of the thesis). A parameter that a request has several times counts once."""
    rows, _ = read_rows(paths)
    counts = Counter(
        _combination(str(row["request_url"]))
        for row in rows
        if row.get("request_verb") == "GET"
        and str(row.get("elb_status_code")) == "200"
        and _path(str(row["request_url"])).startswith(path_prefix)
    )
    total = counts.total()
    ordered = sorted(counts.items(), key=lambda entry: (entry[1], entry[0]))
    return [ParameterShare(name, count, count / total) for name, count in ordered]


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _combination(url: str) -> str:
    names = dict.fromkeys(name for name, _ in parse_qsl(urlsplit(url).query, True))
    return "&".join(sorted(names, key=_order)) or "(none)"


def _order(name: str) -> tuple[int, str]:
    return (NAMES.index(name) if name in NAMES else len(NAMES)), name


def text_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    shown = [[str(cell) if cell is not None else "" for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[place]) for row in shown) for place in range(len(columns))]
    for row in shown:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
