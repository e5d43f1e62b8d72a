"""MySQL and MariaDB: mysqldump with a position in the binary log, and following that log."""

from __future__ import annotations

import re
from collections.abc import Iterator

from partita_migrate.understanding.planning.readiness.readiness_check import (
    ServerCheck,
    not_ready,
    ready,
    rights,
)
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.understanding.sources.source_connection import SourceDatabase

KEPT_SECONDS_MIN = 86_400
"""A load that fails starts again from the position that was noted, at most a day later."""
TRANSACTIONAL = ("INNODB", "ROCKSDB", "TOKUDB", "NDBCLUSTER")
IN_FILE = "in the section [mysqld] of its configuration, and restart the server"

UNREADABLE = {
    "log_bin_compress": "OFF",
    "binlog_transaction_compression": "OFF",
    "binlog_row_value_options": "",
}
"""Values that these settings must have for the log to be readable, if the server has them."""

_GRANT = re.compile(r"GRANT (?P<names>.+?) ON (?P<place>.+?) TO ", re.IGNORECASE)
_SAME = {
    "BINLOG MONITOR": "REPLICATION CLIENT",
    "REPLICATION REPLICA": "REPLICATION SLAVE",
    "REPLICATION MASTER ADMIN": "REPLICATION SLAVE",
}
"""MariaDB's names for the same rights."""


def _variables(source: SourceDatabase) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in source.rows("SHOW GLOBAL VARIABLES")}


def _granted(source: SourceDatabase) -> tuple[set[str], set[str]]:
    """Returns the rights on everything, and the rights on this database, which include those."""
    everywhere: set[str] = set()
    here: set[str] = set()
    for (text,) in source.rows("SHOW GRANTS"):
        match = _GRANT.match(str(text))
        if match is None:
            continue
        names = {name.strip().upper() for name in match["names"].split(",")}
        names |= {_SAME[name] for name in names if name in _SAME}
        place = match["place"].replace("`", "")
        if place == "*.*":
            everywhere |= names
        # A grant's database may have wildcards, such as `app\_%`.*.
        if place.endswith(".*") and _covers(place.removesuffix(".*"), source.database):
            here |= names
    return everywhere, here


def _covers(granted: str, database: str) -> bool:
    r"""True when a grant's pattern matches the database: % is any text, _ any character, and \_ an
    underscore."""
    if granted == "*":
        return True
    parts = re.split(r"(\\.|%|_)", granted)
    signs = {"%": ".*", "_": "."}
    pattern = "".join(
        signs.get(part) or re.escape(part[1:] if part.startswith("\\") else part) for part in parts
    )
    return re.fullmatch(pattern, database, re.DOTALL) is not None


def _lacking(names: list[str], granted: set[str]) -> list[str]:
    if granted & {"ALL", "ALL PRIVILEGES"}:
        return []
    return [name for name in names if name not in granted]


def backup_rights(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    everywhere, here = _granted(source)
    in_database = ["SELECT", "SHOW VIEW", "TRIGGER", "EVENT"]
    # --source-data flushes the tables (RELOAD) and reads the log position (REPLICATION CLIENT);
    # MySQL's mysqldump also reads tablespaces (PROCESS).
    in_server = ["RELOAD", "REPLICATION CLIENT"]
    if source.dialect == "mysql":
        in_server.append("PROCESS")
    missing = _lacking(in_database, here) + _lacking(in_server, everywhere)
    if inventory.routines and _lacking(["SELECT"], everywhere):
        missing.append("SELECT on the server's own tables, for stored routines")
    change = "Take the backup as a user who has them, or GRANT them to this one."
    yield rights("backup", missing, change)


def backup_engines(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    """--single-transaction sees one point in time, but only of transactional tables."""
    rows = source.rows(
        "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES"
        " WHERE TABLE_SCHEMA = :database AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME",
        database=source.database,
    )
    others = [f"{name} ({engine})" for name, engine in rows if not _is_transactional(engine)]
    if not others:
        yield ready("backup", "the tables' engine", "transactional")
        return
    yield not_ready(
        "backup",
        "the tables' engine",
        f"not transactional for {', '.join(others[:5])}"
        + (f" and {len(others) - 5} more" if len(others) > 5 else ""),
        "ALTER TABLE ... ENGINE = InnoDB, or stop the writers during the backup: it would"
        " have these tables as of another time.",
    )


def _is_transactional(engine: object) -> bool:
    return str(engine or "").upper() in TRANSACTIONAL


def changes_in_binary_log(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    variables = _variables(source)
    yield _setting(variables, "log_bin", ("ON", "1"), f"Set log_bin {IN_FILE}.")
    if variables.get("server_id", "0") == "0":
        yield not_ready("changes", "server_id", "0", f"Set server_id to 1 or more {IN_FILE}.")
    for name, required in (
        ("binlog_format", "ROW"),
        # All columns of a row, also those that an update did not change.
        ("binlog_row_image", "FULL"),
        # Column names, signedness and keys; without them a row is a list of unnamed values.
        ("binlog_row_metadata", "FULL"),
    ):
        # MySQL 8.4 and later always log rows, and have no setting for that.
        if name in variables or name != "binlog_format":
            yield _setting(
                variables,
                name,
                (required,),
                f"SET GLOBAL {name} = '{required}', and the same in its configuration so that it"
                " lasts; open sessions keep the old value."
                if name in variables
                else f"This server does not have it; changes need {name} = {required}.",
            )
    for name, required in UNREADABLE.items():
        if variables.get(name, required).upper() != required:
            change = f"SET GLOBAL {name} = '{required}', and the same in its configuration."
            yield not_ready("changes", name, variables[name], change)
    if source.dialect == "mysql":
        yield _setting(
            variables, "gtid_mode", ("ON",), "Set gtid_mode = ON and enforce_gtid_consistency = ON."
        )
    yield _kept(variables)


def _setting(
    variables: dict[str, str], name: str, required: tuple[str, ...], change: str
) -> ServerCheck:
    value = variables.get(name, "not there")
    if value.upper() in required:
        return ready("changes", name, value)
    return not_ready("changes", name, value, change)


def _kept(variables: dict[str, str]) -> ServerCheck:
    """Checks how long the log is kept; 0 means forever."""
    days = float(variables.get("expire_logs_days") or 0)
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0) or days * 86_400
    text = f"{seconds:,.0f} seconds" if seconds else "for ever"
    if not seconds or seconds >= KEPT_SECONDS_MIN:
        return ready("changes", "how long the binary log is kept", text)
    return not_ready(
        "changes",
        "how long the binary log is kept",
        text,
        f"SET GLOBAL binlog_expire_logs_seconds = {KEPT_SECONDS_MIN} or more: a load that fails"
        " starts again from the position before it.",
    )


def changes_rights(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    everywhere, _ = _granted(source)
    missing = _lacking(["REPLICATION SLAVE", "REPLICATION CLIENT"], everywhere)
    change = f"GRANT {', '.join(missing)} ON *.* to the user that follows the changes."
    yield rights("changes", missing, change)


def statistics(source: SourceDatabase, inventory: Inventory) -> Iterator[ServerCheck]:
    value = _variables(source).get("performance_schema", "OFF")
    if value.upper() == "ON":
        yield ready("statistics", "performance_schema", value)
        return
    yield not_ready(
        "statistics",
        "performance_schema",
        value,
        f"Set performance_schema = ON {IN_FILE}; or name a log under logs in [analyze].",
    )


CHECKS = (
    backup_rights,
    backup_engines,
    changes_in_binary_log,
    changes_rights,
    statistics,
)
