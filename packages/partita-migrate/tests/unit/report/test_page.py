"""Tests the report's page, also with missing stages and hostile names."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from partita_migrate.costing.amounts import amount, money
from partita_migrate.costing.estimate_stage import estimate
from partita_migrate.designing.model_stage import model
from partita_migrate.report.drawings.charts import bars, skews
from partita_migrate.report.report_page import report
from partita_migrate.understanding.analysis import (
    Analysis,
    KeySkew,
    SizeDistribution,
    TableAnalysis,
)
from partita_migrate.understanding.planning.goals import Goals
from partita_migrate.understanding.planning.migration_plan import plan_inventory
from partita_migrate.understanding.schema.inventory import Inventory, SkippedObject
from partita_migrate.workspace.migration_folder import Folder

from ..games import games
from ..schemas import foreign_key, inventory, table

SECTIONS = (
    "summary", "source", "sizes", "skew", "models", "patterns", "tests", "comparison", "bill",
    "risks", "recovery", "unknown",
)  # fmt: skip
PATTERNS = """
[[pattern]]
name = "players of a game"
table = "PlayersGamesItems"
by = "GameId"
rate = "10/s"
items = 5
"""
EVIL = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Collects tags and texts of a page as a browser would parse them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def ids(self) -> list[str]:
        return [found for _, attributes in self.tags if (found := attributes.get("id"))]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "migration.toml").write_text(
        '[source]\nurl = "sqlite:///x.db"\n[expect.PlayersGamesItems]\nrows = 1_000_000\n'
    )
    return Folder.open(tmp_path)


def analyzed(source: Inventory) -> Analysis:
    return Analysis(
        tables=[
            TableAnalysis(
                table=one.name,
                rows=100,
                sampled=100,
                confidence="All of them.",
                item_bytes=SizeDistribution(
                    mean=90.0, p50=80, p95=200, p99=500_000, max=500_000,
                    histogram=[(64, 0), (128, 60), (256, 0), (409_600, 39), (500_000, 1)],
                ),
                columns=[],
                keys=[
                    KeySkew(
                        columns=one.primary_key[:1], distinct=20, rows_per_value=5.0,
                        rows_per_value_max=50, top_share=0.5, entropy_bits=3.0, is_hot=True,
                        reason="Half of the rows share one value.",
                    )
                ],
            )
            for one in source.tables
        ],
    )  # fmt: skip


def fill(folder: Folder, source: Inventory, patterns: str = PATTERNS) -> None:
    """Runs all stages that need no connection."""
    folder.write_json("inventory.json", source)
    folder.write_json("plan.json", plan_inventory(source, Goals()))
    folder.write_json("analysis.json", analyzed(source))
    folder.write_text("patterns.toml", patterns)
    model(folder)
    estimate(folder)


def page(folder: Folder) -> Page:
    report(folder)
    return Page((folder.path / "report.html").read_text())


def test_all_sections_are_there(folder: Folder) -> None:
    fill(folder, games())
    made = page(folder)
    sections = [attributes.get("id") for tag, attributes in made.tags if tag == "section"]
    assert sections == list(SECTIONS)
    assert len(made.ids()) == len(set(made.ids()))
    assert "1,000,000 rows of PlayersGamesItems, as migration.toml expects" in made.text
    assert "Run partita" not in made.text


def test_the_same_folder_gives_the_same_bytes(folder: Folder) -> None:
    fill(folder, games())
    report(folder)
    first = (folder.path / "report.html").read_bytes()
    written = report(folder)
    assert (folder.path / "report.html").read_bytes() == first
    assert written.bytes == len(first)


def test_nothing_is_loaded_from_elsewhere(folder: Folder) -> None:
    fill(folder, games())
    made = page(folder)
    assert {tag for tag, _ in made.tags}.isdisjoint({"link", "img", "iframe", "object", "base"})
    for tag, attributes in made.tags:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for t, a in made.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none'")


@pytest.mark.parametrize("done", range(5))
def test_a_stage_that_is_missing_is_named(folder: Folder, done: int) -> None:
    fill(folder, games())
    stages = ("plan", "analyze", "model", "estimate")
    files = {
        "plan": ["inventory.json", "plan.json"],
        "analyze": ["analysis.json"],
        "model": [
            "model.toml",
            "model.denormalized.toml",
            "model.single-table.toml",
            "model.comparison.json",
        ],
        "estimate": ["estimate.json"],
    }
    for stage in stages[done:]:
        for name in files[stage]:
            (folder.path / name).unlink()
    written = report(folder)
    assert [one.stage for one in written.missing] == list(stages[done:])
    made = Page((folder.path / "report.html").read_text())
    for stage in stages:
        assert (f"partita migrate {stage} ," in made.text) == (stage in stages[done:]), stage


def test_a_broken_file_is_told_and_the_rest_is_shown(folder: Folder) -> None:
    fill(folder, games())
    (folder.path / "analysis.json").write_text("{")
    (folder.path / "model.single-table.toml").write_text("name = ")
    written = report(folder)
    assert written.summary.headlines
    told = " ".join(written.unknowns)
    assert told.count("analysis.json does not have the expected form") == 1
    assert "model.single-table.toml is not valid TOML" in told
    assert str(folder.path) not in told
    (folder.path / "analysis.json").unlink()
    (folder.path / "patterns.toml").write_text("[[pattern]]\nname = 'x'\ntable = 'nowhere'\n")
    assert "nowhere" in " ".join(report(folder).unknowns)


def test_an_estimate_of_another_time_is_told(folder: Folder) -> None:
    fill(folder, games())
    assert not any("was made before" in one for one in report(folder).unknowns)
    (folder.path / "patterns.toml").write_text(PATTERNS.replace("10/s", "70/s"))
    assert any("was made before" in one for one in report(folder).unknowns)


def test_without_patterns_costs_are_those_of_storage(folder: Folder) -> None:
    fill(folder, games(), "")
    written = report(folder)
    costs = next(one for one in written.summary.headlines if one.label == "Costs a month")
    assert costs.detail == "storage only: there are no patterns"
    assert any("A model without patterns serves nothing" in one for one in written.unknowns)


def evil() -> Inventory:
    odd = "</title></style><img src=x onerror=alert(2)>"
    return inventory(
        table(EVIL, f"{EVIL.replace(' ', '')}, id", "id"),
        table(odd.replace(" ", "_"), "id, ref", "id", foreign_keys=[foreign_key("ref", "x.id")]),
        table("a\0b\x1bc\"'`&amp;", "id", "id"),
        table("表" * 80, "id", "id"),
        skipped=[SkippedObject(name=EVIL, reason=EVIL)],
        views=[EVIL],
    )


def test_names_cannot_harm_the_page(folder: Folder) -> None:
    (folder.path / "migration.toml").write_text('[source]\nurl = "sqlite:///x.db"\n')
    folder = Folder.open(folder.path)
    patterns = (
        f'[[pattern]]\nname = "{EVIL}"\ndescription = "{EVIL}"\ntable = "{EVIL}"\nby = "id"\n'
        f'rate = 5\n[[unexplained]]\nstatement = "{EVIL}"\ncalls = 1\nreason = "{EVIL}"\n'
    )
    fill(folder, evil(), patterns)
    made = page(folder)
    assert [tag for tag, _ in made.tags].count("script") == 1
    assert [tag for tag, _ in made.tags].count("style") == 1
    assert "img" not in {tag for tag, _ in made.tags}
    assert not [name for _, attributes in made.tags for name in attributes if name[:2] == "on"]
    assert made.text.count(EVIL) > 10
    text = (folder.path / "report.html").read_text()
    assert "\0" not in text and "\x1b" not in text


def test_risks_come_from_every_stage(folder: Folder) -> None:
    fill(folder, games())
    risks = report(folder).summary.risks
    kinds = [risk.kind for risk in risks]
    assert kinds[0] == "large items" and risks[0].severity == "obstacle"
    assert "hot keys" in kinds


def test_bars() -> None:
    sizes = analyzed(games()).tables[0].item_bytes
    drawn = list(bars(sizes))
    assert [bar.height for bar in drawn[:2]] == [96.0, 0.0]
    assert drawn[-1].is_over and drawn[-1].height > 0
    first = skews(analyzed(games()))[0]
    assert (first.top, first.even) == (50.0, 5.0)
    assert first.evenness is not None and 0.69 < first.evenness < 0.7


def test_figures_as_people_read_them() -> None:
    assert [amount(n, 6) for n in (0, 1087.5, 0.00833333, 12.0, 1234567.8)] == [
        "0", "1,087.5", "0.0083", "12", "1,234,568",
    ]  # fmt: skip
    assert [money(n, "USD") for n in (0, 0.5, 1463.9, -3)] == ["$0", "$0.50", "$1,464", "-$3.00"]
    assert money(5, "EUR") == "EUR 5.00"
    assert money(0.001, "USD") == "<$0.01"


def test_joins_without_a_foreign_key_are_unknown(folder: Folder) -> None:
    fill(folder, games())
    (folder.path / "patterns.toml").unlink()
    text = f'references = ["PlayersGamesItems.PlayerId = Players.PlayerId"]\n{PATTERNS}'
    folder.write_text("patterns.mined.toml", text)
    assert "PlayersGamesItems.PlayerId = Players.PlayerId." in " ".join(report(folder).unknowns)
