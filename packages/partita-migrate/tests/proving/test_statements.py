"""Alternatives, lower-case comparisons, upserts and references: proven, and refuted if wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from partita_migrate.model.design import READS, Design, PatternAccess
from partita_migrate.model.model_files import read_design, to_toml
from partita_migrate.proving.proof_run.proof_results import ProofRun
from partita_migrate.proving.prove import test as prove
from partita_migrate.report.report_page import report
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit.data.moves import designed, sqlite_database
from testkit.servers.database_servers import PASSWORD, DatabaseServer

from .invented import INVENTED
from .test_prove import SINGLE, WIDE, verdicts, with_access, with_attributes

ACCOUNTS = """
CREATE TABLE teams (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE users (
    id INTEGER PRIMARY KEY, email TEXT NOT NULL, nick TEXT UNIQUE, boss INTEGER, points INTEGER
    NOT NULL DEFAULT 0, team_id INTEGER NOT NULL REFERENCES teams (id)
);
INSERT INTO teams VALUES (1, 'Blue'), (2, 'Red');
INSERT INTO users VALUES
    (1, 'Ann@x.org', 'ann', NULL, 3, 1), (2, 'ann@X.org', 'Bob', 1, 9, 1),
    (3, 'ÄNN@x.org', NULL, 1, 10, 2), (4, 'cy@x.org', 'cy', 2, 10, 2),
    (5, 'd#@x.org', 'd', 2, 1, 1);
"""
PATTERNS = {
    "by mail in lower case": "SELECT id FROM users WHERE lower(email) = lower(?)",
    "by nick in upper case": "SELECT id, nick FROM users WHERE upper(nick) = ?",
    "under or oneself": "SELECT id, points FROM users WHERE boss = ? OR id = ? ORDER BY points, id",
    "best of two": "SELECT id FROM users WHERE boss = ? OR team_id = ? ORDER BY points DESC "
    "LIMIT 2",
    "none or of a boss": "SELECT id FROM users WHERE (boss IS NULL OR boss = ?) AND team_id = ?",
    "next page": "SELECT id, points FROM users WHERE team_id = ? AND (points, id) > (?, ?) "
    "ORDER BY points, id LIMIT 2",
    "neither": "SELECT id FROM users WHERE team_id = ? AND NOT (points > ? OR boss = ?)",
    "either way": "SELECT id FROM users WHERE (team_id = ? AND boss = ?) "
    "OR (boss = ? AND team_id = ?)",
    "two ranges": "SELECT id FROM users WHERE (team_id = ? AND points < ?) "
    "OR (team_id = ? AND points < ?)",
    "with the team": "SELECT u.id, t.title FROM users u JOIN teams t ON t.id = u.team_id "
    "WHERE u.id = ?",
    "team": "SELECT title FROM teams WHERE id = ?",
    "users of a team": "SELECT id FROM users WHERE team_id = ?",
    "score": "INSERT INTO users (id, email, nick, points, team_id) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET points = users.points + excluded.points, "
    "email = excluded.email",
    "join once": "INSERT INTO users (id, email, nick, team_id) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING",
    "by nick": "INSERT INTO users (id, email, nick, team_id) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (nick) DO UPDATE SET email = excluded.email",
    "rename": "UPDATE users SET nick = ? WHERE id = ?",
    "retitle": "UPDATE teams SET title = ? WHERE id = ?",
}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = tmp_path_factory.mktemp("accounts")
    return designed(path / "folder", sqlite_database(path / "source.db", ACCOUNTS), PATTERNS)


@pytest.mark.parametrize("name", [WIDE, SINGLE])
def test_they_are_proven_in_both_designs(accounts: Folder, endpoint: str, name: str) -> None:
    run = prove(accounts, name=name, endpoint=endpoint)
    assert [(one.pattern, one.differences) for one in run.functional if one.differences] == []
    assert {one.pattern: one.why for one in run.functional if one.verdict != "proven"} == {}
    (merged,) = [one for one in run.functional if one.pattern == "best of two"]
    assert any(case.startswith("alternatives of several rows") for case in merged.cases)
    assert merged.rows > 0


def test_a_lowered_text_has_a_key_of_its_own_beside_the_column(accounts: Folder) -> None:
    design = read_design(accounts, SINGLE)
    (said,) = [one for one in design.techniques if "by mail in lower case" in one.patterns]
    assert said.name == "folded key"
    templates = [one.template or "" for _, entity in design.entities() for one in entity.attributes]
    assert any("{email:lower_ascii}" in template for template in templates)


def mutated(folder: Folder, endpoint: str, design: Design) -> ProofRun:
    folder.write_text("mutated.toml", to_toml(design))
    return prove(folder, name="mutated.toml", endpoint=endpoint)


def without(design: Design, is_dropped: Callable[[PatternAccess], bool]) -> Design:
    return replace(design, access=[one for one in design.access if not is_dropped(one)])


def test_a_key_that_holds_the_text_as_it_is_finds_no_other_case(
    accounts: Folder, endpoint: str
) -> None:
    def plain(one: object) -> object:
        text = getattr(one, "template", None)
        return replace(one, template=text.replace(":lower_ascii", "")) if text else one  # type: ignore[type-var]

    design = with_attributes(read_design(accounts, SINGLE), "users", plain)  # type: ignore[arg-type]
    run = mutated(accounts, endpoint, design)
    assert verdicts(run)["by mail in lower case"] == "differs"


@pytest.mark.parametrize("pattern", ["either way", "two ranges"])
def test_a_request_that_names_the_value_of_another_alternative_is_refuted(
    accounts: Folder, endpoint: str, pattern: str
) -> None:
    design = read_design(accounts, SINGLE)
    first, second = [one.key for one in design.access if one.pattern == pattern]
    assert ".2" not in str(first)
    assert ".2" in str(second)

    def misnamed(one: PatternAccess) -> PatternAccess:
        key = [replace(part, value=part.value.replace(".2", "")) for part in one.key]
        return replace(one, key=key)

    run = mutated(accounts, endpoint, with_access(design, pattern, misnamed))
    assert verdicts(run)[pattern] == "differs"


def test_values_that_requests_would_call_the_same_are_unserved(tmp_path: Path) -> None:
    joined = (
        "SELECT u.id FROM users u JOIN teams t ON t.id = u.team_id "
        "WHERE (t.id = ? AND u.points > ?) OR (u.team_id = ? AND u.points < ?)"
    )
    patterns = {"joined": joined, "users of a team": PATTERNS["users of a team"]}
    source = sqlite_database(tmp_path / "source.db", ACCOUNTS)
    design = read_design(designed(tmp_path / "folder", source, patterns), SINGLE)
    (unserved,) = design.unserved
    assert (unserved.pattern, "cannot tell these values apart" in unserved.why) == ("joined", True)


def test_an_alternative_that_nothing_asks_for_is_not_called_served(
    accounts: Folder, endpoint: str
) -> None:
    design = without(read_design(accounts, SINGLE), lambda one: one.alternative == 2)
    run = mutated(accounts, endpoint, design)
    assert verdicts(run)["under or oneself"] == "unproven"


def test_a_write_is_proven_by_the_requests_of_the_model_alone(
    accounts: Folder, endpoint: str
) -> None:
    """Missing guards, copies that are not found, and a wrong key are refuted."""
    design = read_design(accounts, WIDE)

    def alone(one: PatternAccess) -> PatternAccess:
        is_guarded = one.request == "TransactWriteItems" and one.pattern == "rename"
        return replace(one, request="UpdateItem") if is_guarded else one

    changed = replace(design, access=[alone(one) for one in design.access])
    assert changed != design
    assert verdicts(mutated(accounts, endpoint, changed))["rename"] == "differs"
    found = without(design, lambda one: one.pattern == "retitle" and one.request in READS)
    if found != design:
        assert verdicts(mutated(accounts, endpoint, found))["retitle"] == "differs"
    unfound = without(design, lambda one: one.pattern == "score" and one.request in READS)
    wrong = replace(
        unfound,
        access=[
            replace(one, key=[replace(key, value="{points}") for key in one.key])
            if one.pattern == "score"
            else one
            for one in unfound.access
        ],
    )
    assert verdicts(mutated(accounts, endpoint, wrong))["score"] == "differs"


# References, where the source keeps them.

OWNERS = """
CREATE TABLE owner (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL);
CREATE TABLE dog (
    id INT PRIMARY KEY, owner_id INT NOT NULL, FOREIGN KEY (owner_id) REFERENCES owner (id)
);
INSERT INTO owner VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO dog VALUES (1, 1), (2, 1), (3, 2);
"""
OWNER_PATTERNS = {
    "dogs of an owner": "SELECT id FROM dog WHERE owner_id = ?",
    "dog": "SELECT owner_id FROM dog WHERE id = ?",
    "drop an owner": "DELETE FROM owner WHERE id = ?",
}


def test_a_row_that_others_refer_to_is_not_deleted(
    server: DatabaseServer, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = designed(tmp_path / "folder", server.create("owners", OWNERS), OWNER_PATTERNS)
    design = read_design(folder, WIDE)
    forbids = [one for one in design.access if one.forbids]
    assert [(one.pattern, one.entity) for one in forbids] == [("drop an owner", "dog")]
    assert verdicts(prove(folder, name=WIDE, endpoint=endpoint))["drop an owner"] == "proven"
    other = replace(forbids[0], key=[replace(one, value="-1") for one in forbids[0].key])
    blind = replace(design, access=[other if one == forbids[0] else one for one in design.access])
    run = mutated(folder, endpoint, blind)
    assert verdicts(run)["drop an owner"] == "differs"
    (found,) = [one for one in run.functional if one.pattern == "drop an owner"]
    assert any("but the requests were accepted" in one.what for one in found.differences)


# Databases that no design was made for.


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("warehouse", SINGLE),
        *(
            pytest.param(name, file, marks=pytest.mark.soak)
            for name, file in (
                ("warehouse", WIDE),
                *((name, file) for name in ("hospital", "festival") for file in (WIDE, SINGLE)),
            )
        ),
    ],
)
def test_what_was_invented_is_proven_or_honestly_unserved(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    file: str,
) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    one = INVENTED[name]
    if one.dialect == "sqlite":
        url = sqlite_database(tmp_path / "source.db", one.script())
    else:
        server: DatabaseServer = request.getfixturevalue(one.dialect)
        url = server.create(f"{name}_{'wide' if file == WIDE else 'single'}", one.script())
    folder = designed(tmp_path / "folder", url, one.patterns)
    run = prove(folder, name=file, endpoint=endpoint, is_all=True)
    assert [(one.pattern, one.differences) for one in run.functional if one.differences] == []
    unserved = {one.pattern: one.why for one in run.functional if one.verdict != "proven"}
    assert unserved.keys() == one.unserved.keys()
    for pattern, word in one.unserved.items():
        assert word in unserved[pattern]
    assert run.keys == []
    assert [one.table for one in run.way_back if not one.is_exact] == []


def test_both_designs_are_compared_on_proof_price_and_requests(
    accounts: Folder, endpoint: str
) -> None:
    prove(accounts, name=SINGLE, endpoint=endpoint)
    report(accounts)
    text = " ".join((accounts.path / "report.html").read_text().split())
    start = text.index('<section id="comparison">')
    compared = text[start : text.index("</section>", start)]
    count = len(PATTERNS)
    assert "<th>Patterns proven</th>" in compared
    assert f'<td class="n">{count} of {count}</td>' in compared
    assert "<th>Requests a second</th>" in compared
    assert "<th>A month</th>" in compared


def test_the_report_has_the_four_kinds_of_test_and_the_runs_until_now(
    accounts: Folder, tmp_path: Path, endpoint: str
) -> None:
    shutil.copytree(accounts.path, tmp_path / "folder")
    accounts = Folder.open(tmp_path / "folder")
    for name in (WIDE, SINGLE):
        prove(accounts, name=name, endpoint=endpoint)
    report(accounts)
    text = " ".join((accounts.path / "report.html").read_text().split())
    start = text.index('<section id="tests">')
    told = text[start : text.index("</section>", start)]
    for kind in ("Acceptance", "Functional", "Non-functional", "Recovery", "User acceptance"):
        assert f"<h3>{kind}</h3>" in told
    assert "<th>users</th>" in told and "Every row can be restored from its items." in told
    assert f"{len(PATTERNS)} proven, 0 differ" in told
    assert "25 clients on one record" in told
    assert "<h3>Runs until now</h3>" in told
    unlike = without(read_design(accounts, "model.toml"), lambda one: one.pattern == "team")
    (accounts.path / "model.toml").write_text(to_toml(unlike))
    report(accounts)
    assert "has not been tested as it is now" in (accounts.path / "report.html").read_text()


RATES = """
CREATE TABLE country (id INT PRIMARY KEY, code CHAR(2) NOT NULL UNIQUE);
CREATE TABLE bank (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, country_id INT,
    FOREIGN KEY (country_id) REFERENCES country (id));
CREATE TABLE rate (currency CHAR(3) NOT NULL, day DATE NOT NULL, value DECIMAL(8, 4) NOT NULL,
    PRIMARY KEY (currency, day));
INSERT INTO country VALUES (1, 'DE'), (2, 'FR');
INSERT INTO bank VALUES (1, 'A', 1), (2, 'B', NULL), (3, 'C', 2), (4, 'D', 1);
INSERT INTO rate VALUES ('USD', '2026-01-01', 1.1), ('JPY', '2026-01-01', 160.5);
"""
RATE_PATTERNS = {
    "banks of a country": "SELECT b.id, b.name, c.code FROM bank b "
    "JOIN country c ON c.id = b.country_id WHERE c.code = ? ORDER BY b.id",
    "new rate": "INSERT INTO rate (currency, day, value) VALUES (?, ?, ?)",
    "too long": "UPDATE rate SET value = 123456 WHERE currency = ? AND day = ?",
}


def test_values_that_the_source_itself_refuses_prove_nothing(
    server: DatabaseServer, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New keys fit a short column; values that no column can hold are not a difference."""
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)
    folder = designed(tmp_path / "folder", server.create("rates", RATES), RATE_PATTERNS)
    run = prove(folder, name=SINGLE, endpoint=endpoint)
    assert [(one.pattern, one.differences) for one in run.functional if one.differences] == []
    assert verdicts(run) == {
        "banks of a country": "proven",
        "new rate": "proven",
        "too long": "unproven",
    }
    new, refused = run.functional[1:]
    assert new.rows == 2
    assert refused.why.startswith("the source refused the statement: ")
