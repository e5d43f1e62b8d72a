"""Sources that compare texts by collations: designs that do so too, and some that do not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from partita_migrate.designing.model_stage import model
from partita_migrate.model.model_files import read_design
from partita_migrate.proving.prove import test as prove
from partita_migrate.understanding.schema.collations import collation_file
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import designed
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .test_prove import SINGLE, WIDE, assert_proven, verdicts

SCHEMA = """
CREATE TABLE people (
    id INT PRIMARY KEY, name {text} NOT NULL, email {text} NOT NULL UNIQUE, team {text} NOT NULL
);
CREATE TABLE tags (tag {text} NOT NULL PRIMARY KEY, uses INT);
CREATE TABLE uses (
    id INT PRIMARY KEY, tag {text} NOT NULL, state {text} NOT NULL,
    FOREIGN KEY (tag) REFERENCES tags (tag)
);
"""
NAMES = [
    "foo_bar", "foobar", "foo-bar", "foo bar", "Foo.Bar", "Øl", "ol", "Muller", "Müller", "Mueller",
    "oeuvre", "Œuvre", "ss", "ß", "tab", "tab\tx", "zoë", "Zoe", "ab", "a b", "a", "æon", "aeon",
    "10", "9", "2", "ab  ", "o", "y", "ü", "it's 100%", "#1",
]  # fmt: skip
CYRILLIC = ["ёж", "еж", "йод", "иод", "и\u0306", "日本", "😀", "😎"]
STATES = ["Open", "open", "öpen", "shut"]


def script(collation: str) -> str:
    charset = collation.partition("_")[0]
    text = f"VARCHAR(40) CHARACTER SET {charset} COLLATE {collation}"
    names = NAMES if charset == "latin1" else NAMES + CYRILLIC
    rows = [SCHEMA.format(text=text)]
    for number, name in enumerate(names):
        quoted, state = name.replace("'", "''"), STATES[number % len(STATES)]
        other = quoted.swapcase() if "_ci" in collation and name.isascii() else quoted
        person = f"{number}, '{quoted}', '{quoted}@{number}', 't{number // 11}'"
        rows.append(f"INSERT INTO people VALUES ({person});")
        rows.append(f"INSERT IGNORE INTO tags VALUES ('{quoted}', {number});")
        rows.append(f"INSERT INTO uses VALUES ({number}, '{other}', '{state}');")
    return "\n".join(rows)


PATTERNS = {
    "by name": "SELECT * FROM people WHERE name = ?",
    "by names": "SELECT * FROM people WHERE name IN (?, ?)",
    "by email": "SELECT * FROM people WHERE email = ?",
    "by tag": "SELECT * FROM tags WHERE tag = ?",
    "in order": "SELECT * FROM people WHERE team = ? ORDER BY name, id",
    "backwards": "SELECT * FROM people WHERE team = ? ORDER BY name DESC, id DESC LIMIT 5",
    "between": "SELECT * FROM people WHERE team = ? AND name BETWEEN ? AND ? ORDER BY name, id",
    "above": "SELECT * FROM people WHERE team = ? AND name > ? ORDER BY name, id",
    "below": "SELECT * FROM people WHERE team = ? AND name < ? ORDER BY name, id",
    "other": "SELECT * FROM people WHERE team = ? AND name <> ?",
    "beginning": "SELECT * FROM people WHERE team = ? AND name LIKE 'fo%'",
    "beginning with a letter of several": "SELECT * FROM people WHERE team = ? AND name LIKE 'o%'",
    "before a tab": "SELECT * FROM people WHERE team = ? AND name LIKE 'tab%'",
    "open": "SELECT * FROM uses WHERE state = 'OPEN' ORDER BY id LIMIT 9",
    "uses": "SELECT u.id, u.state, t.uses FROM uses u JOIN tags t ON t.tag = u.tag WHERE u.tag = ?",
    "states": "SELECT DISTINCT state FROM uses WHERE tag = ?",
}
WRITES = {
    "rename": "UPDATE people SET name = ? WHERE email = ?",
    "join": "INSERT INTO people (id, name, email, team) VALUES (?, ?, ?, ?)",
    "shut": "UPDATE uses SET state = ? WHERE tag = ?",
    "forget": "DELETE FROM people WHERE email = ?",
}


@pytest.fixture
def collated(
    mariadb: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Folder]:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)

    def make(collation: str, patterns: dict[str, str] = PATTERNS) -> Folder:
        return designed(tmp_path, mariadb.create("collated_keys", script(collation)), patterns)

    return make


@pytest.mark.parametrize(
    ("collation", "patterns"),
    [
        ("utf8mb4_unicode_520_ci", PATTERNS),
        ("latin1_swedish_ci", PATTERNS | WRITES),
        *(
            pytest.param(collation, PATTERNS | WRITES, marks=pytest.mark.soak)
            for collation in (
                "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_uca1400_ai_ci",
                "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_spanish2_ci", "latin1_german2_ci",
                "latin1_general_cs",
            )
        ),
    ],
)  # fmt: skip
def test_designs_compare_texts_as_the_source_does(
    collated: Callable[..., Folder], endpoint: str, collation: str, patterns: dict[str, str]
) -> None:
    folder = collated(collation, patterns)
    for name in (WIDE, SINGLE):
        run = prove(folder, name=name, endpoint=endpoint)
        assert_proven(run, set())


WRONG = {
    "a letter that is told from what it equals": {"texts": {"ø": "Ø", "Ø": "Ø"}},
    "a letter that is taken for another": {"texts": {"й": "И"}},
    "an ignored character that counts": {"texts": {"\u200d": "\u200d"}},
    "two letters that are one": {"texts": {"œ": "Œ", "Œ": "Œ"}},
    "marks in the order of their codes": {"texts": {"_": "_"}},
    "blanks at the end that count": {"pad": "NO PAD"},
}
WRONG_OF_SWEDISH = {
    "a letter that is taken for another": {"texts": {"ü": "U", "Ü": "U"}},
    "a letter that is told from what it equals": {"texts": {"é": "É", "É": "É"}},
    "marks before others": {"texts": {"_": "-"}},
    "blanks at the end that count": {"pad": "NO PAD"},
}
TELLING = {name: PATTERNS[name] for name in ("by name", "by names", "in order", "other")}


@pytest.mark.parametrize(
    ("collation", "all_wrong"),
    [
        ("latin1_swedish_ci", WRONG_OF_SWEDISH),
        pytest.param("utf8mb4_unicode_520_ci", WRONG, marks=pytest.mark.soak),
    ],
)
def test_a_file_that_compares_otherwise_is_refuted(
    collated: Callable[..., Folder], endpoint: str, collation: str, all_wrong: dict[str, Any]
) -> None:
    folder = collated(collation, TELLING)
    path = folder.path / collation_file(collation)
    right = json.loads(path.read_text())
    for wrong, members in all_wrong.items():
        texts = {**right["texts"], **members.get("texts", {})}
        path.write_text(json.dumps({**right, **members, "texts": texts}))
        run = prove(folder, name=WIDE, endpoint=endpoint)
        assert not run.is_passed, wrong
        # Parameters are drawn from some rows, none of them with this letter.
        is_drawn = "й" not in members.get("texts", {})
        assert ("differs" in verdicts(run).values()) == is_drawn, wrong
        is_told = "collation" in [one.kind for one in run.keys]
        assert is_told == ("texts" in members), wrong


def test_what_keys_cannot_say_is_not_served(collated: Callable[..., Folder], endpoint: str) -> None:
    folder = collated("utf8mb4_uca1400_as_ci", PATTERNS | WRITES)
    for name in (WIDE, SINGLE):
        design = read_design(folder, name)
        unserved = {one.pattern: one.why for one in design.unserved}
        assert unserved.keys() == (PATTERNS | WRITES).keys()
        assert all("utf8mb4_uca1400_as_ci is not in keys" in why for why in unserved.values())
        assert prove(folder, name=name, endpoint=endpoint).keys == []


def test_a_model_of_before_is_read_and_put_to_the_test(
    collated: Callable[..., Folder], endpoint: str
) -> None:
    """With `ai`, which compares letters by Unicode's own decompositions."""
    collation = "latin1_german2_ci"
    folder = collated(collation, {"by name": PATTERNS["by name"]})
    path = folder.path / SINGLE
    path.write_text(path.read_text().replace(f":{collation}", ":ai"))
    run = prove(folder, name=SINGLE, endpoint=endpoint)
    assert verdicts(run) == {"by name": "differs"}
    shutil.rmtree(folder.path / "collations")
    inventory = json.loads((folder.path / "inventory.json").read_text())
    for table in inventory["tables"]:
        for column in table["columns"]:
            column.pop("collation", None)
    (folder.path / "inventory.json").write_text(json.dumps(inventory))
    model(folder)
    assert ":ai}" in path.read_text()
