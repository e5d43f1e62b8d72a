"""Reads statement logs: MySQL's general and slow log, and PostgreSQL's stderr, csvlog and jsonlog.

The first lines of a file show which log it is. A log is read once, line by line, so it can be of
any length.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TextIO

from partita.errors import PartitaError

_FIRST_LINES = 50

_STATEMENT = re.compile(
    r"(?:duration: [\d.]+ ms  )?(?:statement|execute [^:\n]*): (?P<statement>.*)", re.DOTALL
)
"""The message in PostgreSQL's log. "parse" and "bind" precede the "execute" of the same
statement."""
_STDERR = re.compile(r"(?P<prefix>.*?)\b(?P<severity>[A-Z]{3,9}):  (?P<message>.*)", re.DOTALL)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?")
_SHORT_MOMENT = re.compile(r"(\d{6}) +(\d{1,2}:\d\d:\d\d)")
_AT_DATABASE = re.compile(r"\S+@(\S+)")
_GENERAL = re.compile(
    r"(?P<moment>\d{6} +\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+|\t)?\t *"
    r"(?P<thread>\d+) (?P<command>[A-Z][A-Za-z]*(?: [A-Za-z]+)*)(?:\t(?P<argument>.*))?",
    re.DOTALL,
)
_BANNER = re.compile(r"\S+, Version: .* started with:|Tcp port: |Time\s+Id Command\s+Argument")
"""Lines that MySQL writes into its logs at every start."""
_COUNTS = re.compile(r"(Rows_sent|Rows_examined|Rows_affected): (\d+)")
_SCHEMA = re.compile(r"Schema: (\S*)")


class LoggedStatement(NamedTuple):
    statement: str
    moment: float | None = None
    """Seconds since 1970."""
    database: str | None = None
    """None if the log does not say."""
    rows: float | None = None
    examined: float | None = None


def read_log(path: Path) -> Iterator[LoggedStatement]:
    """Yields the statements of a file. Raises PartitaError if it is not a known kind of log."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace", newline="") as lines:
            yield from parse_log(lines, str(path))
    except OSError as error:
        raise PartitaError(f"Cannot read the log {path}: {error.strerror or error}.") from error


def parse_log(lines: Iterable[str] | TextIO, name: str) -> Iterator[LoggedStatement]:
    lines = iter(lines)
    first = list(islice(lines, _FIRST_LINES))
    parse = _recognize(first)
    if parse is None:
        raise PartitaError(
            f"{name} is not a log of statements; write one of MySQL's general and slow log, or"
            " PostgreSQL's stderr, csvlog and jsonlog."
        )
    return parse(chain(first, lines))


def _recognize(lines: list[str]) -> Callable[[Iterable[str]], Iterator[LoggedStatement]] | None:
    for line in lines:
        if line.startswith('{"timestamp"'):
            return _jsonlog
        if re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+?,", line):
            return _csvlog
        if line.startswith(("# Time:", "# User@Host:", "# Query_time:")):
            return _slow_log
        match = _GENERAL.match(line)
        if match and match["command"] in ("Connect", "Query", "Quit", "Init DB", "Prepare"):
            return _general_log
        if _MOMENT.search(line) and _STDERR.match(line):
            return _stderr
    return None


def _without_banners(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if not _BANNER.match(line))


def _general_log(lines: Iterable[str]) -> Iterator[LoggedStatement]:
    """Parses the general log. An entry begins with a tab or a time, then thread and command; a
    statement can go on over several lines."""
    databases: dict[str, str] = {}
    moment: float | None = None
    for match, text in _entries(_without_banners(lines)):
        if match["moment"] and match["moment"] != "\t":
            moment = moment_of(match["moment"])
        entry = general_entry(match["thread"], match["command"], text, databases)
        if entry is not None:
            yield entry._replace(moment=moment)


def _entries(lines: Iterable[str]) -> Iterator[tuple[re.Match[str], str]]:
    entry: re.Match[str] | None = None
    parts: list[str] = []
    for line in lines:
        match = _GENERAL.match(line)
        if match is None:
            if entry is not None:
                parts.append(line)
            continue
        if entry is not None:
            yield entry, "".join(parts)
        entry, parts = match, [match["argument"] or ""]
    if entry is not None:
        yield entry, "".join(parts)


