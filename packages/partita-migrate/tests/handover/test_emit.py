"""Tests `partita migrate create --emit`: the target tool checks each emitted text."""

from __future__ import annotations

import ast
import json
import os
import runpy
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import jsonschema_rs
import pytest
from botocore.validate import ParamValidator

from partita_migrate.handover.create_stage import create
from partita_migrate.handover.emit import emit
from partita_migrate.handover.emit.cloudformation_template import template
from partita_migrate.handover.emit.resource_names import distinct, pascal_case, snake_case
from partita_migrate.handover.table_requests import tables_of
from partita_migrate.workspace.migration_folder import Folder
from testkit import ROOT
from testkit.servers.processes import ENVIRONMENT, Server, run

from .conftest import ORDERS, SESSIONS, MakeDesign

REGIONS = ["us-east-1", "eu-west-1"]
ON_DEMAND = "\n[create]\ncapacity = 'on-demand'\nstream = 'none'\ntable_class = 'STANDARD'\n"
SCALED = "\n[create]\ncapacity = 'auto scaling'\n"
SETTINGS = pytest.mark.parametrize("settings", [None, ON_DEMAND], ids=["provisioned", "on-demand"])
SCALED_TOO = pytest.mark.parametrize(
    "settings", [None, ON_DEMAND, SCALED], ids=["provisioned", "on-demand", "auto scaling"]
)
CDK = "aws-cdk-lib==2.275.0"
CDK_VENV = ROOT / ".peers" / CDK.replace("==", "-")
SCRIPT_SECONDS_MAX = 120
INSTALL_SECONDS_MAX = 900


def written(design: MakeDesign, format: str, settings: str | None = None) -> tuple[Folder, str]:
    folder = design() if settings is None else design(settings=settings)
    (one,) = emit(folder, (format,))
    assert one.tables == [ORDERS, SESSIONS]
    return folder, (folder.path / one.file).read_text()


