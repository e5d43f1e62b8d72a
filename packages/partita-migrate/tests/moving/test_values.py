"""A value from the log equals the value from a SELECT, in every type and at every edge."""

from __future__ import annotations

from decimal import Decimal

import pytest

from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.switching.cutover import cutover
from partita_migrate.moving.switching.rollback import rollback
from partita_migrate.moving.verifying.verify import verify

from .conftest import MakeSource
from .test_life import Application, rows_of
from .test_move import assert_same, live

MYSQL = (
    """
    CREATE TABLE kinds (
        id BIGINT UNSIGNED PRIMARY KEY, a TINYINT, b TINYINT(1), c SMALLINT UNSIGNED,
        d MEDIUMINT UNSIGNED, e INT UNSIGNED, f BIGINT, g DECIMAL(30,10), h FLOAT, i DOUBLE,
        j BIT(1), k BIT(12), l CHAR(10), m VARCHAR(20), n TEXT, o BINARY(8), p VARBINARY(20),
        q BLOB, r DATE, s TIME, t TIME(3), u DATETIME, v DATETIME(6), w TIMESTAMP NULL,
        x TIMESTAMP(3) NULL, y YEAR, z JSON, aa ENUM('x','y','ü'), ab SET('p','q','r'), ac UUID,
        ad INET6, ae INET4, af POINT, ag LONGTEXT, ah VARCHAR(20) CHARACTER SET latin1,
        ai TIME(6), aj CHAR(5) CHARACTER SET latin1, ak DECIMAL(5,0), al DECIMAL(4,4),
        am VARCHAR(300), an TIME(1), ao DATETIME(3)
    )
    """,
    [
        "(18446744073709551615,-5,1,65535,16777215,4294967295,-9223372036854775808,"
        "'-12345678901234567890.1234567891',0.1,0.1,1,b'101010101010','ab','ü€😀','text',"
        "x'0102000000','','blob','2020-01-02','-12:30:05','-12:30:05.250','2020-01-02 03:04:05',"
        "'2020-01-02 03:04:05.000123','2020-01-02 03:04:05','2020-01-02 03:04:05.120',2020,"
        "'{\"a\": 1.50}','ü','p,r','123e4567-e89b-12d3-a456-426655440000',"
        "'2001:db8::ff00:42:8329','10.0.0.1',ST_GeomFromText('POINT(1 2)'),'long','é',"
        "'-00:00:00.500000','é',-99999,-0.0001,'long enough','-00:00:01.5',"
        "'2020-01-02 03:04:05.5')",
        "(1,0,2,0,0,0,0,'0',-1e30,1e300,0,0,'','','','',x'00','','0000-00-00','838:59:59',"
        "'00:00:00.000','0000-00-00 00:00:00','2020-00-00 03:04:05.000000','0000-00-00 00:00:00',"
        "NULL,0,'[]','','','00000000-0000-0000-0000-000000000000','::','0.0.0.0',NULL,'','',"
        "'12:00:00.000001','',0,0.5,'','00:00:00.1','0000-00-00 00:00:00.000')",
    ],
)
POSTGRESQL = (
    """
    CREATE TYPE mood AS ENUM ('fine', 'so so');
    CREATE DOMAIN positive AS INT CHECK (value > 0);
    CREATE TABLE kinds (
        id BIGINT PRIMARY KEY, a SMALLINT, b BOOLEAN, c NUMERIC, d NUMERIC(10,2), e REAL,
        f DOUBLE PRECISION, g CHAR(5), h VARCHAR(20), i TEXT, j BYTEA, k DATE, l TIME, m TIMETZ,
        n TIMESTAMP, o TIMESTAMPTZ, p INTERVAL, q JSON, r JSONB, s UUID, t INT[], u TEXT[][],
        v MONEY, w INET, x CIDR, y POINT, z BIT(5), aa VARBIT, ab mood, ac positive, ad INT4RANGE,
        ae XML, af TSVECTOR, ag MACADDR, ah INT GENERATED ALWAYS AS (a + 1) STORED
    )
    """,
    [
        "(9223372036854775807,-5,true,'12345678901234567890.123400',12.50,0.1,0.1,'ab','ü€😀','text',"
        "'\\x00ff','2020-01-02','03:04:05.5','03:04:05+02','2020-01-02 03:04:05.120',"
        "'2020-01-02 03:04:05+02','1 mon 2 days 03:00:00','{\"a\":  1.50}','{\"a\": [1, null]}',"
        "'123E4567-e89b-12d3-a456-426655440000','{1,NULL,3}','{{a,\"b,c\"},{d,e}}','1234.50',"
        "'::ffff:1.2.3.4','10.0.0.0/8','(1,2)',B'10101',B'1','so so',5,'[1,5)','<a/>',"
        "'a b','08:00:2b:01:02:03')",
        "(1,0,false,'NaN',0,'Infinity','-0','','','','','infinity','00:00','00:00+00',"
        "'infinity','-infinity','0','null','null',NULL,'{}','{}','-0.01','2001:db8::1/64',NULL,"
        "NULL,NULL,NULL,NULL,NULL,'empty',NULL,'',NULL)",
    ],
)
SQLITE = (
    "CREATE TABLE kinds (id TEXT PRIMARY KEY, a INTEGER, b REAL, c BLOB, d NUMERIC, e);",
    ["('it''s', 9223372036854775807, 0.1, x'00ff', 1.50, 'any')", "('', -1, 1e300, '', 'text', 7)"],
)


