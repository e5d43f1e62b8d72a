"""The stages and their functions, called here rather than in processes of their own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from metric_catalogue.metrics.metric import Metric
from metric_catalogue.migration import migration_stages
from metric_catalogue.migration.catalogue_verification import CatalogueVerification, verify_since
from metric_catalogue.migration.step_functions import migration_functions, migration_machine
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from metric_catalogue.stores.mariadb.mariadb_connections import PASSWORD
from partita.client import Client
from partita.errors import PartitaError

from .conftest import Catalogue
from .population import dynamodb_contents, legacy_contents, populate

METRICS = 4


class Stages:
    """The stages of one catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.tables = CatalogueTables(catalogue.name)
        self.said: dict[str, int] = {}
        """The progress that a stage reports."""

    def __call__(self, stage: Any, *more: Any) -> Any:
        options = self.catalogue.options
        place = options["--mysql"], options["--endpoint"], self.tables, self._progress
        return asyncio.run(stage(*place, *more))

    def _progress(self, what: str, done: int, total: int) -> None:
        self.said[what] = done


@pytest.fixture
def run(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stages]:
    """An empty catalogue that has its tables, its functions and its state machine."""
    monkeypatch.setenv(PASSWORD, catalogue.mariadb.password)
    run = Stages(catalogue)
    counts, found = run(migration_stages.migrate)
    assert (counts.processed, found.metrics, found.is_equal) == (0, 0, True)
    yield run
    migration_functions.close()


def machine_arn(catalogue: Catalogue) -> str:
    states = catalogue.partita.client("stepfunctions")
    name = f"{migration_machine.NAME}-{catalogue.name}"
    listed = states.list_state_machines()["stateMachines"]
    return next(str(one["stateMachineArn"]) for one in listed if one["name"] == name)


def test_the_functions_copy_skip_and_clean_up(
    run: Stages, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    populate(catalogue, 4)
    for name, value in {
        migration_functions.MYSQL: catalogue.options["--mysql"],
        migration_functions.ENDPOINT: catalogue.options["--endpoint"],
        migration_functions.TABLE: catalogue.name,
        migration_functions.MACHINE: machine_arn(catalogue),
        "AWS_ENDPOINT_URL": catalogue.options["--endpoint"],
    }.items():
        monkeypatch.setenv(name, value)
    copied = migration_functions.migrate_one_metric({"metricName": "m1"}, None)
    assert copied == {"metricName": "m1", "outcome": "imported"}
    again = migration_functions.migrate_one_metric({"metricName": "m1"}, None)
    assert again == {"metricName": "m1", "outcome": "skipped"}
    # A migrated metric is left alone, and nothing was written of the other one.
    for name in ("m1", "m2"):
        assert migration_functions.clean_up({"metricName": name}, None)["itemsDeleted"] == 0
    assert dynamodb_contents(catalogue).keys() == {"m1"}
    started = migration_functions.invoke({"leaveOut": ["m3"]}, None)["started"]
    assert sorted(metric for _, metric in started) == ["m2", "m4"]
    counts, found = run(migration_stages.migrate)
    assert (counts.processed, found.is_equal) == (4, True)
    assert migration_functions.invoke({}, None) == {"started": []}
    assert dynamodb_contents(catalogue) == legacy_contents(catalogue)


def test_problems_during_cutover_and_rollback_are_reported_and_repaired(
    run: Stages, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    populate(catalogue, METRICS)
    with pytest.raises(PartitaError, match=f"{METRICS} metrics are not migrated"):
        run(migration_stages.cutover)
    run(migration_stages.migrate)
    with monkeypatch.context() as patch:
        patch.setattr(migration_stages, "verify_since", fails_the_second_time(verify_since))
        with pytest.raises(PartitaError, match="broken"):
            run(migration_stages.cutover)
    # Writers in MariaDB are not refused, and the difference that they make is found.
    stray = "UPDATE metrics SET created_by = 'x' WHERE name = 'm1'"
    catalogue.mariadb.execute(stray, catalogue.name)
    assert run(migration_stages.compare).differences == {
        "m1": "version 0 is not the latest version"
    }
    assert run(migration_stages.migrate)[1].is_equal

    with monkeypatch.context() as patch:
        patch.setattr(migration_stages, "_close", cut_off(migration_stages._close, "m1"))
        found: CatalogueVerification = run(migration_stages.cutover)
    assert found.is_equal and found.waited_seconds is not None
    assert (found.metrics, run.said["Comparing"]) == (METRICS, METRICS)
    assert run.said["Migrating, 0 warnings, 0 errors"] == METRICS
    assert dynamodb_contents(catalogue) == legacy_contents(catalogue)
    assert run(migration_stages.cutover).is_equal
    with pytest.raises(PartitaError, match="migrated already"):
        run(migration_stages.migrate)

    catalogue.mariadb.execute(
        "DROP TRIGGER partita_fence_update_metric_versions;"
        "UPDATE metric_versions v JOIN metrics m ON m.id = v.metric_id SET v.updated_by = 'stray'"
        " WHERE m.name = 'm2' AND v.version = 1",
        catalogue.name,
    )
    with pytest.raises(PartitaError, match="version 1 of m2, by stray"):
        run(migration_stages.rollback)
    replaced = tmp_path / "replaced.jsonl"
    assert run(migration_stages.rollback, replaced).is_equal
    assert '"stray"' in replaced.read_text()
    assert legacy_contents(catalogue)["m2"][1]["updatedBy"] != "stray"


def fails_the_second_time(work: Any) -> Any:
    """Fails while the fence is closed."""
    calls = itertools.count(1)

    async def run(*given: object) -> Any:
        if next(calls) == 2:
            raise PartitaError("broken")
        return await work(*given)

    return run


def cut_off(close: Any, name: str) -> Any:
    """Leaves a dual write half done when the fence closes: MariaDB never gets its version."""

    def newer(previous: Metric) -> Metric:
        number = previous.latest_version + 1
        return replace(previous, version=number, latest_version=number)

    async def write_and_close(both: migration_stages.BothStores, fence: Any) -> None:
        await both.dynamodb.revise(name, newer, None)
        await close(both, fence)

    return write_and_close


def test_without_the_template_on_amazon_the_error_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")

    async def machines(_: Client) -> dict[str, str]:
        return {"another": "arn"}

    monkeypatch.setattr(migration_machine, "_machines", machines)

    async def look(tables: CatalogueTables) -> None:
        endpoint = "https://dynamodb.eu-west-1.amazonaws.com"
        async with migration_machine.open_machine(
            Client(endpoint, "eu-west-1"), "", endpoint, tables
        ):
            pass

    with pytest.raises(PartitaError, match="deploy the template"):
        asyncio.run(look(CatalogueTables()))
    monkeypatch.setattr(migration_machine, "NAME", "another")
    asyncio.run(look(CatalogueTables()))


def test_names_of_machines_and_functions_stay_within_their_limit() -> None:
    assert migration_machine.scoped_name("Base", CatalogueTables()) == "Base"
    assert migration_machine.scoped_name("Base", CatalogueTables("other")) == "Base-other"
    for odd in ("x" * 80, "with.dots"):
        assert len(migration_machine.scoped_name("Base", CatalogueTables(odd))) == len("Base-") + 12
