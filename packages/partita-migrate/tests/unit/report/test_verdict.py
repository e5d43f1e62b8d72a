"""Tests the verdict: the reasons that decide it, and that unproven patterns are not served."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from partita.foundation.service_limits import GB
from partita_migrate.model.model_files import read_design
from partita_migrate.model.proofs import fingerprint
from partita_migrate.report.report_page import report
from partita_migrate.report.verdict import Verdict
from partita_migrate.understanding.schema.inventory import Inventory
from partita_migrate.workspace.migration_folder import Folder

from ..games import games
from ..schemas import inventory, table
from .test_page import fill, page

PLAYERS = "players of a game"
GAMES = "games of a player"
EXPECTED = "\n[expect.PlayersGamesItems]\nrows = 100_000_000\n"


def patterns(rate: float, more: str = "") -> str:
    return f"""
[[pattern]]
name = "{PLAYERS}"
table = "PlayersGamesItems"
by = "GameId"
rate = {rate}
items = 5
[[pattern]]
name = "{GAMES}"
table = "PlayersGamesItems"
by = "PlayerId"
rate = {rate}
items = 3
{more}
"""


UNSERVED = """
[[pattern]]
name = "average score"
table = "PlayersGamesItems"
operation = "aggregate"
rate = {rate}
"""


def made(
    path: Path,
    asked: str,
    settings: str = "",
    source: Inventory | None = None,
    proofs: dict[str, str] | None = None,
) -> Folder:
    (path / "migration.toml").write_text(f'[source]\nurl = "sqlite:///x.db"\n{settings}')
    folder = Folder.open(path)
    fill(folder, source or games(), asked)
    if proofs is not None:
        write_proofs(folder, fingerprint(read_design(folder)), proofs)
    return folder


def write_proofs(folder: Folder, fingerprint: str, proofs: dict[str, str]) -> None:
    found = [{"pattern": name, "verdict": verdict} for name, verdict in proofs.items()]
    run = {"at": "2026-11-16T12:00:00Z", "fingerprint": fingerprint, "functional": found}
    folder.write_json("test.json", run)


def verdict(*given: object, **more: object) -> Verdict:
    return report(made(*given, **more)).summary.verdict  # type: ignore[arg-type]


def test_a_little_data_that_is_seldom_asked_for_stays(tmp_path: Path) -> None:
    source = games()
    tables = [replace(one, data_bytes=419_430) for one in source.tables]
    source = replace(source, tables=tables)
    found = verdict(tmp_path, patterns(0.5), source=source)
    assert (found.decision, found.title) == ("stay", "Stay on SQL")
    assert found.reasons[0].startswith("1.2 MB and 1 call a second: one small server")
    assert len(found.reasons) == 3
    assert found.reasons[2].startswith("Against it: All 2 patterns have requests of their own")


def test_a_saving_does_not_move_what_a_small_server_does(tmp_path: Path) -> None:
    found = verdict(tmp_path, patterns(0.5), settings="[goals]\nmonthly_cost = 300\n")
    assert found.decision == "stay"
    assert found.today == 300
    assert any("a smaller server would save as well" in text for text in found.reasons)


def test_much_that_is_proven_goes(tmp_path: Path) -> None:
    settings = f"[goals]\nmonthly_cost = 9_000\n{EXPECTED}"
    proofs = {PLAYERS: "proven", GAMES: "proven"}
    found = verdict(tmp_path, patterns(2000), settings=settings, proofs=proofs)
    assert (found.decision, found.title) == ("go", "Go")
    assert len(found.reasons) == 3
    assert "of today's $9,000" in found.reasons[0] and "less in a year" in found.reasons[0]
    assert "All 2 patterns have requests of their own by key, proven on the source's own rows." in (
        found.reasons
    )


def test_without_a_proof_it_goes_only_once_proven(tmp_path: Path) -> None:
    folder = made(tmp_path, patterns(2000), settings=EXPECTED, proofs={PLAYERS: "proven"})
    found = report(folder).summary.verdict
    assert found.title == "Go, once every pattern is proven"
    assert any("1 proven on the source's own rows; the others are unproven" in one
               for one in found.reasons)  # fmt: skip
    assert any("`monthly_cost` into [goals]" in one for one in found.reasons)
    text = page(folder).text
    assert "1 of 2 patterns proven, 1 unproven" in text
    assert "patterns served" not in text


def test_a_pattern_that_gave_other_rows_is_not_served(tmp_path: Path) -> None:
    proofs = {PLAYERS: "proven", GAMES: "differs"}
    found = verdict(tmp_path, patterns(2000), settings=EXPECTED, proofs=proofs)
    assert found.decision == "go in part"
    assert found.reasons[0] == (
        "The design does not serve 1 of 2 patterns (50% of the calls): games of a player."
    )


def test_what_a_design_cannot_serve_stays_behind(tmp_path: Path) -> None:
    some = verdict(tmp_path, patterns(1000, UNSERVED.format(rate=200)), settings=EXPECTED)
    assert some.decision == "go in part"
    assert "(9% of the calls): average score." in some.reasons[0]
    most = verdict(tmp_path, patterns(50, UNSERVED.format(rate=5000)), settings=EXPECTED)
    assert most.decision == "stay"
    assert "(98% of the calls): average score." in most.reasons[0]


def test_what_holds_back_is_no_reason_against_staying(tmp_path: Path) -> None:
    proofs = {PLAYERS: "proven", GAMES: "differs"}
    found = verdict(tmp_path, patterns(1), proofs=proofs)
    assert found.decision == "stay"
    assert found.reasons[1].startswith("The design does not serve 1 of 2 patterns")


def test_what_costs_more_than_today_stays_where_costs_matter(tmp_path: Path) -> None:
    settings = "[goals]\naims = ['costs']\nmonthly_cost = 100\n" + EXPECTED
    found = verdict(tmp_path, patterns(2000), settings=settings)
    assert found.decision == "stay"
    assert "of today's $100" in found.reasons[0]
    assert found.monthly is not None and found.monthly > 120
    dearer = settings.replace("costs']", "performance']").replace(
        "= 100\n", f"= {found.monthly / 2}\n"
    )
    assert verdict(tmp_path, patterns(2000), settings=dearer).decision == "go"


def test_where_size_decides_nothing_todays_bill_does(tmp_path: Path) -> None:
    """200 calls a second on little data are easy for either database."""
    asked = verdict(tmp_path, patterns(100))
    assert asked.decision == "not decided"
    assert "put `monthly_cost` into [goals]" in asked.reasons[0]
    assert "either database handles that" in asked.reasons[1]
    assert asked.monthly is not None
    outcomes = {}
    for share in (3.0, 1.0, 0.5):
        today = f"[goals]\nmonthly_cost = {asked.monthly * share}\n"
        outcomes[share] = verdict(tmp_path, patterns(100), settings=today)
    assert [one.decision for one in outcomes.values()] == ["go", "stay", "stay"]
    assert "less in a year" in outcomes[3.0].reasons[0]
    assert "too little to pay for the work of moving" in outcomes[1.0].reasons[0]
    assert "200% of today's" in outcomes[0.5].reasons[0]


def test_tables_that_suit_badly_are_named(tmp_path: Path) -> None:
    search = table(
        "documents", "id integer, title string, body string, scan binary", "id", data_bytes=5 * GB
    )
    folder = made(
        tmp_path,
        patterns(1000) + '\n[[pattern]]\nname = "a document"\ntable = "documents"\nby = "id"\n'
        "rate = 100\n",
        settings=EXPECTED,
        source=inventory(*games().tables, search),
    )
    content = folder.read_json("plan.json", dict)
    for one in content["candidates"]:
        one["verdict"] = "poor candidate" if one["table"] == "documents" else "possible"
    folder.write_json("plan.json", content)
    found = report(folder).summary.verdict
    assert found.decision == "go in part"
    assert found.reasons[0].startswith("documents suits DynamoDB badly, with 5% of the calls")


def test_before_the_stages_have_run_nothing_is_decided(tmp_path: Path) -> None:
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///x.db"\n')
    folder = Folder.open(tmp_path)
    found = report(folder).summary.verdict
    assert (found.decision, found.monthly) == ("not decided", None)
    assert "`partita migrate plan`" in found.reasons[0]
    assert len(found.reasons) == 3


def test_the_verdict_is_the_first_thing_on_the_page(tmp_path: Path) -> None:
    text = page(made(tmp_path, patterns(0.5))).text
    assert text.index("Stay on SQL") < text.index("Source 3 tables")


def test_a_proof_of_another_design_proves_nothing(tmp_path: Path) -> None:
    folder = made(tmp_path, patterns(2000), settings=EXPECTED)
    write_proofs(folder, "of another design", {PLAYERS: "proven", GAMES: "proven"})
    assert report(folder).summary.verdict.title == "Go, once every pattern is proven"
