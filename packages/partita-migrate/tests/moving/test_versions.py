"""Designs in which other rows decide what an item has and whether it exists.

Some attributes belong to the latest version only, and some items last until a row appears.
"""

from __future__ import annotations

from typing import Any

import pytest

from partita_migrate.handover.create_stage import create
from partita_migrate.moving.following.follow import follow
from partita_migrate.moving.loading.load import load
from partita_migrate.moving.verifying.verify import verify
from partita_migrate.proving.prove import test as prove
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import Sql, designed

from .conftest import KINDS, MakeSource
from .test_move import assert_same, live

SCRIPT = """
CREATE TABLE page (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL UNIQUE);
CREATE TABLE revision (
    page_id INT NOT NULL, number INT NOT NULL, saved_at VARCHAR(30) NOT NULL,
    PRIMARY KEY (page_id, number), FOREIGN KEY (page_id) REFERENCES page (id)
);
CREATE TABLE tag (
    page_id INT NOT NULL, name VARCHAR(80) NOT NULL,
    PRIMARY KEY (page_id, name), FOREIGN KEY (page_id) REFERENCES page (id)
);
CREATE TABLE draft (id INT PRIMARY KEY, name VARCHAR(80) NOT NULL);
INSERT INTO page VALUES (1, 'one'), (2, 'two');
INSERT INTO revision VALUES (1, 1, '2026-01-31T10:00:00.5'), (1, 2, '2026-02-01T00:00:00'),
    (2, 1, '2026-03-01T00:00:00');
INSERT INTO tag VALUES (1, 'a'), (1, 'b'), (2, 'c');
INSERT INTO draft VALUES (1, 'two'), (2, 'three');
"""
MODEL = """
name = "versions"
kind = "denormalized"

[[tables]]
name = "Pages-{0}"
partition_key = {{ name = "name", type = "S" }}
sort_key = {{ name = "revision", type = "S" }}

[[tables.entities]]
name = "revision"
source = "revision"
latest_by = "revision.number"
per = ["revision.page_id"]
attributes = [
    {{ name = "name", type = "S", column = "page.name", through = ["revision.page_id = page.id"] }},
    {{ name = "revision", type = "S", column = "revision.number" }},
    {{ name = "savedAt", type = "S", template = "{{saved_at:ms}}" }},
    {{ name = "tags", type = "SS", collect = ["tag.name"], through = [
        "revision.page_id = tag.page_id"], when = "latest" }},
]

[[tables]]
name = "Drafts-{0}"
partition_key = {{ name = "name", type = "S" }}

[[tables.entities]]
name = "draft"
source = "draft"
unless = [["draft.name = page.name"]]
attributes = [{{ name = "name", type = "S", column = "draft.name" }}]
"""


def moved(source: Sql, endpoint: str) -> Folder:
    folder = designed(source.path / source.database, source.url, {})
    (folder.path / "model.toml").write_text(MODEL.format(source.database))
    create(folder, endpoint)
    loaded = load(folder, endpoint, is_followed=True)
    counted = {one.table: (one.imported, one.skipped, one.failed) for one in loaded.tables}
    assert counted["revision"] == (3, 0, 0)
    assert counted["draft"] == (1, 1, 0)
    return folder


def tags(folder: Folder, endpoint: str) -> dict[tuple[str, str], list[str]]:
    return {
        (item["name"]["S"], item["revision"]["S"]): sorted(item.get("tags", {}).get("SS", []))
        for item in live(folder, endpoint)
        if "revision" in item
    }


def drafts(folder: Folder, endpoint: str) -> list[Any]:
    found = live(folder, endpoint)
    return sorted(item["name"]["S"] for item in found if "revision" not in item)


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_the_latest_has_moves_on_with_the_next_version(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, SCRIPT)
    folder = moved(source, target)
    assert tags(folder, target) == {("one", "1"): [], ("one", "2"): ["a", "b"], ("two", "1"): ["c"]}
    saved = {item["savedAt"]["S"] for item in live(folder, target) if "savedAt" in item}
    assert saved >= {"2026-01-31T10:00:00.500Z", "2026-02-01T00:00:00.000Z"}
    assert_same(verify(folder, target))

    source.run("INSERT INTO revision VALUES (1, 3, '2026-04-01T00:00:00')")
    source.run("INSERT INTO tag VALUES (1, 'd'), (2, 'e'); DELETE FROM tag WHERE name = 'a'")
    source.run("INSERT INTO revision VALUES (2, 2, '2026-04-01T00:00:00')")
    source.run("DELETE FROM revision WHERE page_id = 2 AND number = 2")
    follow(folder, target, is_once=True)
    assert tags(folder, target) == {
        ("one", "1"): [],
        ("one", "2"): [],
        ("one", "3"): ["b", "d"],
        ("two", "1"): ["c", "e"],
    }
    source.run("UPDATE revision SET number = 9 WHERE page_id = 1 AND number = 1")
    follow(folder, target, is_once=True)
    found = tags(folder, target)
    assert (found["one", "9"], found["one", "3"]) == (["b", "d"], [])
    assert_same(verify(folder, target))


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_lasts_until_a_row_appears_and_returns_when_it_goes(
    make_source: MakeSource, target: str, kind: str
) -> None:
    source = make_source(kind, SCRIPT)
    folder = moved(source, target)
    assert drafts(folder, target) == ["three"]
    for change, left in (
        ("INSERT INTO page VALUES (3, 'three')", []),
        ("UPDATE page SET name = 'other' WHERE id = 3", ["three"]),
        ("INSERT INTO draft VALUES (3, 'other')", ["three"]),
        ("DELETE FROM page WHERE id = 3", ["other", "three"]),
        ("UPDATE draft SET name = 'one' WHERE id = 3", ["three"]),
    ):
        source.run(change)
        follow(folder, target, is_once=True)
        assert drafts(folder, target) == left, change
    assert_same(verify(folder, target))


ACCESS = """
[[access]]
pattern = "add a revision"
request = "PutItem"
table = "Pages-{0}"
entity = "revision"

[[access]]
pattern = "draft"
request = "GetItem"
table = "Drafts-{0}"
entity = "draft"
key = [{{ attribute = "name", value = "{{name}}" }}]
"""


def test_requests_that_forget_what_other_rows_decide_are_refuted(
    make_source: MakeSource, target: str
) -> None:
    source = make_source("sqlite", SCRIPT)
    patterns = {
        "add a revision": "INSERT INTO revision (page_id, number, saved_at) VALUES (?, ?, ?)",
        "draft": "SELECT name FROM draft WHERE name = ?",
    }
    folder = designed(source.path / source.database, source.url, patterns)
    (folder.path / "model.toml").write_text((MODEL + ACCESS).format(source.database))
    proven = prove(folder, endpoint=target)
    assert {one.pattern: one.verdict for one in proven.functional} == dict.fromkeys(
        patterns, "differs"
    )
    shown = [one.items for proof in proven.functional for one in proof.differences]
    assert any("tags is SS['a', 'b'] and should be NULL" in line for one in shown for line in one)
    (drafts,) = (one for one in proven.acceptance if one.table == "draft")
    assert drafts.skipped_why == "its items are there only while no other row forbids them"
