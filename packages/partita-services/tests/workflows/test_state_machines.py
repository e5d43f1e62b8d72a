"""State machines over Step Functions' API: created, changed, listed, deleted, validated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest

from partita.assembly.service_registry import READS, WRITES
from partita.server.protocol import service_model

from .conftest import ROLE, SECONDS_MAX, Json, finished, function, one_task, states_client

Create = Callable[..., str]

PASS: Json = {"StartAt": "Done", "States": {"Done": {"Type": "Pass", "End": True}}}
WAIT: Json = {"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 9999, "End": True}}}

NOT_BUILT = [
    name[0].lower() + name[1:]
    for name in service_model.load(service_model.DYNAMODB).inputs
    if name not in {**READS, **WRITES}
][:3]
"""Operations of DynamoDB's description that this server does not have."""


def refused(states: Any, call: Callable[..., Any], code: str, **parameters: Any) -> str:
    """The text of the error with which a call is refused."""
    with pytest.raises(states.exceptions.ClientError) as caught:
        call(**parameters)
    error: Json = caught.value.response["Error"]
    assert error["Code"] == code, error
    return str(error["Message"])


def test_a_machine_is_described_as_it_was_created(states: Any, create: Create) -> None:
    arn = create(PASS, name="described", tags=[{"key": "team", "value": "web"}])
    assert arn == "arn:aws:states:us-east-1:123456789012:stateMachine:described"
    described = states.describe_state_machine(stateMachineArn=arn)
    assert described["name"] == "described"
    assert described["status"] == "ACTIVE"
    assert described["type"] == "STANDARD"
    assert described["roleArn"] == ROLE
    assert json.loads(described["definition"]) == PASS
    assert described["loggingConfiguration"] == {"level": "OFF", "includeExecutionData": False}
    assert "revisionId" not in described
    tags = states.list_tags_for_resource(resourceArn=arn)["tags"]
    assert tags == [{"key": "team", "value": "web"}]


def test_creating_the_same_machine_again_changes_nothing(states: Any, create: Create) -> None:
    name = f"same-{uuid4()}"
    create(PASS, name=name)
    first = states.create_state_machine(name=name, definition=json.dumps(PASS), roleArn=ROLE)
    other = f"{ROLE}-2"
    second = states.create_state_machine(name=name, definition=json.dumps(PASS), roleArn=other)
    assert first["creationDate"] == second["creationDate"]
    assert first["stateMachineArn"] == second["stateMachineArn"]
    text = refused(
        states,
        states.create_state_machine,
        "StateMachineAlreadyExists",
        name=name,
        definition=json.dumps(WAIT),
        roleArn=ROLE,
    )
    assert text == f"State Machine Already Exists: '{first['stateMachineArn']}'"


@pytest.mark.parametrize("name", ["with space", "a/b", "a:b", "sla\\sh", 'quo"te', "tab\t", "a#b"])
def test_a_name_with_strange_characters_is_refused(states: Any, name: str) -> None:
    text = refused(
        states,
        states.create_state_machine,
        "InvalidName",
        name=name,
        definition=json.dumps(PASS),
        roleArn=ROLE,
    )
    assert text == f"Invalid Name: '{name}'"


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("{", "INVALID_JSON_DESCRIPTION"),
        ("{}", "SCHEMA_VALIDATION_FAILED"),
        (json.dumps({**PASS, "StartAt": "Nowhere"}), "MISSING_TRANSITION_TARGET"),
        (
            json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "Gone"}}}),
            "MISSING_TRANSITION_TARGET",
        ),
        (
            json.dumps(one_task("arn:aws:states:::sqs:receiveMessage")),
            "is not supported by this server at /States/Only/Resource",
        ),
        (json.dumps(one_task("arn:aws:states:::dynamodb:scan")), "not supported by this"),
        (json.dumps(one_task("arn:aws:states:::aws-sdk:sfn:dance")), "not supported by this"),
        (
            json.dumps(one_task("arn:aws:states:::aws-sdk:kinesis:subscribeToShard")),
            "not supported by this",
        ),
        *(
            (json.dumps(one_task(f"arn:aws:states:::aws-sdk:dynamodb:{name}")), "not supported by")
            for name in NOT_BUILT
        ),
        (
            json.dumps(one_task("arn:aws:states:::glue:startCrawler")),
            "not supported by this",
        ),
        (json.dumps(one_task("https://example.com")), "SCHEMA_VALIDATION_FAILED"),
    ],
)
def test_a_bad_definition_is_refused_with_all_that_is_wrong(
    states: Any, definition: str, words: str
) -> None:
    text = refused(
        states,
        states.create_state_machine,
        "InvalidDefinition",
        name="bad",
        definition=definition,
        roleArn=ROLE,
    )
    assert text.startswith("Invalid State Machine Definition: '")
    assert words in text


