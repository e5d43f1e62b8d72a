"""Blanks at the end of texts: sources that ignore them, designs that do, and some that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from partita_migrate.model.design import ItemAttribute, PatternAccess
from partita_migrate.model.model_files import read_design
from partita_migrate.proving.prove import test as prove
from partita_migrate.understanding.schema.inventory import read_inventory
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import designed, sqlite_database
from testkit.servers.database_servers import PASSWORD

from .test_prove import (
    SINGLE,
    WIDE,
    refuted_or_not,
    verdicts,
    with_access,
    with_attributes,
)

TEXTS = {
    "mysql": {
        "pad": "VARCHAR(12) COLLATE utf8mb4_bin",
        "no_pad": "VARCHAR(12) COLLATE utf8mb4_nopad_bin",
        "ci": "VARCHAR(12) COLLATE utf8mb4_general_ci",
        "ci_no_pad": "VARCHAR(12) COLLATE utf8mb4_general_nopad_ci",
        "sorted": "VARCHAR(12) CHARACTER SET latin2 COLLATE latin2_czech_cs",
        "ascii": "VARCHAR(12) CHARACTER SET ascii COLLATE ascii_bin",
    },
    "postgresql": {
        "pad": "CHAR(12)", "no_pad": "VARCHAR(12)", "ci": "TEXT", "ci_no_pad": "TEXT",
        "sorted": "TEXT", "ascii": "TEXT",
    },
    "sqlite": {
        "pad": "TEXT COLLATE RTRIM", "no_pad": "TEXT", "ci": "TEXT COLLATE NOCASE",
        "ci_no_pad": "TEXT COLLATE NOCASE", "sorted": "TEXT", "ascii": "TEXT",
    },
}  # fmt: skip

SCHEMA = """
CREATE TABLE depots (
    code {pad} NOT NULL PRIMARY KEY, tag {no_pad} NOT NULL UNIQUE, label {ci} NOT NULL,
    mark {ci_no_pad} NOT NULL, rank_name {sorted} NOT NULL, serial {ascii}
);
CREATE TABLE crates (
    id INT NOT NULL PRIMARY KEY, depot {pad} NOT NULL, state {pad} NOT NULL, weight INT NOT NULL,
    FOREIGN KEY (depot) REFERENCES depots (code)
);
"""
CODES = ["ann", "Ann  ", "bob ", "b ob", "carl", "carl x", "d  ", "éva ", "éva1", "'#% "]
STATES = ["open", "open ", "shut", "lost  "]


def rows() -> Iterator[str]:
    for number, code in enumerate(CODES):
        text = code.replace("'", "''")
        mark = f"m{number}{' ' * (number % 3)}"
        values = f"'{text}', '{text}', '{text}', '{mark}', 'r{number}', 'sea{number}'"
        yield f"INSERT INTO depots VALUES ({values});"
    for number in range(60):
        # Half of the references have other blanks than what they refer to.
        code = CODES[number % 7 if number % 2 else number % len(CODES)].replace("'", "''")
        depot = code if number % 2 else code.rstrip() + " " * (number % 3)
        state = STATES[number % len(STATES)]
        yield f"INSERT INTO crates VALUES ({number}, '{depot}', '{state}', {number * 7 % 23});"


READS = {
    "depot": "SELECT * FROM depots WHERE code = ?",
    "depots": "SELECT * FROM depots WHERE code IN (?, ?)",
    "tag": "SELECT * FROM depots WHERE tag = ?",
    "label": "SELECT * FROM depots WHERE label = ?",
    "mark": "SELECT * FROM depots WHERE mark = ?",
    "a text that the source does not compare with accents": "SELECT * FROM depots WHERE serial = ?",
    "crates of a depot": "SELECT * FROM crates WHERE depot = ? ORDER BY weight DESC, id LIMIT 5",
    "crates in a state": "SELECT id, depot FROM crates WHERE depot = ? AND state = ?",
    "open crates": "SELECT * FROM crates WHERE state = 'open' ORDER BY weight, id LIMIT 9",
    "other states": "SELECT * FROM crates WHERE depot = ? AND state <> ?",
    "crates with their depot": (
        "SELECT c.id, c.weight, d.tag FROM crates c JOIN depots d ON d.code = c.depot"
        " WHERE c.depot = ? ORDER BY c.id"
    ),
    "between states": (
        "SELECT * FROM crates WHERE depot = ? AND state BETWEEN ? AND ? ORDER BY state, id"
    ),
    "beginning": "SELECT * FROM crates WHERE depot = ? AND state LIKE 'op%'",
    "beginning with a blank": "SELECT * FROM crates WHERE depot = ? AND state LIKE 'open %'",
}
WRITES = {
    "move": "UPDATE crates SET state = ? WHERE depot = ? AND id = ?",
    "rename": "UPDATE depots SET tag = ? WHERE code = ?",
    "open a depot": "INSERT INTO depots (code, tag, label, mark, rank_name) VALUES (?, ?, ?, ?, ?)",
}
NOT_EXACT = {
    "by rank": "SELECT * FROM depots WHERE label = ? ORDER BY rank_name",
    "LIKE without a pattern": "SELECT * FROM depots WHERE code LIKE 'ann'",
}
LOWERED = {"in lower case": "SELECT * FROM depots WHERE lower(code) = ?"}


def folder_of(
    request: pytest.FixtureRequest, path: Path, kind: str, patterns: dict[str, str]
) -> Folder:
    script = SCHEMA.format(**TEXTS[kind]) + "\n".join(rows())
    if kind == "sqlite":
        return designed(path, sqlite_database(path / "pad.db", script), patterns)
    server = request.getfixturevalue("mariadb" if kind == "mysql" else "postgresql")
    return designed(path, server.create("pad", script), patterns)


@pytest.mark.parametrize(
    ("kind", "patterns"),
    [
        ("sqlite", READS | WRITES),
        ("mysql", READS | LOWERED),
        ("postgresql", READS),
        pytest.param("mysql", WRITES, marks=pytest.mark.soak),
        pytest.param("postgresql", WRITES, marks=pytest.mark.soak),
    ],
)
def test_designs_ignore_the_blanks_that_the_source_ignores(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    endpoint: str,
    kind: str,
    patterns: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = folder_of(request, tmp_path, kind, patterns)
    # LIKE of SQLite ignores case.
    unserved = {"beginning", "beginning with a blank"} if kind == "sqlite" else set()
    for name in (WIDE, SINGLE):
        run = prove(folder, name=name, endpoint=endpoint)
        assert [one for one in run.functional if one.verdict == "differs"] == []
        assert {name for name, verdict in verdicts(run).items() if verdict != "proven"} == unserved
        assert run.keys == []


def test_a_key_that_keeps_the_blanks_is_refuted(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    wanted = {name: READS[name] for name in ("depot", "crates of a depot")}
    folder = folder_of(request, tmp_path, "mysql", wanted)
    design = read_design(folder, SINGLE)
    for entity in ("depots", "crates"):
        design = with_attributes(design, entity, as_it_is)
    for pattern in wanted:
        design = with_access(design, pattern, asked_as_it_is)
    run = refuted_or_not(folder, endpoint, design)
    assert verdicts(run) == dict.fromkeys(wanted, "differs")
    cases = {one.case for proof in run.functional for one in proof.differences}
    assert {"a blank behind code", "a blank behind depot"} <= cases


def as_it_is(one: ItemAttribute) -> ItemAttribute:
    return replace(one, template=(one.template or "").replace(":pad", "") or None)


def asked_as_it_is(one: PatternAccess) -> PatternAccess:
    return replace(one, key=[replace(c, value=c.value.replace(":pad", "")) for c in one.key])


def test_what_blanks_or_a_collation_decide_otherwise_is_not_called_served(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = folder_of(request, tmp_path, "mysql", NOT_EXACT)
    unserved = {one.pattern: one.why for one in read_design(folder, SINGLE).unserved}
    assert "latin2_czech_cs" in unserved["by rank"]
    assert "count for LIKE" in unserved["LIKE without a pattern"]
    columns = {one.name: one for one in read_inventory(folder).tables[1].columns}
    assert {name: one.pad for name, one in columns.items()} == {
        "code": "PAD SPACE",
        "tag": "NO PAD",
        "label": "PAD SPACE",
        "mark": "NO PAD",
        "rank_name": "PAD SPACE",
        "serial": "PAD SPACE",
    }
