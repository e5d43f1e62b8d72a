"""Tests statement logs: every format gives the same statements.

Headers and layout are those of MariaDB 10.11 and PostgreSQL 15, with other statements put in;
MySQL's own are written by hand in the form that it is known to have. Logs that servers just wrote
are read by `packages/partita-migrate/tests/understanding/test_mining.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita_migrate.understanding.patterns.mining.statement_logs import (
    LoggedStatement,
    moment_of,
    parse_log,
    read_log,
)

FIXTURES = Path(__file__).parent / "fixtures"

WANTED = [
    "SELECT * FROM orders WHERE id = 7",
    "SELECT *\n  FROM orders\nWHERE status = 'a;b'",
    "UPDATE orders SET status = 'paid' WHERE id = 7",
]


@pytest.mark.parametrize(
    "name",
    [
        "mariadb-general.log",
        "mysql-general.log",
        "mariadb-slow.log",
        "mysql-slow.log",
        "postgresql-stderr.log",
        "postgresql.csv",
        "postgresql.json",
    ],
)
def test_every_log_tells_the_same_statements(name: str) -> None:
    entries = list(read_log(FIXTURES / name))
    of_shop = [entry for entry in entries if entry.database in ("shop", None)]
    texts = ["\n".join(entry.statement.rstrip(";").split("\n")) for entry in of_shop]
    assert [text for text in texts if "orders" in text] == WANTED
    moments = [entry.moment for entry in entries]
    assert None not in moments
    assert moments == sorted(moments, key=lambda moment: moment or 0)


def test_a_slow_log_counts_rows() -> None:
    entries = list(read_log(FIXTURES / "mariadb-slow.log"))
    read = next(entry for entry in entries if "id = 7" in entry.statement)
    assert (read.rows, read.examined) == (1, 1)


def test_a_general_log_knows_which_database_a_thread_uses() -> None:
    lines = [
        "261115 23:02:40\t     3 Connect\troot@localhost on  using TCP/IP\n",
        "\t\t     3 Init DB\tshop\n",
        "\t\t     3 Query\tSELECT 1\n",
        "\t\t     3 Query\tuse `other`\n",
        "\t\t     3 Prepare\tSELECT ?\n",
        "\t\t     3 Execute\tSELECT 2\n",
    ]
    assert [(one.statement, one.database) for one in parse_log(lines, "a test")] == [
        ("SELECT 1", "shop"),
        ("use `other`", "other"),
        ("SELECT 2", "other"),
    ]


def test_postgresql_s_parse_and_bind_are_not_counted() -> None:
    start = "2026-11-15 23:03:21.332 UTC [14631] app@shop LOG:  duration: 0.889 ms  "
    lines = [f"{start}{step}: SELECT $1\n" for step in ("parse s1", "bind s1", "execute s1")]
    (entry,) = parse_log(lines, "a test")
    assert entry == LoggedStatement("SELECT $1", moment_of("2026-11-15 23:03:21.332"), "shop")


def test_a_file_that_is_no_log_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk\neggs\n")
    with pytest.raises(PartitaError, match=r"notes\.txt is not a log of statements"):
        list(read_log(path))
    with pytest.raises(PartitaError, match="Cannot read the log"):
        list(read_log(tmp_path / "missing.log"))


def test_bytes_that_are_no_text_do_not_end_a_log(tmp_path: Path) -> None:
    path = tmp_path / "general.log"
    path.write_bytes(b"261115 23:02:40\t     3 Query\tSELECT '\xff\xfe'\n")
    assert len(list(read_log(path))) == 1