@pytest.mark.parametrize(
    "resource",
    [
        "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "arn:aws:states:::states:startExecution.sync",
        "arn:aws:states:us-east-1:123456789012:activity:ask",
    ],
)
def test_an_express_machine_cannot_wait_for_others(states: Any, resource: str) -> None:
    text = refused(
        states,
        states.create_state_machine,
        "InvalidDefinition",
        name="hasty",
        definition=json.dumps(one_task(resource, Parameters={})),
        roleArn=ROLE,
        type="EXPRESS",
    )
    assert "Express state machine does not support" in text


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        (
            {"loggingConfiguration": {"level": "ALL", "includeExecutionData": True}},
            "InvalidLoggingConfiguration",
        ),
        ({"tracingConfiguration": {"enabled": True}}, "InvalidTracingConfiguration"),
        (
            {"encryptionConfiguration": {"type": "CUSTOMER_MANAGED_KMS_KEY", "kmsKeyId": "k"}},
            "InvalidEncryptionConfiguration",
        ),
    ],
)
def test_what_is_not_built_is_refused(states: Any, parameters: Json, code: str) -> None:
    refused(
        states,
        states.create_state_machine,
        code,
        name="more",
        definition=json.dumps(PASS),
        roleArn=ROLE,
        **parameters,
    )


def test_constraints_are_those_of_the_service_description(server: Any) -> None:
    states = states_client(server.url, parameter_validation=False)
    text = refused(states, states.create_state_machine, "ValidationException", name="x" * 81)
    assert "Value null at 'definition' failed to satisfy constraint" in text
    assert "Member must have length less than or equal to 80" in text
    text = refused(states, states.tag_resource, "ValidationException")
    assert "Value null at 'resourceArn'" in text


def test_an_unknown_operation_is_refused(states: Any, server: Any) -> None:
    headers = {
        "X-Amz-Target": "AWSStepFunctions.Fly",
        "X-Amz-Date": "20260101T000000Z",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/states/aws4_request, "
        "SignedHeaders=host, Signature=0",
    }
    with pytest.raises(HTTPError) as caught:
        urlopen(Request(server.url, b"{}", headers))
    with caught.value as answer:
        assert answer.code == 400
        assert json.load(answer)["__type"].endswith("UnknownOperationException")


def test_an_update_counts_for_executions_that_start_after_it(states: Any, create: Create) -> None:
    arn = create(
        {
            "StartAt": "A",
            "States": {
                "A": {"Type": "Wait", "Seconds": 20, "Next": "B"},
                "B": {"Type": "Pass", "Result": "old", "End": True},
            },
        }
    )
    before = states.start_execution(stateMachineArn=arn)["executionArn"]
    new = {"StartAt": "B", "States": {"B": {"Type": "Pass", "Result": "new", "End": True}}}
    updated = states.update_state_machine(stateMachineArn=arn, definition=json.dumps(new))
    after = states.start_execution(stateMachineArn=arn)["executionArn"]
    assert json.loads(finished(states, after)["output"]) == "new"
    assert json.loads(finished(states, before)["output"]) == "old"
    assert states.describe_state_machine(stateMachineArn=arn)["revisionId"] == updated["revisionId"]
    old = states.describe_state_machine_for_execution(executionArn=before)
    assert "old" in old["definition"]
    assert "revisionId" not in old
    new_one = states.describe_state_machine_for_execution(executionArn=after)
    assert new_one["revisionId"] == updated["revisionId"]
    refused(states, states.update_state_machine, "MissingRequiredParameter", stateMachineArn=arn)