def environment(server: Server) -> dict[str, str]:
    """Returns an environment with the server's URL and credentials, and no other AWS settings."""
    own = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("AWS_")}
    return {
        **own,
        "AWS_ENDPOINT_URL_DYNAMODB": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def test_the_command_writes_every_format(design: MakeDesign) -> None:
    folder = design()
    formats = ("cloudformation", "terraform", "cdk", "boto3", "cli")
    options = [word for format in formats for word in ("--emit", format)]
    printed = run("migrate", "create", folder.path, "--json", *options)
    assert printed.returncode == 0, printed.stderr
    found = json.loads(printed.stdout)
    assert [one["format"] for one in found] == list(formats)
    assert all((folder.path / one["file"]).stat().st_size > 500 for one in found)
    assert run("migrate", "create", folder.path, "--emit", "yaml").returncode == 2


@SETTINGS
def test_cloudformation_passes_cfn_lint(design: MakeDesign, settings: str | None) -> None:
    lint = pytest.importorskip("cfnlint.api", reason="cfn-lint is not installed").lint
    _, text = written(design, "cloudformation", settings)
    assert lint(text, regions=REGIONS) == []
    resources = json.loads(text)["Resources"]
    assert resources["SessionsTable"]["Properties"]["TimeToLiveSpecification"] == {
        "AttributeName": "expires", "Enabled": True,
    }  # fmt: skip
    # The linter would say so: the same template with an index on an attribute that is not defined.
    del resources["ShopOrdersTable"]["Properties"]["AttributeDefinitions"][0]
    assert lint(json.dumps({"Resources": resources}), regions=REGIONS) != []


META_ARGUMENTS = ("depends_on", "lifecycle")
"""Terraform's own: every resource takes them, and no provider's schema has them."""


def provider_schema(kind: str) -> Any:
    schema = json.loads((Path(__file__).parent / f"{kind}.schema.json").read_text())
    return jsonschema_rs.validator_for(schema)


@SCALED_TOO
def test_terraform_fits_the_schema_of_the_provider(
    design: MakeDesign, settings: str | None
) -> None:
    _, text = written(design, "terraform", settings)
    resources = json.loads(text)["resource"]
    for kind, named in resources.items():
        validator = provider_schema(kind)
        for resource in named.values():
            own = {name: one for name, one in resource.items() if name not in META_ARGUMENTS}
            assert [error.message for error in validator.iter_errors(own)] == []
    tables = resources["aws_dynamodb_table"]
    assert list(tables) == ["shop_orders", "sessions"]
    if settings == SCALED:
        (target, *_) = resources["aws_appautoscaling_target"].values()
        assert not provider_schema("aws_appautoscaling_target").is_valid(target | {"minimum": 1})
        return
    orders = tables["shop_orders"]
    assert orders["local_secondary_index"] == [
        {"name": "by-time", "range_key": "placed_at", "projection_type": "ALL"}
    ]
    assert ("read_capacity" in orders) == (settings is None)
    assert not provider_schema("aws_dynamodb_table").is_valid(orders | {"partition_key": "id"})


@SETTINGS
def test_the_boto3_script_makes_what_create_makes(
    server: Server, dynamodb: Any, design: MakeDesign, settings: str | None
) -> None:
    folder, _ = written(design, "boto3", settings)
    command = [sys.executable, str(folder.path / "tables_boto3.py")]
    made = finished(command, environment(server))
    assert f"{ORDERS} was made." in made
    assert [one.action for one in create(folder, server.url).tables] == ["unchanged", "unchanged"]
    assert f"{ORDERS} is there already" in finished(command, environment(server))


@pytest.mark.soak
def test_the_cli_script_makes_what_create_makes(
    server: Server, dynamodb: Any, design: MakeDesign
) -> None:
    aws = Path(sys.executable).with_name("aws")
    if not aws.exists():
        pytest.skip("awscli is not installed")
    folder, _ = written(design, "cli")
    path = {"PATH": f"{aws.parent}{os.pathsep}{os.environ['PATH']}"}
    made = finished(["bash", str(folder.path / "tables.sh")], environment(server) | path)
    assert f"{ORDERS} was made." in made
    assert [one.action for one in create(folder, server.url).tables] == ["unchanged", "unchanged"]


def finished(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SCRIPT_SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@SETTINGS
def test_the_cdk_source_has_the_properties_of_the_tables(
    design: MakeDesign, settings: str | None
) -> None:
    folder, text = written(design, "cdk", settings)
    compile(text, "tables_cdk.py", "exec")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    orders, sessions = tables_of(folder)

    def of(function: str) -> list[dict[str, str]]:
        return [
            {one.arg: ast.unparse(one.value) for one in call.keywords if one.arg}
            for call in calls
            if isinstance(call.func, ast.Attribute) and call.func.attr == function
        ]

    first, second = of("Table")
    assert first["partition_key"] == (
        "dynamodb.Attribute(name='customer_id', type=dynamodb.AttributeType.NUMBER)"
    )
    assert first["table_name"] == repr(ORDERS)
    assert second["time_to_live_attribute"] == "'expires'"
    assert "sort_key" not in second and "time_to_live_attribute" not in first
    throughput = orders.create.get("ProvisionedThroughput", {})
    assert first.get("read_capacity") == (
        str(throughput["ReadCapacityUnits"]) if settings is None else None
    )
    assert [one["index_name"] for one in of("add_global_secondary_index")] == [
        repr(one["IndexName"]) for one in orders.indexes
    ]
    assert of("add_global_secondary_index")[0]["non_key_attributes"] == "['total']"
    assert [one["sort_key"] for one in of("add_local_secondary_index")] == [
        "dynamodb.Attribute(name='placed_at', type=dynamodb.AttributeType.STRING)"
    ]
    assert sessions.time_to_live == "expires"


def test_scaling_policies_are_written_for_every_tool(design: MakeDesign) -> None:
    lint = pytest.importorskip("cfnlint.api", reason="cfn-lint is not installed").lint
    _, text = written(design, "cloudformation", SCALED)
    assert lint(text, regions=REGIONS) == []
    kinds = [one["Type"] for one in json.loads(text)["Resources"].values()]
    # Reads and writes of two tables and two global indexes.
    assert kinds.count("AWS::ApplicationAutoScaling::ScalableTarget") == 8
    assert kinds.count("AWS::ApplicationAutoScaling::ScalingPolicy") == 8
    _, text = written(design, "terraform", SCALED)
    resources = json.loads(text)["resource"]
    target = resources["aws_appautoscaling_target"]["shop_orders_by_status_write"]
    assert target["resource_id"] == f"table/{ORDERS}/index/by-status"
    assert resources["aws_appautoscaling_policy"].keys() == (
        resources["aws_appautoscaling_target"].keys()
    )
    _, text = written(design, "cdk", SCALED)
    assert text.count("scale_on_utilization(target_utilization_percent=70)") == 8
    compile(text, "tables_cdk.py", "exec")
    folder, _ = written(design, "boto3", SCALED)
    asked = runpy.run_path(str(folder.path / "tables_boto3.py"))
    assert sorted(asked["SCALING"]) == ["Sessions", ORDERS]
    model = boto3.client("application-autoscaling", region_name="us-east-1").meta.service_model
    for target, policy in asked["SCALING"][ORDERS]:
        for operation, request in (
            ("RegisterScalableTarget", target),
            ("PutScalingPolicy", policy),
        ):
            shape = model.operation_model(operation).input_shape
            assert not ParamValidator().validate(request, shape).has_errors()
    _, text = written(design, "cli", SCALED)
    assert text.count("aws application-autoscaling register-scalable-target") == 8


def test_names_that_a_tool_would_mistake_for_one_stay_apart() -> None:
    names = ["my.table", "my-table", "2nd", "été"]
    assert distinct(names, pascal_case) == {
        "my.table": "MyTable", "my-table": "MyTable2", "2nd": "Table2nd", "été": "T",
    }  # fmt: skip
    assert list(distinct(names, snake_case).values()) == [
        "my_table", "my_table2", "table_2nd", "t",
    ]  # fmt: skip


# The tools themselves, where they can be had.


@pytest.mark.soak
@SCALED_TOO
def test_cdk_synthesises_the_cloudformation_that_is_emitted(
    design: MakeDesign, settings: str | None, tmp_path: Path
) -> None:
    if shutil.which("node") is None:
        pytest.skip("the CDK runs on node, which is not installed")
    python = CDK_VENV / "bin" / "python"
    if not python.exists():
        venv.create(CDK_VENV, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", CDK]
        subprocess.run(install, check=True, timeout=INSTALL_SECONDS_MAX)
    folder, _ = written(design, "cdk", settings)
    out = tmp_path / "cdk.out"
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(out),
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    subprocess.run(
        [python, folder.path / "tables_cdk.py"],
        check=True,
        env=environment,
        timeout=SCRIPT_SECONDS_MAX,
    )
    (synthesised,) = out.glob("*.template.json")
    found = json.loads(synthesised.read_text())["Resources"]
    expected = template(tables_of(folder))["Resources"]
    assert [in_order(one) for one in properties_of(found, "AWS::DynamoDB::Table")] == [
        in_order(one) for one in properties_of(expected, "AWS::DynamoDB::Table")
    ]
    assert scaled(found) == scaled(expected)
    assert len(scaled(found)) == (16 if settings == SCALED else 0)


def properties_of(resources: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one["Properties"] for one in resources.values() if one["Type"] == kind]


def scaled(resources: dict[str, Any]) -> list[str]:
    """Returns bounds and targets of all policies, regardless of resource names."""
    service = "AWS::ApplicationAutoScaling"
    bounds = ("ScalableDimension", "ServiceNamespace", "MinCapacity", "MaxCapacity")
    return sorted(
        [
            *(str([one[name] for name in bounds])
              for one in properties_of(resources, f"{service}::ScalableTarget")),
            *(json.dumps(one["TargetTrackingScalingPolicyConfiguration"], sort_keys=True)
              for one in properties_of(resources, f"{service}::ScalingPolicy")),
        ]
    )  # fmt: skip


def in_order(properties: dict[str, Any]) -> dict[str, Any]:
    """Removes defaults, and sorts lists whose order has no meaning."""
    same = {"BillingMode": "PROVISIONED", "DeletionProtectionEnabled": False}
    left = {name: value for name, value in properties.items() if same.get(name) != value}
    by: dict[str, Callable[[Any], str]] = {
        "AttributeDefinitions": lambda one: str(one["AttributeName"]),
        "Tags": lambda one: str(one["Key"]),
    }
    return {
        name: sorted(value, key=by[name]) if name in by else value for name, value in left.items()
    }


@pytest.mark.soak
def test_terraform_validates_and_plans_auto_scaling(design: MakeDesign, tmp_path: Path) -> None:
    """The plan is not applied: Partita has no Application Auto Scaling API."""
    folder, _ = written(design, "terraform", SCALED)
    terraform = terraform_in(tmp_path / "terraform", folder, "http://127.0.0.1:1")
    terraform("validate")
    planned = terraform("plan", "-refresh=false")
    assert "Plan: 18 to add, 0 to change, 0 to destroy." in planned


@pytest.mark.soak
@SETTINGS
def test_terraform_applies_it_and_finds_nothing_left_to_do(
    server: Server, dynamodb: Any, design: MakeDesign, settings: str | None, tmp_path: Path
) -> None:
    recovery = "\n[estimate]\npoint_in_time_recovery = false\n"
    folder = design(settings=(settings or "\n[create]\ncapacity = 'provisioned'\n") + recovery)
    emit(folder, ("terraform",))
    terraform = terraform_in(tmp_path / "terraform", folder, server.url)
    terraform("validate")
    terraform("apply", "-auto-approve")
    assert [one.action for one in create(folder, server.url).tables] == ["unchanged", "unchanged"]
    assert "No changes." in terraform("plan")


def terraform_in(place: Path, folder: Folder, endpoint: str) -> Callable[..., str]:
    """Returns `terraform(...)`, which runs in an initialized folder with the emitted files."""
    plugins = os.environ.get("PARTITA_TERRAFORM_PLUGINS")
    if shutil.which("terraform") is None or not plugins:
        pytest.skip("no terraform, or PARTITA_TERRAFORM_PLUGINS names no folder with its provider")
    place.mkdir()
    shutil.copy(folder.path / "tables.tf.json", place)
    provider = {
        "region": "us-east-1",
        "access_key": "test",
        "secret_key": "test",
        "skip_credentials_validation": True,
        "skip_requesting_account_id": True,
        "skip_metadata_api_check": True,
        "endpoints": [{"dynamodb": endpoint}],
    }
    (place / "provider.tf.json").write_text(json.dumps({"provider": {"aws": provider}}))

    def terraform(*arguments: str) -> str:
        own = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
        done = subprocess.run(
            ["terraform", f"-chdir={place}", *arguments, "-no-color"],
            env=own, capture_output=True, text=True, timeout=SCRIPT_SECONDS_MAX,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    terraform("init", f"-plugin-dir={plugins}")
    return terraform
