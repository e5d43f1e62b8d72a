"""The template for AWS: valid, with functions that exist, and the machine of the thesis."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from metric_catalogue.catalogue_cloudformation import template
from metric_catalogue.stores.dynamodb.catalogue_tables import CatalogueTables
from testkit.servers import processes

REGIONS = ["us-east-1", "eu-west-1"]


def test_the_template_passes_cfn_lint() -> None:
    table = "reports.metrics"
    lint = pytest.importorskip("cfnlint.api", reason="cfn-lint is not installed").lint
    printed = processes.run("metrics", "cloudformation", "--table", table)
    assert printed.returncode == 0, printed.stderr
    found = lint(printed.stdout, regions=REGIONS)
    assert [str(match) for match in found if match.rule.id[0] in "EW"] == []
    resources = json.loads(printed.stdout)["Resources"].values()
    tables = [
        one["Properties"]["TableName"]
        for one in resources
        if one["Type"].endswith("DynamoDB::Table")
    ]
    assert tables == [table, f"{table}-directory", f"{table}-values"]


def test_the_functions_of_the_template_exist() -> None:
    resources = template(CatalogueTables())["Resources"]
    handlers = {
        one["Properties"]["FunctionName"]: one["Properties"]["Handler"]
        for one in resources.values()
        if one["Type"] == "AWS::Lambda::Function"
    }
    assert set(handlers) == {
        "MigrateOneMetricLambda",
        "CleanUpDynamoDbFromMigratedMetricMetadataLambda",
        "MetricMigrationInvoker",
    }
    for handler in handlers.values():
        module, _, name = handler.rpartition(".")
        assert callable(getattr(import_module(module), name))


def test_the_machine_is_that_of_the_thesis() -> None:
    machine = template(CatalogueTables())["Resources"]["Migration"]["Properties"]
    assert machine["StateMachineName"] == "MetricMetadataMigration"
    assert list(machine["Definition"]["States"]) == [
        "MigrateOneMetric",
        "CleanUpDynamoDbFromMigratedMetricMetadata",
        "Success",
        "Fail",
    ]
    named = {f"${{{name}}}" for name in machine["DefinitionSubstitutions"]}
    states = machine["Definition"]["States"].values()
    assert {state["Resource"] for state in states if state["Type"] == "Task"} == named
