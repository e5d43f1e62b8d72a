"""The migration on the server's own Step Functions and Lambda APIs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

from testkit.packaging.function_packages import children, companion
from testkit.servers import processes

from .conftest import Catalogue, Serve
from .population import dynamodb_contents, legacy_contents, populate

METRICS = 30


def test_a_migration_is_seen_as_a_state_machine_and_survives_its_functions(
    catalogue: Catalogue, serve: Serve
) -> None:
    serve("legacy")
    populate(catalogue, METRICS)
    migrating = subprocess.Popen(
        [*processes.COMMAND, *catalogue.arguments("migrate")],
        env=catalogue.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    while not catalogue.count("MIGRATED"):
        assert migrating.poll() is None
        time.sleep(0.05)
    for child in children(companion(catalogue.partita)):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    said, _ = migrating.communicate(timeout=120)
    assert migrating.returncode == 0, said
    counts = dict(line.split(maxsplit=1) for line in said.splitlines()[:5])
    assert (int(counts["processed"]), int(counts["errors"])) == (METRICS, 0)
    # A metric that a killed function had copied without reporting it is skipped by the next one.
    assert int(counts["imported"]) + int(counts["skipped"]) == METRICS
    assert dynamodb_contents(catalogue) == legacy_contents(catalogue)

    states = catalogue.partita.client("stepfunctions")
    machines = {
        one["name"]: one["stateMachineArn"] for one in states.list_state_machines()["stateMachines"]
    }
    name = f"MetricMetadataMigration-{catalogue.name}"
    listed = states.list_executions(stateMachineArn=machines[name])["executions"]
    assert len(listed) >= METRICS
    assert {one["status"] for one in listed} <= {"SUCCEEDED", "FAILED"}
    history = processes.run("workflow", "history", name, "--endpoint", catalogue.partita.url)
    assert "MigrateOneMetric" in history.stdout and "ExecutionSucceeded" in history.stdout

    functions = catalogue.partita.client("lambda")
    names = {one["FunctionName"] for one in functions.list_functions()["Functions"]}
    assert {
        f"MigrateOneMetricLambda-{catalogue.name}",
        f"MetricMigrationInvoker-{catalogue.name}",
    } <= names


def test_a_metric_that_failed_is_redriven_on_the_api(catalogue: Catalogue, serve: Serve) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    # A version that is counted from 0 takes the place of the copy of the latest.
    catalogue.mariadb.execute("UPDATE metric_versions SET version = 0", catalogue.name)
    ended = processes.run(*catalogue.arguments("migrate"), env=catalogue.environment)
    assert ended.returncode == 1
    states = catalogue.partita.client("stepfunctions")
    name = f"MetricMetadataMigration-{catalogue.name}"
    (machine,) = (
        one["stateMachineArn"]
        for one in states.list_state_machines()["stateMachines"]
        if one["name"] == name
    )
    failed = states.list_executions(stateMachineArn=machine, statusFilter="FAILED")["executions"]
    assert len(failed) == 3
    arn = failed[0]["executionArn"]
    events = states.get_execution_history(executionArn=arn)["events"]
    entered = [
        event["stateEnteredEventDetails"]["name"]
        for event in events
        if "stateEnteredEventDetails" in event
    ]
    assert entered == ["MigrateOneMetric", "CleanUpDynamoDbFromMigratedMetricMetadata", "Fail"]
    states.redrive_execution(executionArn=arn)
    assert states.describe_execution(executionArn=arn)["redriveCount"] == 1
