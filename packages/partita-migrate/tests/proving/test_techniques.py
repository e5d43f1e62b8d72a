"""What an expert would propose for reads without a key, proven on rows like everything else."""

from __future__ import annotations

import re
import runpy
import shutil
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from partita.database.item.attribute_values import Item
from partita.errors import PartitaError
from partita_migrate.costing.capacity_estimate import units
from partita_migrate.designing.model_stage import model
from partita_migrate.handover.create_stage import create
from partita_migrate.model.design import Design, ItemAttribute
from partita_migrate.model.model_files import read_design, to_toml
from partita_migrate.model.volumes import read_volumes
from partita_migrate.proving.prove import test as prove
from partita_migrate.proving.sandbox.source_snapshot import SourceSnapshot
from partita_migrate.proving.staged_items import StagedItems
from partita_migrate.row_store.staged_rows import StagedRows
from partita_migrate.understanding.patterns.pattern_files import read_patterns
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.understanding.sources.source_connection import connect
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import KEEPING, designed, sqlite_database
from testkit.data.shop import patterns_toml
from testkit.packaging import function_packages
from testkit.requirements import needs_services
from testkit.servers import processes
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from . import public
from .test_prove import SINGLE, WIDE, verdicts, with_attributes

KEPT = "aggregate kept by a stream's consumer"
UNSERVED = {
    "tpcc": set(),
    "questions": {
        "search",
    },
    "human resources": {"name begins"},
    "airline": set(),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Folder]:
    found = {}
    for name, one in public.SCHEMAS.items():
        path = tmp_path_factory.mktemp("public")
        url = sqlite_database(path / "source.db", one.script("sqlite"))
        found[name] = designed(path / "folder", url, one.patterns, KEEPING)
    return found


def narrowed(folder: Folder, path: Path, schema: str, *names: str, more: str = "") -> Folder:
    """The same source, with some of its patterns and other expectations."""
    shutil.copytree(folder.path, path / "narrow")
    chosen = {name: public.SCHEMAS[schema].patterns[name] for name in names}
    narrow = path / "narrow"
    (narrow / "patterns.toml").write_text(patterns_toml(chosen))
    (narrow / "migration.toml").write_text((narrow / "migration.toml").read_text() + more)
    found = Folder.open(narrow)
    model(found)
    return found


def technique(design: Design, pattern: str) -> str:
    return next((one.name for one in design.techniques if pattern in one.patterns), "")


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        *((schema, SINGLE) for schema in public.SCHEMAS),
        *(pytest.param(schema, WIDE, marks=pytest.mark.soak) for schema in public.SCHEMAS),
    ],
)
def test_public_schemas_are_proven_or_honestly_unserved(
    folders: dict[str, Folder], endpoint: str, schema: str, name: str
) -> None:
    run = prove(folders[schema], name=name, endpoint=endpoint, is_all=True)
    assert [(one.pattern, one.differences) for one in run.functional if one.differences] == []
    assert {one.pattern for one in run.functional if one.verdict != "proven"} == UNSERVED[schema]
    assert run.keys == []
    assert [one.table for one in run.way_back if not one.is_exact] == []


def test_each_technique_has_its_price_its_limit_and_the_next_best(
    folders: dict[str, Folder],
) -> None:
    wide, single = (read_design(folders["airline"], name) for name in (WIDE, SINGLE))
    assert technique(wide, "airports") == "priced Scan"
    assert technique(single, "airports") == "one constant partition"
    assert technique(single, "not yet gone") == "sparse index"
    for one in [*wide.techniques, *single.techniques]:
        assert one.why and one.cost and one.limit and one.next_best


