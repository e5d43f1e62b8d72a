"""The examples, from their databases to their estimates: what comes out is what was published."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from partita.errors import PartitaError
from partita_migrate.costing.estimate_stage import Estimates, estimate
from partita_migrate.designing.model_stage import ModelResult, check, model
from partita_migrate.model.design import Design, Entity, ItemAttribute
from partita_migrate.model.model_files import read_design
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.sources.source_address import PASSWORD_ENV
from partita_migrate.workspace.migration_folder import Folder
from testkit import ROOT
from testkit.servers.database_servers import PASSWORD, DatabaseServer

EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_ENV, PASSWORD)


def copied(name: str, to: Path) -> Path:
    """The files of an example that people wrote."""
    to.mkdir(exist_ok=True)
    for file in (EXAMPLES / name).iterdir():
        if file.suffix in (".toml", ".sql", ".py") and not file.name.startswith("model."):
            shutil.copy(file, to)
    return to


def run(path: Path) -> Folder:
    folder = Folder.open(path)
    plan(folder)
    analyze(folder)
    return folder


def on_server(server: DatabaseServer, name: str, path: Path) -> Folder:
    """The example's statements on a private server, and all stages before the model."""
    generate = runpy.run_path(str(EXAMPLES / name / "generate.py"))
    statements: Iterator[str] = generate["statements"]()
    url = server.create(name)
    for script in statements:
        for statement in script.split(";\n"):
            if statement.strip():
                server.execute(statement, name)
    settings = copied(name, path) / "migration.toml"
    lines = settings.read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("url = "))
    lines[place] = f'url = "{url}"'
    settings.write_text("\n".join(lines))
    return run(path)


def entity(design: Design, name: str) -> Entity:
    return next(one for _, one in design.entities() if one.name == name)


def attributes(design: Design, name: str) -> dict[str, ItemAttribute]:
    return {one.name: one for one in entity(design, name).attributes}


def proposed(models: ModelResult, kind: str) -> Design:
    return next(one.design for one in models.proposals if one.kind == kind)


# Games, on SQLite.


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    path = copied("games", tmp_path_factory.mktemp("examples") / "games")
    runpy.run_path(str(path / "generate.py"), run_name="__main__")
    folder = run(path)
    model(folder, workbench=True)
    return folder


def test_games_files_say_which_design_they_hold(games: Folder) -> None:
    first, second = (
        read_design(games, f"model.{kind}.toml") for kind in ("denormalized", "single-table")
    )
    assert [key.name for key in first.tables[0].keys] == ["GameId", "PlayerId"]
    assert [key.name for key in second.tables[0].keys] == ["PK", "SK"]
    assert second.tables[0].name == "Games_alternative"
    assert read_design(games) == first
    assert check(games) == check(games, "model.single-table.toml") == []


def test_games_estimate_is_table_8(games: Folder) -> None:
    (chosen, single) = estimate(games).estimates
    assert (chosen.kind, single.kind) == ("denormalized", "single-table")
    assert [
        (one.index, one.write_units, one.read_units, one.items, round(one.item_bytes / 1024, 6))
        for one in chosen.resources
    ] == [
        (None, 150, 1087.5, 10**8, 0.7),
        ("GSI1", 150, 650, 10**8, 0.7),
        ("GSI2", 150, 250, 10**8, 0.7),
    ]
    assert (chosen.write_units, chosen.read_units) == (450, 1987.5)
    again = games.read_json("estimate.json", Estimates)
    assert again.estimates[0].resources == chosen.resources
    assert (
        "model.toml,table,Games,,,100000000,0.7,1087.5,150"
        in (games.path / "estimate.csv").read_text()
    )


def test_no_price_for_a_column_that_the_source_does_not_have(games: Folder, tmp_path: Path) -> None:
    shutil.copytree(games.path, tmp_path / "games")
    folder = Folder.open(tmp_path / "games")
    text = (folder.path / "model.toml").read_text()
    folder.write_text("model.toml", text.replace("PlayersGamesItems.Score", "PlayersGamesItems.S"))
    folder.write_text("estimate.csv", "as it was")
    with pytest.raises(
        PartitaError, match=r"Score: the source has no column 'PlayersGamesItems\.S'"
    ):
        estimate(folder)
    assert (folder.path / "estimate.csv").read_text() == "as it was"


