"""Tests the analyze stage on real servers, and compares its figures with the rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita.database.item.item_sizes import item_size
from partita.errors import PartitaError
from partita_migrate.understanding.analysis import Analysis
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.measuring.table_sampling import RowSample
from partita_migrate.understanding.schema.inventory import Inventory, SourceTable
from partita_migrate.understanding.sources.column_reading import readings
from partita_migrate.understanding.sources.schema_reflection import reflect
from partita_migrate.understanding.sources.source_connection import connect
from partita_migrate.workspace.migration_folder import Folder
from testkit.servers.database_servers import PASSWORD, DatabaseServer

MakeFolder = Callable[..., Folder]

NOT_MINED = "[analyze]\nmine = false\n"


def planned(folder: Folder) -> Inventory:
    """Writes the inventory, as the stage before does."""
    with connect(folder) as source:
        inventory = reflect(source)
    folder.write_json("inventory.json", inventory)
    return inventory


def items_of(folder: Folder, table: SourceTable) -> list[dict[str, Any]]:
    """Returns every row as an item."""
    with connect(folder) as source:
        asked = readings(source, table, {column.name for column in table.columns})
        select = ", ".join(one.sql for one in asked)
        rows = source.rows(f"SELECT {select} FROM {source.relation(table)} ORDER BY 1")
    found = []
    for row in rows:
        item = {}
        for one, value in zip(asked, row, strict=True):
            assert one.convert is not None
            converted = one.convert(value)
            if converted is not None:
                item[one.column.name] = converted
        found.append(item)
    return found


@pytest.fixture
def sqlite_folder(tmp_path: Path, make_folder: MakeFolder) -> Callable[..., Folder]:
    def make(script: str, more: str = NOT_MINED) -> Folder:
        path = tmp_path / "source.db"
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
        return make_folder(f"sqlite:///{path}", more)

    return make


NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "


def test_a_small_table_is_read_whole_and_its_figures_are_exact(
    sqlite_folder: Callable[..., Folder],
) -> None:
    folder = sqlite_folder(
        "CREATE TABLE note (id INTEGER PRIMARY KEY, kind TEXT, body TEXT);"
        + NUMBERS.format(count=100)
        + "INSERT INTO note SELECT i, CASE WHEN i <= 60 THEN 'a' ELSE NULL END,"
        " substr(hex(zeroblob(50)), 1, i) FROM n;"
    )
    inventory = planned(folder)
    (found,) = analyze(folder).tables
    sizes = sorted(item_size(item) for item in items_of(folder, inventory.tables[0]))
    assert (found.rows, found.sampled) == (100, 100)
    assert found.item_bytes.mean == pytest.approx(sum(sizes) / 100, abs=0.06)
    assert found.item_bytes.p50 == sizes[49]
    assert found.item_bytes.p95 == sizes[94]
    assert found.item_bytes.max == sizes[-1]
    assert {one.name: one.null_share for one in found.columns} == {"id": 0, "kind": 0.4, "body": 0}
    assert (found.columns[0].least, found.columns[0].most) == ("1", "100")
    assert found.columns[2].least is None
    assert found.confidence == "All 100 rows: every row was read, the figures are exact."


def test_an_empty_table_is_told_as_one(sqlite_folder: Callable[..., Folder]) -> None:
    folder = sqlite_folder("CREATE TABLE bare (id INTEGER PRIMARY KEY, x TEXT)")
    planned(folder)
    (found,) = analyze(folder).tables
    assert (found.rows, found.sampled, found.item_bytes.max) == (0, 0, 0)
    assert found.confidence == "The table has no rows."
    assert found.keys[0].reason == "No row has a value."


def test_a_large_table_is_sampled_by_random_keys_and_again_the_same(
    sqlite_folder: Callable[..., Folder],
) -> None:
    """Three of four keys are missing, and those at the ends are far from the middle."""
    folder = sqlite_folder(
        "CREATE TABLE event (id INTEGER PRIMARY KEY, who INTEGER, body TEXT);"
        "CREATE INDEX by_who ON event (who);"
        + NUMBERS.format(count=40_000)
        + "INSERT INTO event SELECT i * 4, CASE WHEN i % 5 = 0 THEN 7 ELSE i END,"
        " substr(hex(zeroblob(500)), 1, i % 1000) FROM n;",
        "[analyze]\nmine = false\nsample = 4000\nseed = 3\n",
    )
    inventory = planned(folder)
    first = analyze(folder)
    (found,) = first.tables
    assert 4000 <= found.sampled < 4400
    assert found.rows == pytest.approx(40_000, rel=0.05)
    assert "drawn at random with replacement, by random values of id" in found.confidence
    sizes = sorted(item_size(item) for item in items_of(folder, inventory.tables[0]))
    truth = sizes[int(0.95 * len(sizes)) - 1]
    assert found.item_bytes.p95_interval is not None
    least, most = found.item_bytes.p95_interval
    assert least <= truth <= most
    assert most - least < 0.05 * truth
    assert found.item_bytes.mean == pytest.approx(sum(sizes) / len(sizes), rel=0.05)
    who = next(key for key in found.keys if key.columns == ["who"])
    assert who.top_value == "7"
    assert who.top_share == pytest.approx(0.2, abs=0.02)
    assert who.distinct == pytest.approx(32_001, rel=0.1)
    written = (folder.path / "analysis.json").read_bytes()
    analyze(folder)
    assert (folder.path / "analysis.json").read_bytes() == written


def test_a_sample_draws_every_row_equally_often(sqlite_folder: Callable[..., Folder]) -> None:
    """A gap before a row must not make it more likely."""
    folder = sqlite_folder(
        "CREATE TABLE gap (id INTEGER PRIMARY KEY);"
        + NUMBERS.format(count=100)
        + "INSERT INTO gap SELECT CASE WHEN i <= 50 THEN i ELSE i * 20 END FROM n;"
    )
    table = planned(folder).tables[0]
    drawn: dict[int, int] = {}
    with connect(folder) as source:
        sample = RowSample(source, table, readings(source, table), 20_000, seed=9)
        for draws in sample._random_keys("id", 1, 2000, 100):
            for (key,), times, _ in draws:
                drawn[key] = drawn.get(key, 0) + times
    assert len(drawn) == 100
    # 200 draws each on average, with a standard deviation of 14.
    assert min(drawn.values()) > 130
    assert max(drawn.values()) < 270


BIG = {
    "mysql": """
        CREATE TABLE player_game (player INT, game INT, score INT, PRIMARY KEY (player, game));
        INSERT INTO player_game SELECT seq DIV 10, seq MOD 10, seq FROM seq_1_to_30000;
        CREATE TABLE sparse (id BIGINT PRIMARY KEY, label VARCHAR(20));
        INSERT INTO sparse SELECT seq * 1000000007, CONCAT('n', seq) FROM seq_1_to_30000;
        ANALYZE TABLE player_game, sparse;
    """,
    "postgresql": """
        CREATE TABLE player_game (player INT, game INT, score INT, PRIMARY KEY (player, game));
        INSERT INTO player_game SELECT i / 10, i % 10, i FROM generate_series(1, 30000) AS n (i);
        CREATE TABLE sparse (id BIGINT PRIMARY KEY, label VARCHAR(20));
        INSERT INTO sparse SELECT i * 1000000007::bigint, 'n' || i
            FROM generate_series(1, 30000) AS n (i);
        ANALYZE player_game; ANALYZE sparse;
    """,
}


def test_tables_without_a_key_to_guess_are_sampled_too(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = server.create("analyze_big", BIG[server.scheme])
    folder = make_folder(url, "[analyze]\nmine = false\nsample = 6000\n")
    planned(folder)
    found = {one.table: one for one in analyze(folder).tables}
    how = {
        "mysql": "in one pass over the table",
        "postgresql": "of pages drawn at random (TABLESAMPLE SYSTEM)",
    }[server.scheme]
    for one in found.values():
        assert how in one.confidence
        assert 2000 < one.sampled < 4000
        assert one.rows == pytest.approx(30_000, rel=0.2)
    player = next(key for key in found["player_game"].keys if key.columns == ["player"])
    assert player.rows_per_value == pytest.approx(10, rel=0.5) or server.scheme == "postgresql"


def test_keys_beyond_63_bits_are_drawn_too(
    mariadb: DatabaseServer, make_folder: MakeFolder
) -> None:
    script = (
        "CREATE TABLE wide (id BIGINT UNSIGNED PRIMARY KEY);"
        "INSERT INTO wide SELECT 18446744073709551615 - seq FROM seq_1_to_9000;"
    )
    url = mariadb.create("analyze_wide", script)
    folder = make_folder(url, "[analyze]\nmine = false\nsample = 2000\n")
    planned(folder)
    (found,) = analyze(folder).tables
    assert "by random values of id" in found.confidence
    assert found.rows == pytest.approx(9000, rel=0.02)


def test_a_table_that_has_grown_since_the_plan_is_sampled_all_the_same(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    url = server.create("analyze_grown", "CREATE TABLE grown (id INT PRIMARY KEY)")
    folder = make_folder(url, "[analyze]\nmine = false\nsample = 1000\n")
    planned(folder)
    numbers = {"mysql": "seq FROM seq_1_to_9000", "postgresql": "generate_series(1, 9000)"}
    server.execute(f"INSERT INTO grown SELECT {numbers[server.scheme]}", "analyze_grown")
    (found,) = analyze(folder).tables
    assert 1000 <= found.sampled < 1200
    assert found.rows == 9000


TYPES = {
    "mysql": (
        """
        CREATE TABLE everything (
            id INT PRIMARY KEY, tiny TINYINT(1), big BIGINT UNSIGNED, exact DECIMAL(65, 20),
            single FLOAT, wide DOUBLE, flag BIT(1), bits BIT(12), day DATE, moment DATETIME(6),
            instant TIMESTAMP NULL, span TIME(3), year YEAR, fixed BINARY(3), bytes BLOB,
            label ENUM('new', 'old'), labels SET('a', 'b', 'c'), doc JSON, body LONGTEXT,
            latin VARCHAR(20) CHARACTER SET latin1, who UUID
        );
        INSERT INTO everything VALUES (
            1, 1, 18446744073709551615, 123456789012345678901234567890123456789.5,
            16777217, 0.1, b'1', b'101', '2021-11-22', '2021-11-22 10:15:30.123450',
            '2021-11-22 10:15:30', '-12:30:00.5', 2021, 'ab', x'00ff',
            'new', 'c,a', '{"a": [1, 1.10]}', 'body', 'naïve',
            '550e8400-e29b-41d4-a716-446655440000'
        );
        INSERT INTO everything (id, tiny, labels, single) VALUES (2, 5, '', 0.1);
        """,
        [
            {
                "id": {"N": "1"}, "tiny": {"BOOL": True}, "big": {"N": "18446744073709551615"},
                "exact": {"S": "123456789012345678901234567890123456789.50000000000000000000"},
                "single": {"N": "16777216"}, "wide": {"N": "0.1"}, "flag": {"BOOL": True},
                "bits": {"N": "5"}, "day": {"S": "2021-11-22"},
                "moment": {"S": "2021-11-22T10:15:30.12345"},
                "instant": {"S": "2021-11-22T10:15:30+00:00"}, "span": {"S": "-12:30:00.5"},
                "year": {"N": "2021"}, "fixed": {"B": "YWIA"}, "bytes": {"B": "AP8="},
                "label": {"S": "new"}, "labels": {"SS": ["a", "c"]},
                "doc": {"M": {"a": {"L": [{"N": "1"}, {"N": "1.1"}]}}}, "body": {"S": "body"},
                "latin": {"S": "naïve"}, "who": {"S": "550e8400-e29b-41d4-a716-446655440000"},
            },
            {"id": {"N": "2"}, "tiny": {"N": "5"}, "labels": {"L": []}, "single": {"N": "0.1"}},
        ],
    ),
    "postgresql": (
        """
        CREATE TYPE mood AS ENUM ('sad', 'happy');
        CREATE TABLE everything (
            id INT PRIMARY KEY, flag BOOLEAN, exact NUMERIC, single REAL, wide DOUBLE PRECISION,
            day DATE, moment TIMESTAMP, instant TIMESTAMPTZ, clock TIME, span INTERVAL,
            bytes BYTEA, doc JSON, docb JSONB, who UUID, numbers INT[], days DATE[], label mood,
            address INET, range INT4RANGE, price MONEY, body TEXT, "odd:name" TEXT
        );
        INSERT INTO everything VALUES (
            1, true, 123456789012345678901234567890.123, 0.1, 1e300,
            '2021-11-22', '2021-11-22 10:15:30.123450', '2021-11-22 12:15:30+02', '10:15:30.5',
            '1 mon 3 days', '\\x00ff', '{"a": 1, "a": 2}', '{"a": 12345678901234567890.10}',
            '550E8400-E29B-41D4-A716-446655440000', '{1,NULL,3}', '{2021-11-22}', 'happy',
            '10.0.0.1/8', '[1,5)', 12.5, 'naïve', 'x'
        );
        INSERT INTO everything (id, exact, single, day, moment, instant) VALUES
            (2, 'NaN', '-Infinity', 'infinity', '0044-03-15 00:00:00 BC', '-infinity');
        """,
        [
            {
                "id": {"N": "1"}, "flag": {"BOOL": True},
                "exact": {"N": "123456789012345678901234567890.123"}, "single": {"N": "0.1"},
                "wide": {"S": "1E+300"}, "day": {"S": "2021-11-22"},
                "moment": {"S": "2021-11-22T10:15:30.12345"},
                "instant": {"S": "2021-11-22T10:15:30+00:00"}, "clock": {"S": "10:15:30.5"},
                "span": {"S": "1 mon 3 days"}, "bytes": {"B": "AP8="},
                "doc": {"S": '{"a": 1, "a": 2}'},
                "docb": {"M": {"a": {"N": "12345678901234567890.1"}}},
                "who": {"S": "550e8400-e29b-41d4-a716-446655440000"},
                "numbers": {"L": [{"N": "1"}, {"NULL": True}, {"N": "3"}]},
                "days": {"L": [{"S": "2021-11-22"}]}, "label": {"S": "happy"},
                "address": {"S": "10.0.0.1/8"}, "range": {"S": "[1,5)"}, "price": {"N": "12.5"},
                "body": {"S": "naïve"}, "odd:name": {"S": "x"},
            },
            {
                "id": {"N": "2"}, "exact": {"S": "NaN"}, "single": {"S": "-Infinity"},
                "day": {"S": "infinity"}, "moment": {"S": "0044-03-15 00:00:00 BC"},
                "instant": {"S": "-infinity"},
            },
        ],
    ),
}  # fmt: skip


def test_every_type_arrives_without_loss(server: DatabaseServer, make_folder: MakeFolder) -> None:
    script, expected = TYPES[server.scheme]
    folder = make_folder(server.create("analyze_types", script), NOT_MINED)
    inventory = planned(folder)
    items = items_of(folder, inventory.tables[0])
    assert items == expected
    analysis = analyze(folder)
    assert analysis.problems == []
    (found,) = analysis.tables
    assert found.item_bytes.max == item_size(items[0])
    by_name = {one.name: one for one in found.columns}
    assert by_name["bytes"].bytes_max == 2
    assert by_name["body"].bytes_max == len(items[0]["body"]["S"].encode())


def test_a_table_that_cannot_be_read_does_not_stop_the_others(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    script = "CREATE TABLE one (id INT PRIMARY KEY); CREATE TABLE two (id INT PRIMARY KEY);"
    folder = make_folder(server.create("analyze_gone", script), NOT_MINED)
    planned(folder)
    server.execute("DROP TABLE one", "analyze_gone")
    found = analyze(folder)
    assert [one.table for one in found.tables] == ["two"]
    assert [one.subject for one in found.problems] == ["one"]
    assert "run `partita migrate plan` again" in found.problems[0].reason


def test_what_is_done_when_the_server_goes_away_is_kept(
    server: DatabaseServer, make_folder: MakeFolder
) -> None:
    script = "".join(f"CREATE TABLE t{i} (id INT PRIMARY KEY);" for i in range(5))
    folder = make_folder(server.create("analyze_lost", script), NOT_MINED)
    planned(folder)

    def cut(description: str, done: int, total: int) -> None:
        if description == "sampling t3":
            end_sessions(server, "analyze_lost")

    with pytest.raises(PartitaError, match="The figures of 3 of 5 tables are kept"):
        analyze(folder, progress=cut)
    kept = folder.read_json("analysis.json", Analysis)
    assert [one.table for one in kept.tables] == ["t0", "t1", "t2"]
    assert PASSWORD not in "".join(path.read_text() for path in folder.path.iterdir())


def end_sessions(server: DatabaseServer, database: str) -> None:
    connection = server.connect()
    try:
        cursor = connection.cursor()
        if server.scheme == "mysql":
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE db = %s", [database]
            )
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL {number}")
        else:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [database],
            )
    finally:
        connection.close()


def test_hot_keys_are_found_at_the_rates_of_the_patterns(
    sqlite_folder: Callable[..., Folder],
) -> None:
    folder = sqlite_folder(
        "CREATE TABLE hit (id INTEGER PRIMARY KEY, brand INTEGER);"
        + NUMBERS.format(count=1000)
        + "INSERT INTO hit SELECT i, CASE WHEN i <= 900 THEN 1 ELSE i END FROM n;"
    )
    (folder.path / "patterns.toml").write_text(
        '[[pattern]]\nname = "hits of a brand"\ntable = "hit"\nby = "brand"\nrate = 20000\n'
        'items = 1\n[[pattern]]\nname = "add a hit"\ntable = "hit"\nrate = 10\n'
    )
    planned(folder)
    (found,) = analyze(folder).tables
    keys = {tuple(key.columns): key for key in found.keys}
    assert keys[("brand",)].is_hot
    assert "90% of the rows share the value 1" in keys[("brand",)].reason
    assert not keys[("id",)].is_hot
    assert found.growth_rows_per_day == 864_000


def test_without_a_plan_the_person_is_told_to_make_one(make_folder: MakeFolder) -> None:
    with pytest.raises(PartitaError, match="run `partita migrate plan` first"):
        analyze(make_folder("mysql://nobody@127.0.0.1:1/none"))


def test_progress_goes_from_nothing_to_all(sqlite_folder: Callable[..., Folder]) -> None:
    folder = sqlite_folder(
        "CREATE TABLE one (id INTEGER PRIMARY KEY); CREATE TABLE two (id INTEGER PRIMARY KEY);"
        + NUMBERS.format(count=5000)
        + "INSERT INTO one SELECT i FROM n;"
    )
    planned(folder)
    told: list[tuple[str, int, int]] = []
    analyze(folder, progress=lambda *step: told.append(step))
    done = [step[1] for step in told]
    assert done == sorted(done)
    assert told[0] == ("sampling one", 0, told[-1][2])
    assert told[-1][1] == told[-1][2] > 0
    assert len(told) > 5
