"""Rates and peaks by the clock of a server that enforces capacity, and recovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita_migrate.designing.model_stage import model
from partita_migrate.proving.proof_run.proof_results import ProofCheck, ProofRun
from partita_migrate.proving.prove import test as prove
from partita_migrate.proving.sandbox.private_dynamodb import DynamoDBClient, clocked_server
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import sqlite_database

from .test_prove import WIDE

COUNTERS = """
CREATE TABLE counters (id INTEGER PRIMARY KEY, hits INTEGER NOT NULL, note TEXT);
INSERT INTO counters VALUES (1, 0, printf('%.3500c', 'x'));
"""
COUNT = "UPDATE counters SET hits = hits + 1 WHERE id = ?"


def proven(path: Path, endpoint: str, rate: str, calls: int, later: str = "") -> ProofRun:
    """`later` is a rate that is stated only after the design was made."""
    url = sqlite_database(path / "counters.db", COUNTERS)
    settings = f'[source]\nurl = "{url}"\n\n[test]\nload_calls = {calls}\nrecovery = true\n'
    (path / "migration.toml").write_text(settings)
    patterns = (
        f'[[pattern]]\nname = "count"\nsql = "{COUNT}"\n{rate}\n'
        '[[pattern]]\nname = "look"\nsql = "SELECT hits FROM counters WHERE id = ?"\nrate = "2/s"\n'
    )
    (path / "patterns.toml").write_text(patterns)
    folder = Folder.open(path)
    plan(folder)
    analyze(folder)
    model(folder)
    (path / "patterns.toml").write_text(patterns.replace(rate, later or rate))
    return prove(folder, name=WIDE, endpoint=endpoint)


def check(run: ProofRun, name: str) -> ProofCheck:
    return next(one for one in run.non_functional if one.name.startswith(name))


def test_what_the_design_provisions_bears_the_stated_rates_and_a_peak(
    tmp_path: Path, endpoint: str
) -> None:
    run = proven(tmp_path, endpoint, 'rate = "4/s"', 240)
    assert {one.outcome for one in run.non_functional} == {"passed"}
    usual = check(run, "stated rates")
    assert "240 calls of 2 patterns, 0 throttled; 1.00 requests for a call" in usual.detail
    assert [(one.name, one.outcome) for one in run.recovery] == [
        ("back up, lose, restore", "passed"),
        ("spoil, restore to a moment before", "passed"),
    ]
    assert run.recovery[0].detail.startswith("1 item of 1 table came back, each as it was, by")


def test_one_record_that_gets_more_than_a_partition_gives_is_a_hot_partition(
    tmp_path: Path, endpoint: str
) -> None:
    run = proven(tmp_path, endpoint, 'rate = "4/s"', 820, 'rate = "400/s"')
    usual = check(run, "stated rates")
    assert usual.outcome == "failed"
    assert "hot partitions: 'count'" in usual.detail


def test_a_stated_peak_that_saved_units_do_not_bear_is_throttled(
    tmp_path: Path, endpoint: str
) -> None:
    run = proven(tmp_path, endpoint, 'rate = "1/s"\npeak = "20x"', 500)
    assert check(run, "stated rates").outcome == "passed"
    peak = check(run, "a peak for a minute")
    assert peak.outcome == "failed"
    assert "'count'" in peak.detail


SALES = """
CREATE TABLE clerks (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE sales (
    id INTEGER PRIMARY KEY, clerk_id INTEGER NOT NULL REFERENCES clerks (id), amount INTEGER
);
INSERT INTO clerks VALUES (1, 'Ann'), (2, 'Bert');
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
INSERT INTO sales SELECT i, i % 2 + 1, i FROM n;
"""
TURNOVER = (
    "SELECT c.name, SUM(s.amount) FROM sales s JOIN clerks c ON c.id = s.clerk_id GROUP BY c.name"
)
RENAME = "UPDATE clerks SET name = ? WHERE id = ?"


def test_what_many_rows_lack_is_looked_up_once_for_each_key(tmp_path: Path, endpoint: str) -> None:
    """Two clerks for each of 400 sales would be hot twenty times a second; two lookups are not."""
    url = sqlite_database(tmp_path / "sales.db", SALES)
    settings = f'[source]\nurl = "{url}"\n\n[test]\nload_calls = 100\nrecovery = false\n'
    (tmp_path / "migration.toml").write_text(settings)
    (tmp_path / "patterns.toml").write_text(
        f'[[pattern]]\nname = "turnover"\nsql = "{TURNOVER}"\nrate = "20/s"\n'
        f'[[pattern]]\nname = "rename"\nsql = "{RENAME}"\nrate = "9/s"\n'
    )
    folder = Folder.open(tmp_path)
    plan(folder)
    analyze(folder)
    priced = {one.kind: one.requests["turnover"] for one in model(folder).comparison.designs}
    run = prove(folder, name=WIDE, endpoint=endpoint)
    assert {one.verdict for one in run.functional} == {"proven"}
    usual = check(run, "stated rates")
    assert usual.outcome == "passed", usual.detail
    assert "at most 3." in usual.detail
    assert priced["denormalized"] == 3


def test_the_time_of_a_clocked_server_passes_only_when_it_is_moved() -> None:
    with clocked_server() as clocked:
        server = DynamoDBClient(clocked.endpoint, is_retrying=False)
        try:
            server.call(
                "CreateTable",
                TableName="clock",
                KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            first = server.call("DescribeTable", TableName="clock")["Table"]["CreationDateTime"]
            clocked.advance(3600)
            server.call(
                "CreateTable",
                TableName="later",
                KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            later = server.call("DescribeTable", TableName="later")["Table"]["CreationDateTime"]
            assert later - first == pytest.approx(3600)
        finally:
            server.close()


EVENTS = """
CREATE TABLE events (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, note TEXT NOT NULL);
CREATE TABLE unasked (id INTEGER PRIMARY KEY, owner TEXT NOT NULL);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO events SELECT i, CASE i % 5 WHEN 0 THEN 'Bert' ELSE 'Ann' END, 'note ' || i FROM n;
INSERT INTO unasked SELECT id, owner FROM events WHERE id <= 50;
"""


def test_a_rehearsal_reads_whole_collections(tmp_path: Path, endpoint: str) -> None:
    url = sqlite_database(tmp_path / "events.db", EVENTS)
    settings = f'[source]\nurl = "{url}"\n\n[test]\nload_calls = 20\nrecovery = false\n'
    (tmp_path / "migration.toml").write_text(settings)
    (tmp_path / "patterns.toml").write_text(
        '[[pattern]]\nname = "of an owner"\nrate = "2/s"\n'
        'sql = "SELECT id, note FROM events WHERE owner = ? ORDER BY id LIMIT 9"\n'
    )
    folder = Folder.open(tmp_path)
    plan(folder)
    analyze(folder)
    model(folder)
    whole = check(prove(folder, name=WIDE, endpoint=endpoint), "stated rates")
    assert "5,000 items: all under requested keys, out of 5,050" in whole.detail
    assert whole.outcome == "passed"
    part = check(prove(folder, name=WIDE, endpoint=endpoint, sample=100), "stated rates")
    assert "items of a sample (item collections are smaller" in part.detail
