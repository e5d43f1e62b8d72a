"""Tasks of services: DynamoDB over the wire, and executions that start executions."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from .conftest import Json, events, finished, one_task, types
from .test_state_machines import PASS, WAIT, refused

Run = Callable[..., Any]
Create = Callable[..., str]

PUT = "arn:aws:states:::dynamodb:putItem"


@pytest.fixture(scope="module")
def table(server: Any) -> Any:
    """A client of the server's own DynamoDB, with a table `things`."""
    client = server.client()
    client.create_table(
        TableName="things",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


def test_items_are_put_read_changed_and_deleted(states: Any, output: Run, table: Any) -> None:
    key = {"id": {"S.$": "$.id"}}

    def step(operation: str, parameters: Json, following: str | None) -> Json:
        end = {"Next": following} if following else {"End": True}
        return {
            "Type": "Task",
            "Resource": f"arn:aws:states:::dynamodb:{operation}",
            "Parameters": {"TableName": "things", **parameters},
            "ResultPath": f"$.{operation}",
            **end,
        }

    machine = {
        "StartAt": "Put",
        "States": {
            "Put": step("putItem", {"Item": {**key, "n": {"N": "1"}}}, "Update"),
            "Update": step(
                "updateItem",
                {
                    "Key": key,
                    "UpdateExpression": "SET n = n + :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                    "ReturnValues": "UPDATED_NEW",
                },
                "Get",
            ),
            "Get": step("getItem", {"Key": key, "ConsistentRead": True}, "Delete"),
            "Delete": step("deleteItem", {"Key": key, "ReturnValues": "ALL_OLD"}, None),
        },
    }
    done = output(machine, {"id": "a"})
    assert done["putItem"]["SdkHttpMetadata"]["HttpStatusCode"] == 200
    assert done["updateItem"]["Attributes"] == {"n": {"N": "2"}}
    assert done["getItem"]["Item"] == {"id": {"S": "a"}, "n": {"N": "2"}}
    assert done["deleteItem"]["Attributes"] == {"id": {"S": "a"}, "n": {"N": "2"}}
    assert "Item" not in table.get_item(TableName="things", Key={"id": {"S": "a"}})


def test_a_string_stands_for_a_whole_value(output: Run, table: Any) -> None:
    """The spelling in AWS's samples."""
    item = {"id": "short", "done": {"BOOL": "false"}, "steps": {"L": ["one", {"N": "2"}]}}
    output(one_task(PUT, Parameters={"TableName": "things", "Item": item}))
    found = table.get_item(TableName="things", Key={"id": {"S": "short"}})["Item"]
    assert found == {
        "id": {"S": "short"},
        "done": {"BOOL": False},
        "steps": {"L": [{"S": "one"}, {"N": "2"}]},
    }


def test_a_number_is_written_as_a_string(run: Run, table: Any) -> None:
    item = {"id": {"S": "a"}, "n": {"N": 1}}
    failed = run(one_task(PUT, Parameters={"TableName": "things", "Item": item}))
    assert failed["error"] == "States.Runtime"
    assert "[The value for the field 'N' must be a STRING]" in failed["cause"]


def test_a_failed_condition_has_the_name_that_aws_gives_it(
    states: Any, run: Run, table: Any
) -> None:
    parameters = {
        "TableName": "things",
        "Item": {"id": {"S": "b"}},
        "ConditionExpression": "attribute_exists(id)",
    }
    execution = run(one_task(PUT, Parameters=parameters))
    assert execution["error"] == "DynamoDB.ConditionalCheckFailedException"
    assert "The conditional request failed" in execution["cause"]
    found = events(states, execution["executionArn"])
    assert types(found)[2:5] == ["TaskScheduled", "TaskStarted", "TaskFailed"]
    details = found[4]["taskFailedEventDetails"]
    assert (details["resourceType"], details["resource"]) == ("dynamodb", "putItem")
    sdk = run(one_task("arn:aws:states:::aws-sdk:dynamodb:putItem", Parameters=parameters))
    assert sdk["error"] == "DynamoDb.ConditionalCheckFailedException"


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (PUT, "DynamoDB.AmazonDynamoDBException"),
        ("arn:aws:states:::aws-sdk:dynamodb:putItem", "DynamoDb.DynamoDbException"),
    ],
)
def test_a_wrong_request_has_the_general_name_of_the_service(
    run: Run, table: Any, resource: str, error: str
) -> None:
    parameters = {"TableName": "things", "Item": {"other": {"S": "b"}}}
    assert run(one_task(resource, Parameters=parameters))["error"] == error


def test_a_missing_table_can_be_caught(output: Run) -> None:
    catch = [{"ErrorEquals": ["DynamoDB.ResourceNotFoundException"], "Next": "Sorry"}]
    machine = one_task(PUT, Parameters={"TableName": "none", "Item": {}}, Catch=catch)
    machine["States"]["Sorry"] = {"Type": "Pass", "Result": "sorry", "End": True}
    assert output(machine) == "sorry"