def test_games_doubling_says_what_matters(games: Folder) -> None:
    doubled = {one.what: one for one in estimate(games).estimates[0].doubled}
    size = doubled["item size of PlayersGamesItems"]
    rate = doubled["rate of 'Get details of a certain game'"]
    assert rate.provisioned_more == pytest.approx(1000 * 0.00013 * 730)
    assert size.provisioned_more > rate.provisioned_more
    assert size.on_demand_more > 0


def test_running_again_writes_the_same_files_and_keeps_the_chosen_model(games: Folder) -> None:
    names = ("model.denormalized.toml", "model.single-table.toml", "model.comparison.json")
    before = [(games.path / name).read_bytes() for name in names]
    chosen = games.path / "model.toml"
    chosen.write_text(chosen.read_text().replace('name = "GSI1"', 'name = "ByPlayer"'))
    try:
        assert "stays as it is" in model(games).chosen
        assert [(games.path / name).read_bytes() for name in names] == before
        errors = [one.message for one in check(games) if one.severity == "error"]
        assert "Games has no index 'GSI1'." in errors
    finally:
        chosen.unlink()
        model(games)


def test_games_workbench_file_is_one_that_can_be_read(games: Folder) -> None:
    content = msgspec.json.decode((games.path / "model.single-table.workbench.json").read_bytes())
    assert content["DataModel"][0]["TableName"] == "Games_alternative"
    design = read_design(games, "model.single-table.workbench.json")
    assert [index.name for index in design.tables[0].indexes] == ["GSI1", "GSI2"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            "[model]\nnatural_keys = {Gmaes = ['GameId']}",
            "natural_keys names a table that .*'Gmaes'",
        ),
        ("[model]\nformats = {'Games.When' = '%Y'}", "formats names a column that .*'Games.When'"),
        ("[expect.Gmaes]\nrows = 1", r"\[expect.Gmaes\] is for a table"),
        ("[model]\ncolour = 'red'", "unknown field `colour`"),
    ],
)
def test_a_setting_that_names_nothing_is_refused(
    games: Folder, tmp_path: Path, more: str, sentence: str
) -> None:
    for name in ("inventory.json", "patterns.toml"):
        shutil.copy(games.path / name, tmp_path)
    (tmp_path / "migration.toml").write_text(f'[source]\nurl = "sqlite:///games.db"\n{more}\n')
    with pytest.raises(PartitaError, match=sentence):
        model(Folder.open(tmp_path))


def test_an_estimate_without_a_model_says_what_to_run(games: Folder, tmp_path: Path) -> None:
    for name in ("inventory.json", "patterns.toml"):
        shutil.copy(games.path / name, tmp_path)
    (tmp_path / "migration.toml").write_text('[source]\nurl = "sqlite:///games.db"\n')
    with pytest.raises(PartitaError, match="run `partita migrate model`"):
        estimate(Folder.open(tmp_path))


# Metrics, on MariaDB: figures 5.1 to 5.4 of the thesis.


@pytest.fixture(scope="module")
def metrics(mariadb: DatabaseServer, tmp_path_factory: pytest.TempPathFactory) -> ModelResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD_ENV, PASSWORD)
        return model(on_server(mariadb, "metrics", tmp_path_factory.mktemp("metrics")))


def test_metrics_lose_their_groups(metrics: ModelResult) -> None:
    for one in metrics.proposals:
        assert any(choice.startswith("metric_groups is left out:") for choice in one.design.choices)
        assert "metric_groups.name" in {left.column for left in one.design.left_out}
        dimensions = attributes(one.design, "metrics")["relatedDimensions"]
        assert (dimensions.type, dimensions.collect) == ("SS", ["dimensions.name"])
        assert one.findings == []


def test_metrics_are_one_table_by_name_and_version(metrics: ModelResult) -> None:
    (table,) = proposed(metrics, "denormalized").tables
    assert table.name == "metrics"
    assert [(key.name, key.type) for key in table.keys] == [("name", "S"), ("version", "N")]
    assert table.indexes == []


