"""The whole move under load: migrate with kills, verify, cut over, roll back."""

from __future__ import annotations

import random
import subprocess
import time

import pytest

from .. import processes
from .conftest import Api, Catalogue, Serve
from .load import IN_MIGRATION, Load
from .population import dynamodb_contents, legacy_contents, populate


def run(catalogue: Catalogue, command: str) -> subprocess.CompletedProcess[str]:
    return processes.run(*catalogue.arguments(command), env=catalogue.environment)


def migrate_with_kills(catalogue: Catalogue, kills: int, seconds: tuple[float, float]) -> str:
    """What the run says that was left to finish."""
    chance = random.Random(kills)
    for _ in range(kills):
        migrator = subprocess.Popen(
            [*processes.COMMAND, *catalogue.arguments("migrate")],
            env=catalogue.environment,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(*seconds))
        migrator.kill()
        migrator.wait()
    done = run(catalogue, "migrate")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_equal(catalogue: Catalogue, written: dict[str, int]) -> None:
    """Every metric and version in both databases, and everything that anybody was told of."""
    legacy, dynamodb = legacy_contents(catalogue), dynamodb_contents(catalogue)
    assert legacy.keys() == dynamodb.keys()
    for name, versions in legacy.items():
        assert versions == dynamodb[name], name
    for name, version in written.items():
        assert int(legacy[name][0]["latestVersion"]) >= version
        assert list(legacy[name]) == [*range(1, len(legacy[name])), 0] or set(legacy[name]) == set(
            range(len(legacy[name]))
        )


def states(catalogue: Catalogue) -> set[str]:
    connection = catalogue.mariadb.connect(catalogue.name)
    cursor = connection.cursor()
    cursor.execute("SELECT DISTINCT migratedToDynamoDB FROM metrics")
    found = {state for (state,) in cursor.fetchall()}
    connection.close()
    return found


def move(catalogue: Catalogue, serve: Serve, count: int, kills: int, after: tuple[float, float]):  # type: ignore[no-untyped-def]
    apis = [serve("legacy"), serve("legacy")]
    names = populate(catalogue, count)
    with Load([api.url for api in apis], names) as load:
        time.sleep(0.5)
        said = migrate_with_kills(catalogue, kills, after)
        assert "errors           0" in said
    print(load.answers, said)
    assert load.failures == []
    assert load.answers["update", 200] > 10
    assert_equal(catalogue, load.written)
    assert states(catalogue) == {"MIGRATED"}

    with Load([api.url for api in apis], names) as load:
        time.sleep(0.3)
        done = run(catalogue, "cutover")
        assert done.returncode == 0, done.stdout + done.stderr
        cut_over_at = time.monotonic()
        assert [api("GET", "/health").body["mode"] for api in apis] == ["dynamodb"] * 2
        time.sleep(1)
    print(load.answers, done.stdout, cut_over_at)
    assert load.failures == []
    assert load.answers["update", IN_MIGRATION] == 0
    since = dynamodb_contents(catalogue)
    assert len(since) > len(legacy_contents(catalogue)), "DynamoDB is on its own now"

    with Load([api.url for api in apis], names) as load:
        time.sleep(0.3)
        done = run(catalogue, "rollback")
        assert done.returncode == 0, done.stdout + done.stderr
        assert [api("GET", "/health").body["mode"] for api in apis] == ["legacy"] * 2
        time.sleep(0.5)
    print(load.answers, done.stdout)
    assert load.failures == []
    legacy = legacy_contents(catalogue)
    for name, versions in since.items():
        assert legacy[name].items() >= {v: versions[v] for v in versions if v}.items(), name
    for name, version in load.written.items():
        assert int(legacy[name][0]["latestVersion"]) >= version


def test_a_catalogue_moves_while_it_is_in_use(catalogue: Catalogue, serve: Serve) -> None:
    move(catalogue, serve, count=300, kills=2, after=(1.5, 3.0))


@pytest.mark.soak
def test_twenty_thousand_metrics_move_while_they_are_in_use(
    catalogue: Catalogue, serve: Serve
) -> None:
    move(catalogue, serve, count=20_000, kills=10, after=(3.0, 20.0))
