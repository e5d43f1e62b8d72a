"""Oracle's MySQL where it differs from MariaDB: its log, its snapshots, its fence."""

from __future__ import annotations

import threading
import time

import pytest

from partita.errors import PartitaError
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.finish import finish
from partita_migrate.moving.verifying.verify import verify
from testkit.data.moves import PATTERNS, Sql, script

from .conftest import MakeSource
from .test_life import ready, rows_of
from .test_move import assert_same, moved

KINDS = """
CREATE TABLE kinds (
    id BIGINT UNSIGNED PRIMARY KEY, born YEAR, a TINYINT, b INT UNSIGNED, c BIGINT,
    d DECIMAL(30,10), e FLOAT, f DOUBLE, g BIT(12), h CHAR(255), i VARCHAR(20), j TEXT,
    k BINARY(8), l VARBINARY(300), m BLOB, n DATE, o TIME(3), p DATETIME(6), q TIMESTAMP(3) NULL,
    place POINT, r VARCHAR(20) CHARACTER SET latin1, s ENUM('x','ü') CHARACTER SET latin1,
    t SET('p','q','ü'), document JSON, embedding VECTOR(4), hidden INT INVISIBLE DEFAULT 5,
    whole DECIMAL(20,2) AS (b * 2) STORED, twice INT AS (a * 2) VIRTUAL,
    checked INT CHECK (checked > 0),
    KEY ((lower(i))), KEY ((CAST(document -> '$.many' AS UNSIGNED ARRAY)))
);
"""
NAMES = (
    "id, born, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, place, r, s, t, document,"
    " embedding, hidden, checked"
)
ROWS = [
    "(18446744073709551615, 2020, -5, 4294967295, -9223372036854775808,"
    " '-12345678901234567890.1234567891', 0.1, 0.1, b'101010101010', repeat('ü', 255), 'ü€😀',"
    " 'text', x'0102000000', x'00', 'blob', '2020-01-02', '-12:30:05.250',"
    " '2020-01-02 03:04:05.000123', '2020-01-02 03:04:05.120', ST_GeomFromText('POINT(1 2)', 4326),"
    " 'é', 'ü', 'p,ü', '{\"many\": [1, 2], \"b\": 1.50, \"\": \"\\\\u0001\"}',"
    " STRING_TO_VECTOR('[1,2,3,0.5]'), 7, 1)",
    "(1, 0, 0, 0, 0, 0, -1e30, 1e300, 0, '', '', '', '', x'', '', '0000-00-00', '838:59:59',"
    " '2020-00-00 03:04:05', '0000-00-00 00:00:00', NULL, '', '', '',"
    " JSON_ARRAY(1e300, 1e15, 1234567890123456.8, CAST(1.50 AS DECIMAL(5,2)), NULL, TRUE,"
    " DATE '2020-01-02', TIME '-12:30:05.5', TIMESTAMP '2020-01-02 03:04:05', x'00ff'), NULL,"
    " NULL, NULL)",
    "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
    " NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'null', NULL, NULL, NULL)",
]


def test_a_followed_row_is_the_row_that_a_load_would_have_read(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("oracle", KINDS)
    folder = source.folder({"one": "SELECT * FROM kinds WHERE id = ?"}, target)
    load(folder, target, is_followed=True)
    mode = "SET sql_mode = '', time_zone = '+02:00'"
    for row in ROWS:
        source.run(f"{mode}; INSERT INTO kinds ({NAMES}) VALUES {row}")
    source.run(f"{mode}; UPDATE kinds SET a = 3 WHERE id <> 1")
    source.run(f"{mode}; UPDATE kinds SET document = JSON_SET(document, '$.b', 2) WHERE id > 2")
    follow(folder, target, is_once=True)
    found = verify(folder, target, is_dry_run=True)
    assert found.rows == len(ROWS)
    assert_same(found)


def test_rows_that_foreign_keys_change_are_followed(make_source: MakeSource, target: str) -> None:
    """MySQL 9.6 and later log them; for earlier versions and MariaDB they are worked out."""
    source = make_source("oracle", script())
    source.run("CREATE TABLE remark (id INT PRIMARY KEY, book_id INT,"
               " FOREIGN KEY (book_id) REFERENCES book (id) ON DELETE SET NULL);"
               "INSERT INTO remark VALUES (1, 1), (2, 2), (3, 11)")  # fmt: skip
    folder = source.folder({**PATTERNS, "remark": "SELECT * FROM remark WHERE id = ?"}, target)
    load(folder, target, is_followed=True)
    source.run("DELETE FROM author WHERE id = 1")
    source.run("UPDATE author SET id = 70 WHERE id = 2")
    source.run("SET foreign_key_checks = 0; DELETE FROM author WHERE id = 3")
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target, is_dry_run=True))


