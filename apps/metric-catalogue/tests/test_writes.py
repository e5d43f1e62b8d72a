"""Concurrent writers, and writes while a metric is migrated or a database is down."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from metric_catalogue.metrics.catalogue_errors import MetricConflict, MetricInMigration
from metric_catalogue.migration.step_functions import migration_functions
from metric_catalogue.stores.mariadb.mariadb_connections import IDLE_SECONDS_MAX
from testkit import ROOT
from testkit.servers import processes
from testkit.servers.database_servers import MariaDB

from .conftest import Answer, Api, Catalogue, Serve, hybrid, scalar
from .population import dynamodb_contents, legacy_contents

WRITERS = 6
OLD_SCHEMA = ROOT / "examples" / "metrics" / "schema.sql"


def at_once(url: str, work: Callable[[Api, int], list[Answer]]) -> list[Answer]:
    """Returns the answers to several concurrent clients."""

    def one(number: int) -> list[Answer]:
        api = Api(url)
        try:
            return work(api, number)
        finally:
            api.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        return [answer for answers in pool.map(one, range(WRITERS)) for answer in answers]


def test_updates_of_many_writers_are_all_kept_in_one_order(api: Api) -> None:
    api.add_primitive("m", "country")
    answers = at_once(
        api.url, lambda other, _: [other("PUT", "/metrics/m", scalar()) for _ in range(5)]
    )
    assert {answer.status for answer in answers} == {200}
    assert sorted(answer.body["version"] for answer in answers) == list(range(2, 32))
    versions = api("GET", "/metrics/m/versions").body["versions"]
    assert [version["version"] for version in versions] == list(range(1, 32))


def test_of_many_updates_on_one_version_one_wins(api: Api) -> None:
    api.add_primitive("m", "country")
    for version in range(1, 6):
        match = f'"{version}"'
        answers = at_once(
            api.url,
            lambda other, _, match=match: [other("PUT", "/metrics/m", scalar(), If_Match=match)],  # type: ignore[misc]
        )
        assert sorted(answer.status for answer in answers) == [200] + [412] * (WRITERS - 1)


def test_of_many_requests_that_add_one_metric_one_wins(api: Api) -> None:
    api.add_primitive("a", "country")
    answers = at_once(api.url, lambda other, _: [other.add_hybrid("h", "a + 1")])
    assert sorted(answer.status for answer in answers) == [201] + [409] * (WRITERS - 1)


def test_updates_cannot_close_a_cycle_together(api: Api) -> None:
    api.add_primitive("a", "country")
    for name in ("h0", "h1", "h2"):
        api.add_hybrid(name, "a")
    for _ in range(3):
        answers = at_once(
            api.url,
            lambda other, number: [
                other("PUT", f"/metrics/h{number % 3}", hybrid(f"a + h{(number + 1) % 3}"))
            ],
        )
        assert {answer.status for answer in answers} <= {200, 400}
        edges = {name: consumed(api, name) for name in ("h0", "h1", "h2")}
        assert not all(edges[f"h{n}"] & {f"h{(n + 1) % 3}"} for n in range(3)), edges
        for name in ("h0", "h1", "h2"):
            assert api("PUT", f"/metrics/{name}", hybrid("a")).status == 200


def consumed(api: Api, name: str) -> set[str]:
    return set(api("GET", f"/metrics/{name}").body["consumedMetrics"])


# The metric is being migrated.


def test_an_update_of_a_metric_in_migration_is_blocked(catalogue: Catalogue, serve: Serve) -> None:
    api = serve("migrating")
    api.add_primitive("m", "country")
    catalogue.mariadb.execute("UPDATE metrics SET migratedToDynamoDB = 2", catalogue.name)
    for answer in (
        api("PUT", "/metrics/m", scalar()),
        api("POST", "/metrics/m/deprecation", {"reason": "why not"}),
    ):
        assert (answer.status, answer.headers["retry-after"]) == (423, "1")
        assert answer.body["detail"] == "The metric m is being migrated: try again in a moment."
    assert api("GET", "/metrics/m").body["latestVersion"] == 1
    assert api.add_hybrid("h", "m * 2").status == 201


def test_a_new_metric_is_in_both_databases_and_an_unmigrated_one_is_updated_in_one(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("migrating")
    api.add_primitive("new", "country")
    api.add_primitive("old", "country")
    assert catalogue.count("MIGRATED") == 2
    assert legacy_contents(catalogue) == dynamodb_contents(catalogue)
    catalogue.mariadb.execute(
        "UPDATE metrics SET migratedToDynamoDB = 1 WHERE name = 'old'", catalogue.name
    )
    for name in ("new", "old"):
        assert api("PUT", f"/metrics/{name}", scalar(aggregationParam=1)).status == 200
    legacy, dynamodb = legacy_contents(catalogue), dynamodb_contents(catalogue)
    assert legacy["new"] == dynamodb["new"]
    assert (legacy["old"][0]["latestVersion"], dynamodb["old"][0]["latestVersion"]) == ("2", "1")


def test_hybrid_metrics_that_are_added_together_are_all_in_both(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("migrating")
    api.add_primitive("m", "country")
    answers = at_once(
        api.url, lambda other, n: [other.add_hybrid(f"h{n}.{k}", "m + 1") for k in range(5)]
    )
    assert {answer.status for answer in answers} == {201}
    assert catalogue.count("MIGRATED") == 1 + WRITERS * 5


@pytest.mark.parametrize("mode", ["legacy", "migrating"])
def test_connections_that_the_database_has_closed_fail_no_request(
    catalogue: Catalogue, serve: Serve, mode: str
) -> None:
    api = serve(mode)
    api.add_primitive("m", "country")
    at_once(api.url, lambda other, _: [other("PUT", "/metrics/m", scalar()) for _ in range(2)])
    connection = catalogue.mariadb.connect()
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (catalogue.name,))
    for (number,) in cursor.fetchall():
        cursor.execute(f"KILL {number}")
    connection.close()
    time.sleep(IDLE_SECONDS_MAX + 0.1)
    assert [api("PUT", "/metrics/m", scalar()).status for _ in range(8)] == [200] * 8
    assert api("POST", "/dimensions", {"name": "carrier"}).status == 201


def test_a_catalogue_from_before_the_migration_gets_what_it_lacks(
    catalogue: Catalogue, serve: Serve
) -> None:
    catalogue.mariadb.execute(
        OLD_SCHEMA.read_text()
        + "INSERT INTO metric_groups (name) VALUES ('m'), ('hybrid metrics');"
        "INSERT INTO metrics (name, metric_group_id, created_at, created_by) "
        "VALUES ('m', 1, '2018-02-15 18:23:45', 'ada');"
        "INSERT INTO metric_versions (metric_id, version, updated_at, updated_by, "
        "aggregation_style, aggregation_param, value_type) "
        "VALUES (1, 1, '2018-02-15 18:23:45', 'ada', 'SUM', 95, 'SCALAR')",
        catalogue.name,
    )
    api = serve("legacy")
    metric = api("GET", "/metrics/m").body
    assert (metric["createdAt"], metric["aggregationParam"]) == ("2018-02-15T18:23:45.000Z", 95)
    assert api("GET", "/metrics/M").status == 404
    changed = api("PUT", "/metrics/m", scalar(aggregationParam=99.9))
    assert api("GET", "/metrics/m").body == changed.body
    assert api.add_hybrid("h", "m * 2").status == 201
    assert catalogue.count("NOT_MIGRATED") == 2


@pytest.fixture
def lambdas(
    catalogue: Catalogue, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Catalogue, Api]]:
    """Yields the functions in this process, over a catalogue with one unmigrated metric."""
    api = serve("legacy")
    api.add_primitive("m", "country")
    api("PUT", "/metrics/m", scalar())
    monkeypatch.setenv(migration_functions.MYSQL, catalogue.options["--mysql"])
    monkeypatch.setenv(migration_functions.ENDPOINT, catalogue.partita.url)
    monkeypatch.setenv(migration_functions.TABLE, catalogue.name)
    monkeypatch.setenv("PARTITA_METRICS_PASSWORD", catalogue.mariadb.password)
    yield catalogue, api
    migration_functions.close()


def test_one_metric_is_migrated_once(lambdas: tuple[Catalogue, Api]) -> None:
    catalogue, _ = lambdas
    event = {"metricName": "m"}
    assert migration_functions.migrate_one_metric(event, None) == {**event, "outcome": "imported"}
    assert legacy_contents(catalogue) == dynamodb_contents(catalogue)
    assert migration_functions.migrate_one_metric(event, None) == {**event, "outcome": "skipped"}
    assert migration_functions.clean_up(event, None) == {**event, "itemsDeleted": 0}
    assert legacy_contents(catalogue) == dynamodb_contents(catalogue)


def test_what_a_broken_try_leaves_is_cleaned_up(lambdas: tuple[Catalogue, Api]) -> None:
    catalogue, _ = lambdas
    event = {"metricName": "m"}
    left = {"name": {"S": "m"}, "version": {"S": "2"}}
    catalogue.partita.client().put_item(TableName=catalogue.name, Item=left)
    with pytest.raises(MetricConflict):
        migration_functions.migrate_one_metric(event, None)
    assert catalogue.count("IN_MIGRATION") == 1
    with pytest.raises(MetricInMigration):
        migration_functions.migrate_one_metric(event, None)
    assert migration_functions.clean_up(event, None) == {**event, "itemsDeleted": 1}
    assert (catalogue.count("NOT_MIGRATED"), dynamodb_contents(catalogue)) == (1, {})
    assert migration_functions.migrate_one_metric(event, None)["outcome"] == "imported"
    assert legacy_contents(catalogue) == dynamodb_contents(catalogue)


def test_what_a_metric_consumes_is_cleaned_up_with_it_however_many_versions_it_has(
    lambdas: tuple[Catalogue, Api],
) -> None:
    catalogue, api = lambdas
    api.add_hybrid("h", "m * 2")
    # There are so many versions that the older ones fill two transactions.
    catalogue.mariadb.execute(
        "INSERT INTO metric_versions (metric_id, version, updated_at, updated_by, "
        "aggregation_style, value_type, hybrid_formula) SELECT metric_id, seq, updated_at, "
        "updated_by, aggregation_style, value_type, hybrid_formula "
        "FROM metric_versions, seq_2_to_198 WHERE value_type = 'HYBRID'",
        catalogue.name,
    )
    client, event = catalogue.partita.client(), {"metricName": "h"}
    left = {"name": {"S": "h"}, "version": {"S": "198"}}
    client.put_item(TableName=catalogue.name, Item=left)
    with pytest.raises(MetricConflict):
        migration_functions.migrate_one_metric(event, None)
    assert migration_functions.clean_up(event, None)["itemsDeleted"] > 100
    consumers = {
        "TableName": f"{catalogue.name}-directory",
        "KeyConditionExpression": "kind = :kind",
        "ExpressionAttributeValues": {":kind": {"S": "consumer of m"}},
    }
    assert client.query(**consumers)["Count"] == 0
    assert migration_functions.migrate_one_metric(event, None)["outcome"] == "imported"
    assert client.query(**consumers)["Count"] == 1


def test_without_dynamodb_a_migrating_catalogue_goes_on_for_a_while(mariadb: MariaDB) -> None:
    with processes.starting() as start:
        partita = start("serve", "--port", "0", "--in-memory", stderr=None)
        catalogue = Catalogue(mariadb, partita)
        arguments = catalogue.arguments("serve", "--port", "0", "--mode", "migrating")
        api = Api(start(*arguments, env=catalogue.environment, stderr=None).url)
        api.add_primitive("m", "country")
        assert catalogue.count("MIGRATED") == 1
        partita.kill()
        assert api("PUT", "/metrics/m", scalar()).status == 200
        assert api("GET", "/metrics/m").body["latestVersion"] == 2
        assert catalogue.count("NOT_MIGRATED") == 1
        statuses: Counter[int] = Counter()
        while 503 not in statuses:
            statuses[api("PUT", "/metrics/m", scalar()).status] += 1
        assert statuses.keys() <= {200, 503}
        assert api("GET", "/metrics/m").status == 200
        api.close()


def test_a_broken_copy_is_found_and_made_again(lambdas: tuple[Catalogue, Api]) -> None:
    catalogue, api = lambdas
    api.add_primitive("n", "country")
    run(catalogue, "migrate")
    client = catalogue.partita.client()
    client.update_item(
        TableName=catalogue.name,
        Key={"name": {"S": "n"}, "version": {"S": "1"}},
        UpdateExpression="SET madeUp = :more",
        ExpressionAttributeValues={":more": {"S": "by nobody's row"}},
    )
    client.delete_item(TableName=catalogue.name, Key={"name": {"S": "m"}, "version": {"S": "1"}})
    orphan = {"name": {"S": "orphan"}, "version": {"S": "0"}, "latestVersion": {"N": "1"}}
    client.put_item(TableName=catalogue.name, Item=orphan)
    found = run(catalogue, "verify")
    assert found.returncode == 1
    assert "m: version 1 differs" in found.stdout
    assert "n: version 1 differs" in found.stdout
    assert "orphan: only DynamoDB has it" in found.stdout
    assert run(catalogue, "cutover").returncode == 1
    done = run(catalogue, "migrate")
    assert done.returncode == 0, done.stdout
    assert legacy_contents(catalogue) == dynamodb_contents(catalogue)


def test_differences_in_the_directory_are_found_and_repaired(
    lambdas: tuple[Catalogue, Api],
) -> None:
    catalogue, api = lambdas
    api.add_hybrid("h", "m * 2")
    for name in ("early", "late"):
        group = {"name": name, "relatedDimensions": ["country"]}
        assert api("POST", "/metric-groups", group).status == 201
    # A group whose name a hybrid metric has taken meanwhile is not copied any more.
    assert api.add_hybrid("late", "m * 3").status == 201
    assert run(catalogue, "migrate").returncode == 0
    client, table = catalogue.partita.client(), f"{catalogue.name}-directory"
    for kind, name in (("dimension", "made.up"), ("group", "nobody"), ("consumer of h", "m")):
        related = {"relatedDimensions": {"SS": ["country"]}} if kind == "group" else {}
        entry = {"kind": {"S": kind}, "name": {"S": name}, **related}
        client.put_item(TableName=table, Item=entry)
    client.delete_item(TableName=table, Key={"kind": {"S": "dimension"}, "name": {"S": "country"}})
    client.update_item(
        TableName=table,
        Key={"kind": {"S": "group"}, "name": {"S": "early"}},
        UpdateExpression="SET relatedDimensions = :other",
        ExpressionAttributeValues={":other": {"SS": ["made.up"]}},
    )
    found = run(catalogue, "verify")
    assert (found.returncode, found.stdout.splitlines()[1:]) == (
        1,
        [
            "  consumer of h m: only DynamoDB has it",
            "  dimension country: only MariaDB has it",
            "  dimension made.up: only DynamoDB has it",
            "  group early: its dimensions differ",
            "  group nobody: only DynamoDB has it",
        ],
    )
    assert run(catalogue, "cutover").returncode == 1
    assert run(catalogue, "migrate").returncode == 0
    assert run(catalogue, "verify").returncode == 0
    key = {"kind": {"S": "group"}, "name": {"S": "early"}}
    early = client.get_item(TableName=table, Key=key)["Item"]
    assert early["relatedDimensions"] == {"SS": ["country"]}


def test_groups_that_wait_go_back_as_dynamodb_has_them(catalogue: Catalogue, serve: Serve) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    for name in ("taken", "waiting"):
        api("POST", "/metric-groups", {"name": name, "relatedDimensions": ["country"]})
    for command in ("migrate", "cutover"):
        assert run(catalogue, command).returncode == 0
    assert api.add_hybrid("taken", "m + 1").status == 201
    api("POST", "/dimensions", {"name": "city"})
    api("POST", "/metric-groups", {"name": "new", "relatedDimensions": ["city"]})
    catalogue.partita.client().put_item(
        TableName=f"{catalogue.name}-directory",
        Item={"kind": {"S": "consumer of taken"}, "name": {"S": "m"}},
    )
    catalogue.partita.client().update_item(
        TableName=f"{catalogue.name}-directory",
        Key={"kind": {"S": "group"}, "name": {"S": "waiting"}},
        UpdateExpression="ADD relatedDimensions :more",
        ExpressionAttributeValues={":more": {"SS": ["city"]}},
    )
    done = run(catalogue, "rollback")
    assert done.returncode == 0, done.stdout + done.stderr
    assert api("POST", "/metrics", {"name": "waiting", **scalar()}).status == 201
    assert api("POST", "/metrics", {"name": "new", **scalar()}).status == 201
    related = {n: api("GET", f"/metrics/{n}").body["relatedDimensions"] for n in ("waiting", "new")}
    assert related == {"waiting": ["city", "country"], "new": ["city"]}


def test_there_and_back_and_there_again(catalogue: Catalogue, serve: Serve) -> None:
    api = serve("legacy")
    api.add_primitive("old", "country")
    for commands, name in ((("migrate", "cutover"), "new"), (("rollback",), "newer")):
        for command in commands:
            done = run(catalogue, command)
            assert done.returncode == 0, done.stdout + done.stderr
        assert api("PUT", "/metrics/old", scalar()).status == 200
        api("POST", "/dimensions", {"name": f"d.{name}"})
        assert api.add_primitive(name, "country", f"d.{name}").status == 201
        assert api.add_hybrid(f"h.{name}", f"old + {name}").status == 201
    # An updated metric has an outdated copy in DynamoDB, which is cleaned up and made again.
    done = run(catalogue, "migrate")
    assert (done.returncode, "warnings         1" in done.stdout) == (0, True), done.stdout
    assert legacy_contents(catalogue) == dynamodb_contents(catalogue)
    assert run(catalogue, "cutover").returncode == 0
    assert api("GET", "/metrics/old").body["latestVersion"] == 3
    assert api("GET", "/metrics/old/consumers").body == {"consumers": ["h.new", "h.newer"]}
    assert len(api("GET", "/dimensions").body["dimensions"]) == 3


def test_one_command_at_a_time_migrates_a_catalogue(catalogue: Catalogue, serve: Serve) -> None:
    serve("legacy")
    connection = catalogue.mariadb.connect(catalogue.name)
    connection.cursor().execute("SELECT GET_LOCK(MD5(%s), 0)", (f"moving {catalogue.name}",))
    refused = run(catalogue, "migrate")
    connection.close()
    assert refused.returncode == 1
    assert (
        "Another command is migrating this catalogue: wait until it has finished." in refused.stderr
    )


def test_what_cannot_be_migrated_is_reported_with_its_reason(
    lambdas: tuple[Catalogue, Api],
) -> None:
    catalogue, api = lambdas
    api.add_primitive("n", "country")
    # A version that is counted from 0 takes the place of the copy of the latest.
    catalogue.mariadb.execute(
        "UPDATE metric_versions v JOIN metrics m ON m.id = v.metric_id SET v.version = 0 "
        "WHERE m.name = 'm' AND v.version = 1",
        catalogue.name,
    )
    done = run(catalogue, "migrate")
    assert done.returncode == 1
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    assert counts == {
        "processed": "2",
        "imported": "1",
        "skipped": "0",
        "warnings": "3",
        "errors": "1",
    }
    assert (
        "m: DatabaseUnavailable: The request to DynamoDB failed: ValidationException" in done.stdout
    )
    assert (catalogue.count("NOT_MIGRATED"), list(dynamodb_contents(catalogue))) == (1, ["n"])
    refused = run(catalogue, "cutover")
    assert (refused.returncode, "1 metrics are not migrated" in refused.stderr) == (1, True)


def test_names_that_no_request_could_give_are_moved_whole(lambdas: tuple[Catalogue, Api]) -> None:
    catalogue, _ = lambdas
    catalogue.mariadb.execute(
        "INSERT INTO dimensions (name) VALUES ('country\\nodd');"
        "INSERT INTO dimensions_metric_groups (metric_group_id, dimension_id) SELECT g.id, d.id "
        "FROM metric_groups g, dimensions d WHERE g.name = 'm' AND d.name = 'country\\nodd'",
        catalogue.name,
    )
    assert run(catalogue, "migrate").returncode == 0
    assert dynamodb_contents(catalogue)["m"][0]["relatedDimensions"] == {"country", "country\nodd"}
    assert dynamodb_contents(catalogue) == legacy_contents(catalogue)


def run(catalogue: Catalogue, command: str) -> Any:
    return processes.run(*catalogue.arguments(command), env=catalogue.environment)