@pytest.mark.parametrize(
    ("kind", "schema", "rows"),
    [("mysql", *MYSQL), ("postgresql", *POSTGRESQL), ("sqlite", *SQLITE)],
)
def test_a_followed_row_is_the_row_that_a_load_would_have_read(
    make_source: MakeSource, target: str, kind: str, schema: str, rows: list[str]
) -> None:
    source = make_source(kind, schema)
    folder = source.folder({"one": "SELECT * FROM kinds WHERE id = ?"}, target)
    load(folder, target, is_followed=True)
    names = ", ".join([*"abcdefghijklmnopqrstuvwxyz", *(f"a{letter}" for letter in "abcdefg")])
    into = f"kinds (id, {names})" if kind == "postgresql" else "kinds"
    mode = "SET sql_mode = '', time_zone = '+02:00'; " if kind == "mysql" else ""
    for row in rows:
        source.run(f"{mode}INSERT INTO {into} VALUES {row}")
    source.run(f"{mode}UPDATE kinds SET a = 3 WHERE id <> '1'")
    follow(folder, target, is_once=True)
    found = verify(folder, target, is_dry_run=True)
    assert found.rows == len(rows)
    assert_same(found)


CAST = {"mysql": "CAST({} AS CHAR)", "postgresql": "CAST({} AS TEXT)"}


@pytest.mark.parametrize("kind", ["mysql", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_what_dynamodb_has_no_number_or_map_for_returns_as_it_was(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(
        kind,
        "CREATE TABLE kinds (id INT PRIMARY KEY, a INT, b DOUBLE PRECISION, c NUMERIC(50), d JSON);"
        f"INSERT INTO kinds VALUES (1, 1, 1e300, {'7' * 45}, 'null'), (2, 1, 0, 0, NULL),"
        """(3, 1, 0, 0, '{"": 1}'), (4, 1, 0, 0, '"{}"'), (5, 1, 0, 0, '"12"')""",
    )
    folder = source.folder({"one": "SELECT * FROM kinds WHERE id = ?"}, target)
    load(folder, target, is_followed=True)
    assert_same(verify(folder, target))
    cutover(folder, target)
    application = Application(folder, target)
    for item in live(folder, target):
        application.set(item, "a", {"N": "2"})
        if item.get("d") == {"S": '{"": 1}'}:
            application.set(item, "d", {"S": '{"": 2}'})
    rollback(folder, target)
    rows = rows_of(source, "SELECT a, b = 1e300, c, d IS NULL FROM kinds WHERE id < 3 ORDER BY id")
    assert rows == [(2, True, Decimal("7" * 45), False), (2, False, Decimal(0), True)]
    documents = rows_of(
        source, f"SELECT {CAST[kind].format('d')} FROM kinds WHERE id > 2 ORDER BY id"
    )
    assert documents == [('{"": 2}',), ('"{}"',), ('"12"',)]


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_rows_are_read_by_a_primary_key_with_a_date(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(
        kind,
        "CREATE TABLE rate (currency VARCHAR(3), day DATE, price DECIMAL(9, 4) NOT NULL,"
        " PRIMARY KEY (currency, day));"
        "INSERT INTO rate VALUES ('EUR', '2026-01-10', 1.5), ('EUR', '2026-01-09', 1.25),"
        " ('CHF', '2025-12-31', 0.9)",
    )
    patterns = {"one": "SELECT * FROM rate WHERE currency = ? AND day = ?"}
    folder = source.folder(patterns, target)

    load(folder, target, is_followed=True)

    found = verify(folder, target, is_dry_run=True)
    assert found.rows == 3
    assert_same(found)


def test_rows_are_found_as_their_collation_compares(make_source: MakeSource, target: str) -> None:
    """A reference may differ in case from what it refers to, also after it has changed."""
    text = "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci"
    source = make_source(
        "mysql",
        f"CREATE TABLE towns (name {text} PRIMARY KEY, size INT NOT NULL);"
        f"CREATE TABLE people (id INT PRIMARY KEY, town {text} NOT NULL,"
        " FOREIGN KEY (town) REFERENCES towns (name));"
        "INSERT INTO towns VALUES ('Ystad', 1), ('a_b', 2), ('ab', 3);"
        "INSERT INTO people VALUES (1, 'üstad'), (2, 'A_B'), (3, 'ystad ')",
    )
    patterns = {
        "town": "SELECT * FROM towns WHERE name = ?",
        "with town": "SELECT p.id, t.size FROM people p JOIN towns t ON t.name = p.town"
        " WHERE p.town = ?",
    }
    folder = source.folder(patterns, target)
    load(folder, target, is_followed=True)
    source.run("UPDATE towns SET size = 9 WHERE name = 'YSTAD'")
    source.run("INSERT INTO people VALUES (4, 'Üstad'); DELETE FROM people WHERE town = 'a_b'")
    follow(folder, target, is_once=True)
    found = verify(folder, target, is_dry_run=True)
    assert found.rows == 6
    assert_same(found)