def test_a_transaction_that_is_logged_and_not_yet_committed_is_not_lost(
    make_source: MakeSource, target: str
) -> None:
    """It waits for a replica's confirmation: it is in the log, and in no snapshot yet."""
    source = make_source("oracle", script())
    folder = source.folder(PATTERNS, target)
    assert source.server is not None
    source.server.execute(
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';"
        "SET GLOBAL rpl_semi_sync_source_enabled = 1;"
        "SET GLOBAL rpl_semi_sync_source_timeout = 6000",
        source.database,
    )
    try:
        waiting = threading.Thread(
            target=source.run, args=("UPDATE author SET name = 'Late' WHERE id = 1",)
        )
        waiting.start()
        time.sleep(0.5)
        load(folder, target, is_followed=True)
        waiting.join()
    finally:
        source.server.execute("UNINSTALL PLUGIN rpl_semi_sync_source", source.database)
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))


def test_transactions_with_a_tag_and_tables_made_of_others_are_followed(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("oracle", script())
    folder = moved(source, target)
    assert source.server is not None
    user = source.server.user
    source.server.execute(f"GRANT TRANSACTION_GTID_TAG ON *.* TO {user}", source.database)
    source.server.execute(
        "SET gtid_next = 'AUTOMATIC:shop'; UPDATE author SET name = 'Tagged' WHERE id = 1;"
        "SET gtid_next = 'AUTOMATIC'; CREATE TABLE other AS SELECT * FROM author;"
        "UPDATE author SET name = 'Later' WHERE id = 2; FLUSH BINARY LOGS",
        source.database,
    )
    source.server.execute("DROP TABLE other", source.database)
    follow(folder, target, is_once=True)
    assert_same(verify(folder, target))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("binlog_transaction_compression = ON", "binlog_transaction_compression=OFF"),
        ("binlog_row_value_options = PARTIAL_JSON", "binlog_row_value_options=''"),
        ("binlog_row_image = MINIMAL", "binlog_row_image"),
    ],
)
def test_a_log_in_another_form_is_refused_with_what_to_set(
    make_source: MakeSource, target: str, setting: str, said: str
) -> None:
    schema = "CREATE TABLE page (id INT PRIMARY KEY, content JSON)"
    source = make_source("oracle", schema)
    folder = source.folder({"page": "SELECT * FROM page WHERE id = ?"}, target)
    assert source.server is not None
    source.run("INSERT INTO page VALUES (1, JSON_OBJECT('a', repeat('x', 500), 'b', 1))")
    name = setting.partition(" ")[0]
    source.server.execute(f"SET GLOBAL {setting}", source.database)
    try:
        with pytest.raises(PartitaError, match=said):
            load(folder, target, is_followed=True)
    finally:
        source.server.execute(f"SET GLOBAL {name} = DEFAULT", source.database)
    load(folder, target, is_followed=True)
    # A session may have this setting, whatever the server's is.
    source.server.execute(
        f"SET SESSION {setting}; UPDATE page SET content = JSON_SET(content, '$.b', 2)",
        source.database,
    )
    with pytest.raises(PartitaError, match=said):
        follow(folder, target, is_once=True)


def test_what_skips_the_triggers_of_the_fence_is_refused_too(
    make_source: MakeSource, target: str
) -> None:
    source, folder, _ = ready(make_source, target, "oracle")
    assert source.server is not None
    source.server.execute("SET GLOBAL sql_require_primary_key = ON", source.database)
    try:
        cutover(folder, target)
    finally:
        source.server.execute("SET GLOBAL sql_require_primary_key = OFF", source.database)
    for statement in (
        "TRUNCATE TABLE book",
        "DELETE FROM author WHERE id = 1",
        "REPLACE INTO book VALUES (1, 1, 'x', 1)",
        "INSERT INTO book VALUES (1, 1, 'x', 1) AS new ON DUPLICATE KEY UPDATE title = new.title",
    ):
        with pytest.raises(Exception, match=r"was moved|foreign key constraint"):
            source.run(statement)
    assert rows_of(source, "SELECT count(*) FROM book") == [(40,)]
    finish(folder, target)
    assert tables_of(source) == {"author", "book"}
    source.run("TRUNCATE TABLE book")


def tables_of(source: Sql) -> set[str]:
    return {name for (name,) in rows_of(source, "SHOW TABLES")}