def test_other_operations_go_through_the_sdk(output: Run, table: Any) -> None:
    writes = [{"PutRequest": {"Item": {"id": {"S": f"batch-{n}"}}}} for n in range(3)]
    machine = {
        "StartAt": "Write",
        "States": {
            "Write": {
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:dynamodb:batchWriteItem",
                "Parameters": {"RequestItems": {"things": writes}},
                "Next": "Query",
            },
            "Query": {
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:dynamodb:query",
                "Parameters": {
                    "TableName": "things",
                    "KeyConditionExpression": "id = :id",
                    "ExpressionAttributeValues": {":id": {"S": "batch-1"}},
                },
                "ResultSelector": {"items.$": "$.Items"},
                "End": True,
            },
        },
    }
    assert output(machine) == {"items": [{"id": {"S": "batch-1"}}]}


def test_a_machine_lists_its_own_executions(states: Any, create: Create) -> None:
    machine = {
        "StartAt": "List",
        "States": {
            "List": {
                "Type": "Task",
                "Resource": "arn:aws:states:::aws-sdk:sfn:listExecutions",
                "Parameters": {
                    "StateMachineArn.$": "$$.StateMachine.Id",
                    "StatusFilter": "RUNNING",
                    "MaxResults": 1,
                },
                "Next": "More?",
            },
            "More?": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.NextToken", "IsPresent": True, "Next": "Wrong"}],
                "Default": "Done",
            },
            "Wrong": {"Type": "Fail"},
            "Done": {"Type": "Succeed"},
        },
    }
    started = states.start_execution(stateMachineArn=create(machine), name="itself")
    execution = finished(states, started["executionArn"])
    (listed,) = json.loads(execution["output"])["Executions"]
    assert (listed["Name"], listed["Status"]) == ("itself", "RUNNING")
    assert datetime.fromisoformat(listed["StartDate"]) <= started["startDate"]


def test_a_machine_starts_another_through_the_sdk(
    states: Any, run: Run, output: Run, create: Create
) -> None:
    resource = "arn:aws:states:::aws-sdk:sfn:startExecution"
    machine = create(PASS)
    parameters = {"StateMachineArn": machine, "Input": {"theirs": {"a": 1}}}
    answer = output(one_task(resource, Parameters=parameters))
    assert json.loads(finished(states, answer["ExecutionArn"])["output"]) == {"theirs": {"a": 1}}
    parameters["StateMachineArn"] = f"{machine}-missing"
    execution = run(one_task(resource, Parameters=parameters))
    assert execution["error"] == "Sfn.StateMachineDoesNotExistException"


def starting(machine_arn: str, pattern: str, **parameters: Any) -> Json:
    return one_task(
        f"arn:aws:states:::states:startExecution{pattern}",
        Parameters={"StateMachineArn": machine_arn, "Input": {"a": 1}, **parameters},
    )


def test_an_execution_starts_another_and_goes_on(states: Any, output: Run, create: Create) -> None:
    answer = output(starting(create(PASS), ""))
    assert json.loads(finished(states, answer["ExecutionArn"])["output"]) == {"a": 1}


def test_an_execution_waits_for_another(states: Any, output: Run, create: Create) -> None:
    inner = create({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 5, "End": True}}})
    text = output(starting(inner, ".sync"))
    assert (text["Status"], text["Input"], text["Output"]) == ("SUCCEEDED", '{"a":1}', '{"a":1}')
    parsed = output(starting(inner, ".sync:2", Name="named"))
    assert (parsed["Input"], parsed["Output"], parsed["Name"]) == ({"a": 1}, {"a": 1}, "named")


def test_the_failure_of_another_execution_fails_the_task(run: Run, create: Create) -> None:
    inner = create({"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No", "Cause": "x"}}})
    execution = run(starting(inner, ".sync"))
    assert execution["error"] == "States.TaskFailed"
    cause = json.loads(execution["cause"])
    assert (cause["Status"], cause["Error"], cause["Cause"]) == ("FAILED", "No", "x")


def test_an_execution_of_a_missing_machine_fails(run: Run, create: Create) -> None:
    execution = run(starting(create(PASS) + "-missing", ".sync"))
    assert execution["error"] == "StepFunctions.StateMachineDoesNotExistException"


def test_stopping_an_execution_stops_what_it_waits_for(states: Any, create: Create) -> None:
    inner = create(WAIT)
    outer = create(starting(inner, ".sync", Name="inside"))
    arn = states.start_execution(stateMachineArn=outer)["executionArn"]
    inside = inner.replace("stateMachine", "execution") + ":inside"
    while "TaskSubmitted" not in types(events(states, arn)):
        pass
    states.stop_execution(executionArn=arn)
    assert finished(states, inside)["status"] == "ABORTED"
    refused(states, states.describe_execution, "ExecutionDoesNotExist", executionArn=inside + "x")
