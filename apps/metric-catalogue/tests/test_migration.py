"""The migration under load: migrate with kills, verify, cut over, roll back."""

from __future__ import annotations

import logging
import random
import re
import subprocess
import time

import pytest

from testkit.servers import processes

from .conftest import Api, Catalogue, Serve
from .load import IN_MIGRATION, Load
from .population import Contents, dynamodb_contents, legacy_contents, populate

logger = logging.getLogger(__name__)

ROUNDS = 6
WAITED_SECONDS_MAX = 2.0
BUSY_SECONDS_MAX = 20.0
"""The limits allow for a busy machine."""


def run(catalogue: Catalogue, command: str) -> subprocess.CompletedProcess[str]:
    return processes.run(*catalogue.arguments(command), env=catalogue.environment)


def modes(urls: list[str]) -> set[str]:
    """Reads what the servers answer, over new connections: idle ones were closed meanwhile."""
    found = set()
    for url in urls:
        api = Api(url)
        found.add(api("GET", "/health").body["mode"])
        api.close()
    return found


def migrate_with_kills(catalogue: Catalogue, kills: int, count: int) -> str:
    """Returns the output of the run that finished. Before each kill some metrics are migrated."""
    chance = random.Random(kills)
    for place in range(1, kills + 1):
        migrator = subprocess.Popen(
            [*processes.COMMAND, *catalogue.arguments("migrate")],
            env=catalogue.environment,
            stdout=subprocess.DEVNULL,
        )
        enough = count * place // (kills + 2) + chance.randint(0, count // (kills + 2))
        while catalogue.count("MIGRATED") < enough and migrator.poll() is None:
            time.sleep(0.05)
        migrator.kill()
        migrator.wait()
    done = run(catalogue, "migrate")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_equal(catalogue: Catalogue, written: dict[str, int]) -> None:
    """Checks that both databases have every metric and version, and every acknowledged write."""
    legacy, dynamodb = legacy_contents(catalogue), dynamodb_contents(catalogue)
    assert legacy.keys() == dynamodb.keys()
    for name, versions in legacy.items():
        assert versions == dynamodb[name], name
    assert_kept(legacy, written)


def assert_kept(contents: Contents, written: dict[str, int]) -> None:
    for name, version in written.items():
        assert set(contents[name]) == set(range(len(contents[name]))), name
        assert int(contents[name][0]["latestVersion"]) >= version, name


def waited_seconds(said: str) -> float:
    """Returns how long writes waited for a cutover."""
    (found,) = re.findall(r"writes waited for ([\d.]+) s", said)
    return float(found)


def move(
    catalogue: Catalogue,
    serve: Serve,
    count: int,
    kills: int,
    waited_seconds_max: float = BUSY_SECONDS_MAX,
) -> None:
    """Migrates and rolls back while clients use two servers all the time."""
    urls = [serve("legacy").url, serve("legacy").url]
    names = populate(catalogue, count)

    with Load(urls, names) as load:
        said = migrate_with_kills(catalogue, kills, count)
    logger.info("migrated: %s\n%s", load.answers, said)
    assert load.failures == []
    assert "errors           0" in said
    assert load.answers["update", 200] > 10
    assert catalogue.count("NOT_MIGRATED") == catalogue.count("IN_MIGRATION") == 0
    assert_equal(catalogue, load.written)

    with Load(urls, names) as load:
        done = run(catalogue, "cutover")
        assert done.returncode == 0, done.stdout + done.stderr
        assert modes(urls) == {"dynamodb"}
        assert waited_seconds(done.stdout) < waited_seconds_max, done.stdout
        load.wait_for_additions()
    logger.info("cut over: %s\n%s", load.answers, done.stdout)
    assert load.failures == []
    assert load.answers["update", IN_MIGRATION] == 0
    since = dynamodb_contents(catalogue)
    assert_kept(since, load.written)
    assert len(since) > len(legacy_contents(catalogue)), "DynamoDB is on its own now"

    with Load(urls, names) as load:
        done = run(catalogue, "rollback")
        assert done.returncode == 0, done.stdout + done.stderr
        assert modes(urls) == {"legacy"}
        load.wait_for_additions()
    logger.info("rolled back: %s\n%s", load.answers, done.stdout)
    assert load.failures == []
    legacy = legacy_contents(catalogue)
    assert_kept(legacy, load.written)
    for name, versions in since.items():
        del versions[0]
        assert legacy[name].items() >= versions.items(), name


def test_a_catalogue_moves_while_it_is_in_use(catalogue: Catalogue, serve: Serve) -> None:
    move(catalogue, serve, count=100, kills=2)


@pytest.mark.soak
def test_twenty_thousand_metrics_move_while_they_are_in_use(
    catalogue: Catalogue, serve: Serve
) -> None:
    move(catalogue, serve, 20_000, kills=10, waited_seconds_max=WAITED_SECONDS_MAX)


@pytest.mark.soak
def test_cutover_and_rollback_are_killed_at_any_moment(catalogue: Catalogue, serve: Serve) -> None:
    """Migrates and rolls back under load. A killed command is run again, or its opposite."""
    urls = [serve("legacy").url, serve("legacy").url]
    names = populate(catalogue, 100)
    chance = random.Random(14)
    written: dict[str, int] = {}
    assert run(catalogue, "migrate").returncode == 0
    for place in range(ROUNDS):
        with Load(urls, names, seed=place) as load:
            for _ in range(2):
                kill_after(catalogue, chance.choice(("cutover", "rollback")), chance.uniform(0, 4))
            done = run(catalogue, "migrate")
            if done.returncode:
                assert "it has been migrated already" in done.stderr, done.stderr
            for command in chance.choice((["cutover"], ["cutover", "rollback"])):
                done = run(catalogue, command)
                assert done.returncode == 0, done.stdout + done.stderr
        assert load.failures == []
        written |= {name: max(v, written.get(name, 0)) for name, v in load.written.items()}
    if modes(urls) == {"dynamodb"}:
        done = run(catalogue, "rollback")
        assert done.returncode == 0, done.stdout + done.stderr
    assert run(catalogue, "migrate").returncode == 0
    assert_equal(catalogue, written)


def kill_after(catalogue: Catalogue, command: str, seconds: float) -> None:
    process = subprocess.Popen(
        [*processes.COMMAND, *catalogue.arguments(command)],
        env=catalogue.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.kill()
    process.wait()