EDGES = """
CREATE TABLE band (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE fan (id INTEGER PRIMARY KEY, mail TEXT NOT NULL, since DATE NOT NULL);
CREATE TABLE likes (
    fan_id INTEGER NOT NULL REFERENCES fan (id) ON DELETE CASCADE,
    band_id INTEGER NOT NULL REFERENCES band (id), PRIMARY KEY (fan_id, band_id)
);
CREATE TABLE ticket (
    code TEXT PRIMARY KEY, fan_id INTEGER NOT NULL REFERENCES fan (id) ON DELETE CASCADE
);
INSERT INTO band VALUES (1, 'Abba'), (2, 'Blur');
INSERT INTO fan VALUES (1, 'a@x.org', '2026-01-01'), (2, 'b@x.org', '2026-01-02');
INSERT INTO likes VALUES (1, 1), (1, 2), (2, 1);
INSERT INTO ticket VALUES ('t1', 1), ('t2', 1), ('t3', 2);
"""
EDGE_PATTERNS = {
    "bands of a fan": "SELECT band_id FROM likes WHERE fan_id = ?",
    "fans of a band": "SELECT fan_id FROM likes WHERE band_id = ?",
    "band": "SELECT name FROM band WHERE id = ?",
    "ticket": "SELECT * FROM ticket WHERE code = ?",
    "like": "INSERT INTO likes (fan_id, band_id) VALUES (?, ?)",
    "drop a fan": "DELETE FROM fan WHERE id = ?",
}


def test_edges_hot_keys_and_rows_that_go_with_others(tmp_path: Path, endpoint: str) -> None:
    """An adjacency list, a cache, and an index by value for a CASCADE; each with what it costs."""
    url = sqlite_database(tmp_path / "source.db", EDGES)
    folder = designed(tmp_path / "folder", url, EDGE_PATTERNS, KEEPING)
    written = (folder.path / "patterns.toml").read_text()
    (folder.path / "patterns.toml").write_text(written.replace('"5/s"', '"9000/s"'))
    model(folder)
    design = read_design(folder, SINGLE)
    named = {one.name: one for one in design.techniques}
    assert "bands of a fan" in named["adjacency list"].patterns
    assert "9,000 units a second" in named["adjacency list"].cost
    assert "band" in {name for one in design.techniques if "cache" in one.name
                      for name in one.patterns}  # fmt: skip
    assert named["index by value"].patterns == ["drop a fan"]
    assert "read units a call" in named["index by value"].cost
    for one in design.techniques:
        assert one.why and one.cost and one.limit and one.next_best
    run = prove(folder, name=SINGLE, endpoint=endpoint)
    assert set(verdicts(run).values()) == {"proven"}
    for index in ("adjacency list", "index by value"):
        place = named[index].place.split(", ")[-1]
        used = {one.index for one in design.access if one.pattern in named[index].patterns}
        assert place in used


def test_the_latest_of_a_large_table_are_in_partitions_by_date(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str
) -> None:
    folder = narrowed(
        folders["tpcc"], tmp_path, "tpcc", "latest orders", "new order", "carrier",
        more="[expect.orders]\nrows = 50_000_000\n",
    )  # fmt: skip
    for name in (WIDE, SINGLE):
        design = read_design(folder, name)
        assert technique(design, "latest orders") == "partitions by date"
        run = prove(folder, name=name, endpoint=endpoint)
        assert set(verdicts(run).values()) == {"proven"}
        (latest,) = [one for one in run.functional if one.pattern == "latest orders"]
        assert any("10 rows" in case for case in latest.cases)


def test_partitions_by_date_are_not_proposed_for_more_writes_than_one_takes(
    folders: dict[str, Folder], tmp_path: Path
) -> None:
    """All that is written now is in the newest."""
    folder = narrowed(
        folders["tpcc"], tmp_path, "tpcc", "latest orders", "new order",
        more="[expect.orders]\nrows = 50_000_000\n",
    )  # fmt: skip
    written = (folder.path / "patterns.toml").read_text()
    (folder.path / "patterns.toml").write_text(written.replace('"5/s"', '"3000/s"'))
    model(folder)
    for name in (WIDE, SINGLE):
        design = read_design(folder, name)
        assert technique(design, "latest orders") != "partitions by date"
        assert "latest orders" in {one.pattern for one in design.unserved}


def test_buckets_that_do_not_reach_the_newest_rows_are_refuted(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str
) -> None:
    folder = narrowed(
        folders["tpcc"], tmp_path, "tpcc", "latest orders",
        more="[expect.orders]\nrows = 50_000_000\n",
    )  # fmt: skip

    def short(one: ItemAttribute) -> ItemAttribute:
        return replace(one, last=one.first) if one.first else one

    design = with_attributes(read_design(folder, SINGLE), "orders", short)
    folder.write_text("mutated.toml", to_toml(design))
    run = prove(folder, name="mutated.toml", endpoint=endpoint)
    assert verdicts(run) == {"latest orders": "differs"}