def test_version_0_is_a_copy_of_the_latest(metrics: ModelResult) -> None:
    design = proposed(metrics, "denormalized")
    latest, versions = attributes(design, "metrics"), attributes(design, "metric_versions")
    assert latest["version"].constant == "0"
    assert latest["latestVersion"].column == "metric_versions.version"
    assert latest.keys() - versions.keys() == {"latestVersion", "createdAt", "createdBy"}
    assert entity(design, "metrics").rows == "latest"


def test_metrics_have_the_attributes_of_figure_5_3(metrics: ModelResult) -> None:
    latest = attributes(proposed(metrics, "denormalized"), "metrics")
    assert latest.keys() == {
        "name",
        "version",
        "createdAt",
        "createdBy",
        "updatedAt",
        "updatedBy",
        "deprecatedAt",
        "deprecatedBy",
        "deprecatedReason",
        "aggregationStyle",
        "chainedMetric",
        "chainCutoffDate",
        "hybridFormula",
        "aggregationParam",
        "valueType",
        "consumedMetrics",
        "relatedDimensions",
        "latestVersion",
        # Beside the figure: what an item is, and the columns that names stand for.
        "entityType",
        "metricId",
        "chainedMetricId",
    }
    assert latest["chainedMetric"].column == latest["name"].column == "metrics.name"
    assert latest["consumedMetrics"].type == "SS"


def test_the_latest_metric_is_one_get_away(metrics: ModelResult) -> None:
    access = {one.pattern: one for one in proposed(metrics, "denormalized").access}
    latest = access["Get the metadata of a metric"]
    assert latest.request == "GetItem"
    assert [(one.attribute, one.value) for one in latest.key] == [
        ("name", "{name}"),
        ("version", "0"),
    ]


# Page hits, on PostgreSQL: table 6.1 of the thesis.


@pytest.fixture(scope="module")
def pagehits(postgresql: DatabaseServer, tmp_path_factory: pytest.TempPathFactory) -> ModelResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD_ENV, PASSWORD)
        return model(on_server(postgresql, "pagehits", tmp_path_factory.mktemp("pagehits")))


def test_page_hits_are_one_table_by_window_and_hits(pagehits: ModelResult) -> None:
    (table,) = proposed(pagehits, "denormalized").tables
    assert table.name == "page_hit"
    assert [(key.name, key.type) for key in table.keys] == [("hashKey", "S"), ("rangeKey", "S")]
    assert table.indexes == []
    assert table.ttl == "expirationTime"


@pytest.mark.parametrize(
    ("source", "period", "seconds"),
    [
        ("page_hit_five_minutes", "F", 15 * 60),
        ("page_hit_hour", "H", 70 * 60),
        ("page_hit_day", "D", 24 * 3600 + 600),
    ],
)
def test_page_hits_are_those_of_table_6_1(
    pagehits: ModelResult, source: str, period: str, seconds: int
) -> None:
    found = attributes(proposed(pagehits, "denormalized"), source)
    assert found.keys() == {
        "hashKey",
        "rangeKey",
        "sectionId",
        "resourceType",
        "paidType",
        "expirationTime",
        # Beside the table of the thesis: what an item is, and what its keys are made of.
        "entityType",
        "id",
        "hitStmp",
        "hitAmount",
        "assetId",
    }
    assert found["hashKey"].template == f"abc#{period}#{{hit_stmp:%Y-%m-%dT%H:%M}}"
    assert found["rangeKey"].template == "{hit_amount:n20.0}#{asset_id:n20.0}"
    assert found["sectionId"].column == f"{source}.section_id"
    assert (found["expirationTime"].expires, found["expirationTime"].after_seconds) == (
        f"{source}.hit_stmp",
        seconds,
    )


def test_sections_and_types_are_filtered_and_stale_windows_expire(pagehits: ModelResult) -> None:
    access = {one.pattern: one for one in proposed(pagehits, "denormalized").access}
    popular = access["Most popular in a window (hour)"]
    assert (popular.is_descending, popular.limit, popular.index) == (True, 100, None)
    filtered = access["Most popular of a section and type in a window (hour)"]
    assert {one.attribute for one in filtered.filter} == {"sectionId", "resourceType"}
    assert filtered.limit is None
    assert access["Drop stale windows (hour)"].request == "TTL"
    errors = [
        one
        for proposal in pagehits.proposals
        for one in proposal.findings
        if one.severity == "error"
    ]
    assert errors == []