def test_machines_are_listed_in_pages(states: Any, create: Create) -> None:
    arns = {create(PASS, name=f"listed-{number}") for number in range(5)}
    pages = states.get_paginator("list_state_machines").paginate(PaginationConfig={"PageSize": 2})
    listed = [machine["stateMachineArn"] for page in pages for machine in page["stateMachines"]]
    assert arns <= set(listed)
    assert len(listed) == len(set(listed))


def test_a_deleted_machine_is_gone_and_so_are_its_executions(states: Any, create: Create) -> None:
    arn = create(WAIT, name="brief")
    execution = states.start_execution(stateMachineArn=arn, name="one")["executionArn"]
    states.delete_state_machine(stateMachineArn=arn)
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            states.describe_state_machine(stateMachineArn=arn)
        except states.exceptions.StateMachineDoesNotExist:
            break
        assert time.monotonic() < deadline
    refused(states, states.describe_execution, "ExecutionDoesNotExist", executionArn=execution)
    text = refused(states, states.start_execution, "StateMachineDoesNotExist", stateMachineArn=arn)
    assert text == f"State Machine Does Not Exist: '{arn}'"
    states.delete_state_machine(stateMachineArn=arn)
    assert create(PASS, name="brief") == arn
    states.start_execution(stateMachineArn=arn, name="one")


def test_workflows_begin_anew_when_their_table_is_deleted(serve: Any) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    states = states_client(server.url)
    definition = json.dumps(PASS)
    states.create_state_machine(name="gone", definition=definition, roleArn=ROLE)
    server.client().delete_table(TableName="partita-workflows")
    assert states.list_state_machines()["stateMachines"] == []
    created = states.create_state_machine(name="gone", definition=definition, roleArn=ROLE)
    started = states.start_execution(stateMachineArn=created["stateMachineArn"])
    assert finished(states, started["executionArn"])["status"] == "SUCCEEDED"


def test_tags_come_and_go(states: Any, create: Create) -> None:
    arn = create(PASS)
    states.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "1"}, {"key": "b"}])
    states.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert states.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "b", "value": ""}]
    missing = arn + "-missing"
    refused(states, states.list_tags_for_resource, "ResourceNotFound", resourceArn=missing)


def test_validation_tells_what_creating_would_refuse(states: Any) -> None:
    good = states.validate_state_machine_definition(definition=json.dumps(PASS))
    assert (good["result"], good["diagnostics"]) == ("OK", [])
    bad = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}}})
    found = states.validate_state_machine_definition(definition=bad)
    assert found["result"] == "FAIL"
    assert found["diagnostics"][0]["code"] == "MISSING_TRANSITION_TARGET"
    assert found["diagnostics"][0]["location"].startswith("/States/A")


@pytest.mark.parametrize(
    ("arn", "text"),
    [
        ("nonsense", "Invalid Arn: 'Invalid ARN prefix: nonsense'"),
        (function("echo"), f"Invalid Arn: 'Invalid ARN prefix: {function('echo')}'"),
        (
            "arn:aws:states:us-east-1:123456789012:activity:x",
            "Invalid Arn: 'Resource type not valid in this context: activity'",
        ),
    ],
)
def test_an_arn_that_is_none_is_refused(states: Any, arn: str, text: str) -> None:
    told = refused(states, states.describe_state_machine, "InvalidArn", stateMachineArn=arn)
    assert told == text


def test_a_role_is_an_arn(states: Any) -> None:
    refused(
        states,
        states.create_state_machine,
        "InvalidArn",
        name="no-role",
        definition=json.dumps(PASS),
        roleArn="role",
    )


def test_only_metadata_when_nothing_else_is_wanted(states: Any, create: Create) -> None:
    machine = create(PASS)
    execution = states.start_execution(stateMachineArn=machine, input='{"a": 1}')["executionArn"]
    finished(states, execution)
    only = {"includedData": "METADATA_ONLY"}
    assert states.describe_state_machine(stateMachineArn=machine, **only)["definition"] == ""
    described = states.describe_execution(executionArn=execution, **only)
    assert described["status"] == "SUCCEEDED"
    assert not {"input", "output"} & described.keys()