def test_a_sparse_index_of_other_rows_is_refuted(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str
) -> None:
    folder = narrowed(folders["airline"], tmp_path, "airline", "not yet gone", "take off")

    def inverted(one: ItemAttribute) -> ItemAttribute:
        return replace(one, when=one.when.replace("is null", "is not null"))

    design = with_attributes(read_design(folder, SINGLE), "flights", inverted)
    folder.write_text("mutated.toml", to_toml(design))
    run = prove(folder, name="mutated.toml", endpoint=endpoint)
    assert verdicts(run)["not yet gone"] == "differs"


# What lies beside the tables.


def items_of(folder: Folder, design: Design, path: Path) -> list[tuple[str, Item]]:
    """Of every row, by the function that all stages use."""
    inventory = read_volumes(folder).inventory
    with connect(folder) as source, SourceSnapshot(source, inventory) as snapshot:
        staging = StagedRows(path / "rows", inventory, design)
        for table in inventory.tables:
            list(staging.fill(table.name, snapshot.rows(table)))
        making = StagedItems(path / "items", design, inventory, staging)
        making.make(lambda *_: None)
        found = list(making.all_items())
        making.close()
        staging.close()
    return found


@needs_services
def test_the_function_that_keeps_an_aggregate_counts_what_sql_counts(
    folders: dict[str, Folder], tmp_path: Path
) -> None:
    """On the stream of a running server, through changes and deletions."""
    few = {one.name for one in read_design(folders["questions"], WIDE).techniques}
    assert KEPT not in few, "two small rows are read for less"
    more = "[expect.votes]\nitem_kb = 100\n"
    folder = narrowed(folders["questions"], tmp_path, "questions", "score", more=more)
    design = read_design(folder, WIDE)
    said = next(one for one in design.techniques if "score" in one.patterns)
    assert said.name == KEPT
    assert "functions/denormalized/score.py" in said.why
    text = (folder.path / "functions/denormalized/score.py").read_text()
    (summed,) = re.findall(r"^SUMS = \['(\w+)'\]$", text, re.MULTILINE)
    votes = [one for one in items_of(folder, design, tmp_path) if one[0] == "votes"]
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory")
        create(folder, server.url, name=WIDE)
        dynamodb = server.client()
        dynamodb.create_table(
            TableName="votes_aggregates",
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        arn = dynamodb.describe_table(TableName="votes")["Table"]["LatestStreamArn"]
        functions = server.client("lambda")
        function_packages.create(functions, "score", text)
        functions.create_event_source_mapping(
            EventSourceArn=arn, FunctionName="score", StartingPosition="TRIM_HORIZON"
        )
        for name, item in votes:
            dynamodb.put_item(TableName=name, Item=item)
        gone, changed, *_ = (item for _, item in votes)
        table = design.table("votes")
        assert table is not None
        key = {one.name: gone[one.name] for one in table.keys}
        dynamodb.delete_item(TableName="votes", Key=key)
        dynamodb.put_item(TableName="votes", Item={**changed, summed: {"N": "7"}})
        database = sqlite3.connect(tmp_path / "changed.db")
        sqlite3.connect(folder.source.url.removeprefix("sqlite:///")).backup(database)
        database.execute("DELETE FROM votes WHERE id = ?", (gone["id"]["N"],))
        database.execute("UPDATE votes SET value = 7 WHERE id = ?", (changed["id"]["N"],))
        counted = "SELECT post_id, COUNT(*), SUM(value) FROM votes GROUP BY post_id"
        wanted = {(f"votes#{post}", rows, total) for post, rows, total in database.execute(counted)}

        def kept() -> set[tuple[str, int, int]]:
            items = dynamodb.scan(TableName="votes_aggregates", ConsistentRead=True)["Items"]
            return {
                (one["key"]["S"], int(one["rows"]["N"]), int(one[f"sum_{summed}"]["N"]))
                for one in items
                if one["key"]["S"].startswith("votes#") and one["rows"]["N"] != "0"
            }

        assert function_packages.wait_for(kept, lambda found: found == wanted) == wanted
        assert len(wanted) > 3


def test_a_group_that_one_item_cannot_count_is_kept_in_several(
    folders: dict[str, Folder], tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is voted today: 1,200 votes a second are 2,400 write units on one item."""
    more = "[expect.votes]\nitem_kb = 100\n"
    folder = narrowed(
        folders["questions"], tmp_path, "questions", "votes of a day", "vote", more=more
    )
    written = (folder.path / "patterns.toml").read_text()
    (folder.path / "patterns.toml").write_text(written.replace("5/s", "1200/s"))
    model(folder)
    said = next(one for one in read_design(folder, WIDE).techniques if one.name == KEPT)
    assert said.why.startswith("5 items hold the figures of each day")
    assert said.cost.startswith("2.5 read units a call, and 4,800 write units a second")
    assert "1,000 write units a second for one item; the group that changes most" in said.limit
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    function = runpy.run_path(str(folder.path / "functions/denormalized/votes_of_a_day.py"))
    table = function["dynamodb"]
    table.create_table(
        TableName=function["TABLE"],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    try:
        vote = {"entity_type": {"S": "votes"}, "day": {"S": "2026-11-18"}}
        records = [{"eventID": str(number), "dynamodb": {"NewImage": vote}} for number in range(40)]
        # Some come twice, as a stream gives them after a failure.
        function["handler"]({"Records": [*records, *records[:7]]}, None)
        found = table.scan(TableName=function["TABLE"])["Items"]
        kept = {
            one["key"]["S"]: int(one["rows"]["N"])
            for one in found
            if one["key"]["S"].startswith("votes#")
        }
        assert kept.keys() == {f"votes#2026-11-18#{shard}" for shard in range(5)}
        assert sum(kept.values()) == 40
    finally:
        table.delete_table(TableName=function["TABLE"])


def test_what_is_written_together_is_one_transaction_at_double_the_price(
    folders: dict[str, Folder], tmp_path: Path
) -> None:
    folder = narrowed(folders["tpcc"], tmp_path, "tpcc", "new order", "queue an order")
    alone = model(folder).comparison.designs[0].write_units
    written = (folder.path / "patterns.toml").read_text()
    together = written.replace('rate = "5/s"', 'rate = "5/s"\ntransaction = "order"')
    (folder.path / "patterns.toml").write_text(together)
    models = model(folder)
    assert models.comparison.designs[0].write_units == 2 * alone
    design = models.proposals[0].design
    assert {one.transaction for one in design.access} == {"order"}
    assert technique(design, "new order") == technique(design, "queue an order") == "transaction"


def test_a_read_in_a_transaction_and_a_low_peak_are_refused_with_the_line(
    folders: dict[str, Folder], tmp_path: Path
) -> None:
    folder = narrowed(folders["tpcc"], tmp_path, "tpcc", "warehouses")
    written = (folder.path / "patterns.toml").read_text()
    for line, reason in (('transaction = "x"', "it reads"), ("peak = 1", "is not a peak of 5/s")):
        (folder.path / "patterns.toml").write_text(written + line + "\n")
        with pytest.raises(PartitaError, match=reason):
            model(folder)


def test_foreign_keys_become_fan_outs_conditions_or_named_losses(
    folders: dict[str, Folder],
) -> None:
    kept = {
        (one.table, one.to, one.on_delete): one.kept_by
        for one in read_design(folders["questions"], SINGLE).references
    }
    assert kept["comments", "posts", "CASCADE"] == "fan-out"
    assert kept["comments", "users", "SET NULL"] == "fan-out"
    assert kept["post_tags", "tags", "RESTRICT"] == "nothing deletes"
    human = read_design(folders["human resources"], SINGLE).references
    assert {one.kept_by for one in human if one.to == "departments"} == {"condition"}


def test_a_search_that_nothing_serves_gets_a_service_beside_the_table(
    folders: dict[str, Folder],
) -> None:
    design = read_design(folders["questions"], SINGLE)
    (said,) = [one for one in design.techniques if "search" in one.patterns]
    assert said.name == "search service beside the table"
    assert said.cost.startswith("outside")
    assert "search" in {one.pattern for one in design.unserved}


GROWING = """
CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE bookings (
    account_id INTEGER NOT NULL REFERENCES accounts (id), booked_at DATETIME NOT NULL,
    document TEXT, PRIMARY KEY (account_id, booked_at)
);
INSERT INTO accounts VALUES (1, 'a'), (2, 'b');
INSERT INTO bookings VALUES
    (1, '2026-01-01 10:00:00', NULL), (1, '2026-01-02 10:00:00', printf('%.150000c', 'x')),
    (1, '2026-02-01 10:00:00', NULL), (2, '2026-02-03 10:00:00', NULL);
"""


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("growing")
    url = sqlite_database(path / "source.db", GROWING)
    patterns = {
        "bookings": "SELECT * FROM bookings WHERE account_id = ? ORDER BY booked_at",
        "book": "INSERT INTO bookings (account_id, booked_at) VALUES (?, ?)",
        "to decide": "SELECT name FROM accounts WHERE id = ? FOR UPDATE",
    }
    more = "\n[expect.bookings]\nrows = 90_000_000\n"
    return designed(path / "folder", url, patterns, more)


@pytest.mark.parametrize(
    ("name", "pattern", "words"),
    [
        ("large values in a bucket", "bookings", "bookings.document has values of 146 KB"),
        ("one table for each period", "book", "bookings only grows, by"),
        ("item collections cut before a limit", "bookings", "the month of booked_at"),
        ("optimistic locking", "to decide", "a number of its version is what was read"),
    ],
)
def test_what_grows_or_is_locked_has_its_technique(
    growing: Folder, name: str, pattern: str, words: str
) -> None:
    for file in (WIDE, SINGLE):
        (said,) = [one for one in read_design(growing, file).techniques if one.name == name]
        assert pattern in said.patterns
        assert words in said.why
        assert said.cost and said.limit and said.next_best


def test_a_small_source_without_locks_gets_none_of_them(folders: dict[str, Folder]) -> None:
    beside = {"large values in a bucket", "one table for each period",
              "item collections cut before a limit"}  # fmt: skip
    for folder in folders.values():
        assert not beside & {one.name for one in read_design(folder, SINGLE).techniques}


MEMBERS = """
CREATE TABLE members (
    id INTEGER PRIMARY KEY, club INTEGER NOT NULL, handle VARCHAR(40) NOT NULL,
    mail VARCHAR(40) NOT NULL
);
CREATE TABLE fees (id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES members (id));
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO members
SELECT i, i % 2, 'handle' || i, 'm' || i || '@x.org' FROM n;
"""


def test_each_alternative_has_its_own_price_and_rows_one_by_one_no_cache(
    tmp_path: Path, endpoint: str
) -> None:
    patterns = {
        "handle or mail": "SELECT id FROM members WHERE handle = ? OR mail = ? ORDER BY id",
        "one by one": "SELECT id FROM members m WHERE m.club = ? AND NOT EXISTS"
        " (SELECT 1 FROM fees f WHERE f.member_id = m.id) ORDER BY id",
    }
    folder = designed(tmp_path / "folder", sqlite_database(tmp_path / "m.db", MEMBERS), patterns)
    design = read_design(folder, WIDE)
    said = {pattern: one for one in design.techniques for pattern in one.patterns}
    assert said["handle or mail"].name == "index by value"
    assert "cache for hot reads" not in {one.name for one in design.techniques}
    volumes = read_volumes(folder)
    stated = read_patterns(folder, volumes.inventory).patterns
    counted = units(design, stated, volumes).patterns
    read = [one.read_units for one in counted if one.pattern == "handle or mail"]
    assert read == [stated[0].calls_per_second / 2] * 2
    run = prove(folder, name=WIDE, endpoint=endpoint)
    assert set(verdicts(run).values()) == {"proven"}


# Collations.

NAMES = """
CREATE TABLE people (id INT PRIMARY KEY, name TEXT COLLATE "en-x-icu" NOT NULL, town TEXT NOT NULL);
INSERT INTO people VALUES (1, 'zoe', 'x'), (2, 'Zed', 'x'), (3, 'ann', 'x'), (4, 'Bob', 'y');
"""


def test_an_order_that_only_a_language_has_is_not_called_served(
    postgresql: DatabaseServer, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    patterns = {
        "by name": "SELECT id FROM people WHERE name = ?",
        "of a town": "SELECT id, name FROM people WHERE town = ? ORDER BY name",
        "from a name on": "SELECT id FROM people WHERE town = ? AND name > ?",
        "by town": "SELECT id FROM people WHERE town = ? ORDER BY id",
        "rename": "UPDATE people SET name = ? WHERE id = ?",
    }
    folder = designed(tmp_path / "folder", postgresql.create("names", NAMES), patterns)
    for name in (WIDE, SINGLE):
        run = prove(folder, name=name, endpoint=endpoint)
        unserved = {one.pattern: one.why for one in run.functional if one.verdict != "proven"}
        assert set(unserved) == {"of a town", "from a name on"}
        assert all("sorted by the collation en-x-icu" in why for why in unserved.values())
        assert run.is_passed


# Keys.

PEOPLE = """
CREATE TABLE person (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, country TEXT NOT NULL,
    active BOOLEAN NOT NULL, shouted TEXT GENERATED ALWAYS AS (upper(name)) STORED
);
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200)
INSERT INTO person (id, name, city, country, active)
SELECT n, 'name ' || n, 'c' || (n % 7), 'C' || (n % 5), n % 2 FROM n;
"""
PEOPLE_PATTERNS = {
    "by place": "SELECT id, name FROM person WHERE country = ? AND city = ?",
    "of a country": "SELECT id, city FROM person WHERE country = ? ORDER BY city",
    "active": "SELECT id, name FROM person WHERE active = ? ORDER BY name LIMIT 10",
    "one": "SELECT * FROM person WHERE id = ?",
}


def test_one_key_serves_a_place_and_its_country_and_two_values_are_a_risk(
    tmp_path: Path, endpoint: str
) -> None:
    url = sqlite_database(tmp_path / "people.db", PEOPLE)
    folder = designed(tmp_path / "folder", url, PEOPLE_PATTERNS)
    for name in (WIDE, SINGLE):
        design = read_design(folder, name)
        homes = {
            (one.table, one.index)
            for one in design.access
            if one.pattern in ("by place", "of a country")
        }
        assert len(homes) == 1
        assert any(risk.startswith("active has 2 values") for risk in design.risks)
        assert not any(risk.startswith("country") for risk in design.risks)
        columns = {one.column for _, entity in design.entities() for one in entity.attributes}
        assert "person.shouted" not in columns
        run = prove(folder, name=name, endpoint=endpoint)
        assert set(verdicts(run).values()) == {"proven"}


def test_what_the_source_computes_is_in_no_item_and_finds_none(
    tmp_path: Path, endpoint: str
) -> None:
    url = sqlite_database(tmp_path / "people.db", PEOPLE)
    computed = {
        "found by it": "SELECT id FROM person WHERE shouted = ? ORDER BY id",
        "tested": "SELECT id FROM person WHERE id = ? AND shouted > ?",
        "sorted by it": "SELECT id FROM person WHERE country = ? ORDER BY shouted LIMIT 3",
        "listed": "SELECT id, shouted FROM person WHERE id = ?",
        "deleted by it": "DELETE FROM person WHERE shouted = ?",
    }
    folder = designed(tmp_path / "folder", url, {**PEOPLE_PATTERNS, **computed})
    for name in (WIDE, SINGLE):
        design = read_design(folder, name)
        assert {one.pattern for one in design.unserved} == set(computed)
        assert all("person.shouted: the source computes it" in one.why for one in design.unserved)
        columns = {one.column for _, entity in design.entities() for one in entity.attributes}
        assert "person.shouted" not in columns
        served = dict.fromkeys(PEOPLE_PATTERNS, "proven")
        found = verdicts(prove(folder, name=name, endpoint=endpoint))
        assert found == {**served, **dict.fromkeys(computed, "unserved")}