def general_entry(
    thread: str, command: str, argument: str, databases: dict[str, str]
) -> LoggedStatement | None:
    """Parses a row of the general log, also from its table. `databases` has the database of each
    thread."""
    argument = argument.strip()
    if command == "Connect":
        match = re.search(r" on (\S*) using ", argument)
        databases[thread] = match.group(1) if match else ""
    elif command == "Init DB":
        databases[thread] = argument
    elif command in ("Query", "Execute"):
        # A Prepare is not counted: its Executes have the same text, with values.
        if re.match(r"use ", argument, re.IGNORECASE):
            databases[thread] = argument[4:].strip("`; ")
        return LoggedStatement(argument, database=databases.get(thread))
    return None


def _slow_log(lines: Iterable[str]) -> Iterator[LoggedStatement]:
    moment: float | None = None
    database: str | None = None
    counts: dict[str, float] = {}
    parts: list[str] = []

    def entry() -> Iterator[LoggedStatement]:
        text = "".join(parts).strip()
        if text:
            rows = max(counts.get("Rows_sent", 0), counts.get("Rows_affected", 0))
            yield LoggedStatement(text, moment, database, rows, counts.get("Rows_examined"))

    for line in _without_banners(lines):
        if line.startswith("# "):
            if parts:
                yield from entry()
                parts, counts = [], {}
            if line.startswith("# Time:"):
                moment = moment_of(line[7:])
            counts |= {name: float(count) for name, count in _COUNTS.findall(line)}
            schema = _SCHEMA.search(line)
            database = schema.group(1) if schema else database
        # The slow log writes USE and SET timestamp before the statement itself.
        elif line.startswith("SET timestamp=") and not parts:
            moment = float(re.sub(r"[^\d.]", "", line[14:]) or 0)
        elif line[:4].lower() == "use " and not parts:
            database = line[4:].strip("`; \r\n")
        # A statement follows its line of counts (# Query_time); without one it is the server's
        # banner.
        elif counts:
            parts.append(line)
    yield from entry()


def _csvlog(lines: Iterable[str]) -> Iterator[LoggedStatement]:
    csv.field_size_limit(1 << 30)
    for row in csv.reader(lines):
        # Columns of csvlog: 0 log_time, 2 database_name, 11 error_severity, 13 message.
        if len(row) > 13 and row[11] == "LOG":
            yield from _postgresql(row[13], moment_of(row[0]), row[2] or None)


def _jsonlog(lines: Iterable[str]) -> Iterator[LoggedStatement]:
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("error_severity") == "LOG":
            moment = moment_of(str(entry.get("timestamp", "")))
            yield from _postgresql(str(entry.get("message", "")), moment, entry.get("dbname"))


def _stderr(lines: Iterable[str]) -> Iterator[LoggedStatement]:
    """Parses PostgreSQL's stderr. Continued lines begin with a tab; the prefix before LOG depends
    on the server's settings."""
    entry: list[str] = []
    # A final line without a statement flushes the last entry.
    for line in chain(lines, ["end:  LOG:  "]):
        if line.startswith("\t"):
            entry.append(line[1:])
            continue
        match = _STDERR.match("".join(entry)) if entry else None
        if match and match["severity"] == "LOG":
            database = _AT_DATABASE.search(match["prefix"])
            yield from _postgresql(
                match["message"],
                moment_of(match["prefix"]),
                database.group(1) if database else None,
            )
        entry = [line]


def _postgresql(
    message: str, moment: float | None, database: str | None
) -> Iterator[LoggedStatement]:
    match = _STATEMENT.match(message)
    if match:
        yield LoggedStatement(match["statement"].strip(), moment, database)


def moment_of(text: str) -> float | None:
    """Parses a time as if it were UTC: only differences between times matter."""
    short = _SHORT_MOMENT.search(text)
    iso = _MOMENT.search(text)
    try:
        if iso:
            return datetime.fromisoformat(iso.group()[:26] + "+00:00").timestamp()
        if short:
            written = f"{short.group(1)} {short.group(2)} +0000"
            return datetime.strptime(written, "%y%m%d %H:%M:%S %z").timestamp()
    except ValueError:
        return None
    return None
