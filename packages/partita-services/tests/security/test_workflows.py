"""Workflows behind the gate: a machine may do what its role may, and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from partita.server.security.identities.user_directory import Directory, Role, new_id
from testkit.servers.users import ACCOUNT, People, policy, refusal, statement, table_arn

ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
SERVICE = {"Service": "states.amazonaws.com"}


def trust(principal: dict[str, str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}


@pytest.fixture(scope="module")
def states(people: People, administrator: Any, admin: Any) -> Any:
    """Step Functions' API, a table, and three roles."""
    admin.create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )

    def with_roles(directory: Directory) -> Directory:
        documents = {
            "writer": (trust(SERVICE), statement("dynamodb:PutItem", table_arn("orders"))),
            "reader": (trust(SERVICE), statement("dynamodb:GetItem", table_arn("orders"))),
            "foreign": (trust({"AWS": ACCOUNT}), statement("*")),
        }
        for name, (trusted, allowed) in documents.items():
            role = Role(new_id("AROA"), policy(trusted), (f"{name}-role",))
            directory = replace(
                directory,
                roles={**directory.roles, f"states-{name}": role},
                policies={**directory.policies, f"{name}-role": policy(allowed)},
            )
        return directory

    people.change(with_roles)
    # boto3 would put `sync-` before the host of some operations.
    return people.client(administrator, "stepfunctions", inject_host_prefix=False)


def run(states: Any, name: str, role: str, resource: str, parameters: dict[str, Any]) -> Any:
    definition = {
        "StartAt": "Do",
        "States": {
            "Do": {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}
        },
    }
    machine = states.create_state_machine(
        name=name,
        definition=json.dumps(definition),
        roleArn=f"{ROLE}states-{role}",
        type="EXPRESS",
    )["stateMachineArn"]
    return states.start_sync_execution(stateMachineArn=machine)


PUT = "arn:aws:states:::dynamodb:putItem"
ITEM = {"TableName": "orders", "Item": {"pk": {"S": "a"}}}


def test_a_machine_may_do_what_its_role_may(states: Any, admin: Any) -> None:
    done = run(states, "writes", "writer", PUT, ITEM)
    assert done["status"] == "SUCCEEDED", done
    assert admin.get_item(TableName="orders", Key=ITEM["Item"])["Item"]


@pytest.mark.parametrize("role", ["reader", "foreign", "missing"])
def test_a_machine_may_do_no_more(states: Any, role: str) -> None:
    done = run(states, f"fails-{role}", role, PUT, ITEM)
    assert done["status"] == "FAILED"
    assert "is not authorized to perform" in done["cause"] or "assume" in done["cause"]


def test_a_machine_starts_others_only_if_its_role_may(states: Any) -> None:
    run(states, "target", "writer", PUT, ITEM)
    machine = f"arn:aws:states:us-east-1:{ACCOUNT}:stateMachine:target"
    done = run(
        states,
        "starts",
        "writer",
        "arn:aws:states:::states:startExecution",
        {"StateMachineArn": machine},
    )
    assert done["status"] == "FAILED" and "states:StartExecution" in done["cause"]


def test_a_role_is_passed_only_by_those_who_may(people: People, states: Any) -> None:
    key = people.add(statement("states:*"))
    client = people.client(key, "stepfunctions")
    definition = '{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}'
    asked = {"name": "passed", "definition": definition, "roleArn": f"{ROLE}states-writer"}
    code, text = refusal(client.create_state_machine, **asked)
    assert code == "AccessDeniedException"
    assert f"iam:PassRole on resource: {ROLE}states-writer" in text
    people.let(key, statement("states:*"), statement("iam:PassRole", f"{ROLE}states-*"))
    assert client.create_state_machine(**asked)


def test_a_header_makes_nobody_a_role(people: People) -> None:
    """Only parts of the server may act for a role."""
    client = people.client(people.add(statement("s3:*")))

    def pretend(request: Any, **_: Any) -> None:
        request.headers["X-Partita-Role"] = f"{ROLE}states-writer"

    client.meta.events.register("before-sign.dynamodb.PutItem", pretend)
    code, text = refusal(client.put_item, **ITEM)
    assert code == "AccessDeniedException" and ":user/" in text
