"""The page of workflows: machines, the paths of their executions, and redrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.browser.accessibility import serious_findings
from testkit.browser.person import Person, wait_for
from testkit.servers.processes import Server

ROLE = "arn:aws:iam::123456789012:role/any"


def machine_of(table: str) -> dict[str, Any]:
    get = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:putItem",
        "Parameters": {"TableName": table, "Item": {"pk": {"S": "by the machine"}}},
        "ResultPath": None,
        "Next": "Both",
    }
    return {
        "StartAt": "Which?",
        "States": {
            "Which?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.n", "NumericGreaterThan": 1, "Next": "Many"}],
                "Default": "Write",
            },
            "Many": {"Type": "Pass", "Next": "Write"},
            "Write": get,
            "Both": {
                "Type": "Parallel",
                "Branches": [
                    {"StartAt": "Left", "States": {"Left": {"Type": "Pass", "End": True}}},
                    {"StartAt": "Right", "States": {"Right": {"Type": "Pass", "End": True}}},
                ],
                "Next": "End",
            },
            "End": {"Type": "Succeed"},
        },
    }


@pytest.fixture(scope="module")
def states(server: Server) -> Iterator[Any]:
    yield server.client("stepfunctions")


@pytest.fixture
def machine(states: Any, table: Callable[..., str]) -> tuple[str, str]:
    name = f"wf-{table()}"
    definition = json.dumps(machine_of(name))
    made = states.create_state_machine(name=name, definition=definition, roleArn=ROLE)
    return name, made["stateMachineArn"]


def test_a_failed_execution_shows_its_path_and_is_redriven(
    person: Person, client: Any, states: Any, machine: tuple[str, str], pictures: Path
) -> None:
    name, _ = machine
    person.open("#/workflows")
    person.clicks(name)
    person.sees("None.")
    person.clicks("Start execution")
    person.fills("Name (optional)", "first")
    person.fills("Input", '{"n": 1')
    person.sees("This is not JSON")
    person.fills("Input", '{"n": 1}')
    person.clicks("Start")
    # The table that the machine writes to is not there yet.
    person.sees("FAILED", ".head")
    person.sees("TaskFailed", "#history")
    drawn = "document.querySelector('.drawing svg').getAttribute('aria-label')"
    told = str(person.browser.evaluate(drawn))
    assert "Which? done" in told and "Write failed" in told and "Many," in told
    assert serious_findings(person.browser) == []
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    person.clicks("Redrive")
    person.sees("SUCCEEDED", ".head")
    person.sees("redriven 1", "#redrives")
    assert client.scan(TableName=name)["Items"] == [{"pk": {"S": "by the machine"}}]
    wait_for(lambda: "Write done" in person.browser.evaluate(drawn), "the state that was retried")
    wait_for(lambda: "Both done" in person.browser.evaluate(drawn), "the path goes on")
    taken = person.browser.evaluate("document.querySelectorAll('.way.taken').length")
    assert taken >= 3
    person.photographs(pictures / "workflows.png")


def test_executions_are_listed_by_status(
    person: Person, states: Any, machine: tuple[str, str], pictures: Path
) -> None:
    _, arn = machine
    waiting = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 600, "End": True}}}
    states.update_state_machine(stateMachineArn=arn, definition=json.dumps(waiting))
    started = states.start_execution(stateMachineArn=arn, name="waits", input='{"n": 2}')
    person.open(f"#/workflows/{arn.replace(':', '%3A')}?status=FAILED")
    person.sees("None that is FAILED.")
    person.chooses("Status", "RUNNING")
    person.sees("waits", "#executions")
    person.clicks("waits")
    person.clicks("Stop waits")
    person.sees("ABORTED", ".head")
    found = states.describe_execution(executionArn=started["executionArn"])
    assert found["status"] == "ABORTED"
    person.open(f"#/workflows/{arn.replace(':', '%3A')}")
    person.sees("waits", "#executions")
    person.photographs(pictures / "workflow.png")
