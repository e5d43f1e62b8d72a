"""Versions and aliases of machines: published, started, listed, deleted, in the service's words."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from .conftest import ROLE, Json, finished, one_task
from .test_state_machines import refused

Create = Callable[..., str]


def says(word: str) -> Json:
    return {"StartAt": "Say", "States": {"Say": {"Type": "Pass", "Result": word, "End": True}}}


def said(states: Any, arn: str) -> Json:
    """The execution of a machine, version or alias."""
    started = states.start_execution(stateMachineArn=arn)["executionArn"]
    done = finished(states, started)
    assert done["status"] == "SUCCEEDED"
    return done


def two_versions(states: Any, create: Create) -> tuple[str, str, str]:
    """A machine, and the ARNs of versions that say one and two."""
    machine = create(says("one"))
    first = states.publish_state_machine_version(stateMachineArn=machine)
    second = states.update_state_machine(
        stateMachineArn=machine, definition=json.dumps(says("two")), publish=True
    )
    states.update_state_machine(stateMachineArn=machine, definition=json.dumps(says("three")))
    return machine, first["stateMachineVersionArn"], second["stateMachineVersionArn"]


def route(*weights: tuple[str, int]) -> list[Json]:
    return [{"stateMachineVersionArn": arn, "weight": weight} for arn, weight in weights]


def test_a_version_stays_as_it_was_published(states: Any, create: Create) -> None:
    machine, first, second = two_versions(states, create)
    assert (first, second) == (f"{machine}:1", f"{machine}:2")
    assert [said(states, arn)["output"] for arn in (first, second, machine)] == [
        '"one"',
        '"two"',
        '"three"',
    ]
    described = states.describe_state_machine(stateMachineArn=first)
    assert described["stateMachineArn"] == first
    assert json.loads(described["definition"]) == says("one")
    listed = states.list_state_machine_versions(stateMachineArn=machine)["stateMachineVersions"]
    assert [version["stateMachineVersionArn"] for version in listed] == [second, first]
    page = states.list_state_machine_versions(stateMachineArn=machine, maxResults=1)
    rest = states.list_state_machine_versions(stateMachineArn=machine, nextToken=page["nextToken"])
    assert [one["stateMachineVersionArn"] for one in rest["stateMachineVersions"]] == [first]


def test_executions_say_which_version_they_are_of(states: Any, create: Create) -> None:
    machine, first, _ = two_versions(states, create)
    done = said(states, first)
    assert done["stateMachineVersionArn"] == first
    assert done["stateMachineArn"] == machine
    assert "stateMachineVersionArn" not in said(states, machine)
    listed = states.list_executions(stateMachineArn=first)["executions"]
    assert [(one["name"], one["stateMachineVersionArn"]) for one in listed] == [
        (done["name"], first)
    ]
    assert len(states.list_executions(stateMachineArn=machine)["executions"]) == 2


def test_a_revision_is_published_once(states: Any, create: Create) -> None:
    machine = create(says("one"))
    first = states.publish_state_machine_version(stateMachineArn=machine, revisionId="INITIAL")
    again = states.publish_state_machine_version(stateMachineArn=machine, description="later")
    assert again["stateMachineVersionArn"] == first["stateMachineVersionArn"]
    updated = states.update_state_machine(
        stateMachineArn=machine, definition=json.dumps(says("two"))
    )
    message = refused(
        states,
        states.publish_state_machine_version,
        "ConflictException",
        stateMachineArn=machine,
        revisionId="INITIAL",
    )
    assert message == (
        "Failed to publish the State Machine version for revision INITIAL. "
        f"The current State Machine revision is {updated['revisionId']}."
    )
    second = states.publish_state_machine_version(
        stateMachineArn=machine, revisionId=updated["revisionId"], description="the second"
    )["stateMachineVersionArn"]
    assert second == f"{machine}:2"
    described = states.describe_state_machine(stateMachineArn=second)
    assert described["description"] == "the second"
    assert described["revisionId"] == updated["revisionId"]


def test_a_machine_can_be_published_when_it_is_created(states: Any) -> None:
    request = {
        "name": f"published-{uuid4()}",
        "definition": json.dumps(says("one")),
        "roleArn": ROLE,
    }
    message = refused(
        states,
        states.create_state_machine,
        "ValidationException",
        **request,
        versionDescription="the first",
    )
    assert message == "Version description can only be set when publish is true"
    for _ in range(2):
        created = states.create_state_machine(
            **request, publish=True, versionDescription="the first"
        )
        assert created["stateMachineVersionArn"] == f"{created['stateMachineArn']}:1"
    described = states.describe_state_machine(stateMachineArn=created["stateMachineVersionArn"])
    assert described["description"] == "the first"


def test_a_deleted_version_is_not_started_and_its_number_not_used_again(
    states: Any, create: Create
) -> None:
    machine, _, second = two_versions(states, create)
    for _ in range(2):
        states.delete_state_machine_version(stateMachineVersionArn=second)
    message = refused(
        states, states.start_execution, "StateMachineDoesNotExist", stateMachineArn=second
    )
    assert message == f"State Machine Does Not Exist: '{second}'"
    third = states.publish_state_machine_version(stateMachineArn=machine)
    assert third["stateMachineVersionArn"] == f"{machine}:3"


def test_an_alias_stands_for_a_version(states: Any, create: Create) -> None:
    machine, first, second = two_versions(states, create)
    alias = states.create_state_machine_alias(
        name="PROD", routingConfiguration=route((first, 100)), description="what customers get"
    )["stateMachineAliasArn"]
    assert alias == f"{machine}:PROD"
    done = said(states, alias)
    assert done["output"] == '"one"'
    assert (done["stateMachineAliasArn"], done["stateMachineVersionArn"]) == (alias, first)
    listed = states.list_executions(stateMachineArn=alias)["executions"]
    assert [one["stateMachineAliasArn"] for one in listed] == [alias]

    states.update_state_machine_alias(
        stateMachineAliasArn=alias, routingConfiguration=route((second, 100))
    )
    assert said(states, alias)["output"] == '"two"'
    described = states.describe_state_machine_alias(stateMachineAliasArn=alias)
    assert described["name"] == "PROD"
    assert described["description"] == "what customers get"
    assert described["routingConfiguration"] == route((second, 100))
    assert described["updateDate"] > described["creationDate"]

    states.delete_state_machine_alias(stateMachineAliasArn=alias)
    refused(states, states.start_execution, "StateMachineDoesNotExist", stateMachineArn=alias)
    message = refused(
        states,
        states.describe_state_machine_alias,
        "ResourceNotFound",
        stateMachineAliasArn=alias,
    )
    assert message == "Request references a resource that does not exist."


def test_an_alias_may_stand_for_two_versions(states: Any, create: Create) -> None:
    _, first, second = two_versions(states, create)
    alias = states.create_state_machine_alias(
        name="canary", routingConfiguration=route((first, 50), (second, 50))
    )["stateMachineAliasArn"]
    outputs = Counter(said(states, alias)["output"] for _ in range(25))
    assert set(outputs) == {'"one"', '"two"'}
    states.update_state_machine_alias(
        stateMachineAliasArn=alias, routingConfiguration=route((first, 0), (second, 100))
    )
    assert {said(states, alias)["output"] for _ in range(5)} == {'"two"'}


def test_a_version_that_an_alias_stands_for_is_not_deleted(states: Any, create: Create) -> None:
    machine, first, second = two_versions(states, create)
    for name in ("b", "a"):
        states.create_state_machine_alias(name=name, routingConfiguration=route((first, 100)))
    message = refused(
        states,
        states.delete_state_machine_version,
        "ConflictException",
        stateMachineVersionArn=first,
    )
    assert message == (
        "Version to be deleted must not be referenced by an alias. "
        "Current list of aliases referencing this version: [a, b]"
    )

    def aliases(arn: str, **page: Any) -> list[str]:
        found = states.list_state_machine_aliases(stateMachineArn=arn, **page)
        return [one["stateMachineAliasArn"] for one in found["stateMachineAliases"]]

    assert aliases(machine) == aliases(first) == [f"{machine}:a", f"{machine}:b"]
    assert aliases(second) == []
    token = states.list_state_machine_aliases(stateMachineArn=machine, maxResults=1)["nextToken"]
    assert aliases(machine, nextToken=token) == [f"{machine}:b"]


def test_the_same_alias_can_be_created_again_but_no_other_of_its_name(
    states: Any, create: Create
) -> None:
    _, first, second = two_versions(states, create)
    made = [
        states.create_state_machine_alias(name="x", routingConfiguration=route((first, 100)))
        for _ in range(2)
    ]
    assert made[0]["creationDate"] == made[1]["creationDate"]
    message = refused(
        states,
        states.create_state_machine_alias,
        "ConflictException",
        name="x",
        routingConfiguration=route((second, 100)),
    )
    assert message == (
        "Failed to create alias because an alias with the same name and a different routing "
        "configuration already exists."
    )


def test_a_wrong_routing_is_refused(states: Any, create: Create) -> None:
    machine, first, second = two_versions(states, create)
    other, *_ = two_versions(states, create)
    must = "Routing configuration must contain"
    for routing, message in [
        (route((machine, 100)), f"{must} state machine version ARNs. Received: [{machine}]"),
        (
            route((first, 50), (first, 50)),
            f"{must} distinct state machine version ARNs. Received: [{first}, {first}]",
        ),
        (
            route((first, 70), (second, 29)),
            "Sum of routing configuration weights must equal 100. Received: [70, 29]",
        ),
        (
            route((f"{machine}:9", 100)),
            f"{must} state machine version ARNs. Received: [{machine}:9]",
        ),
        (
            route((first, 50), (f"{other}:1", 50)),
            f"{must} versions of one state machine. Received: [{first}, {other}:1]",
        ),
    ]:
        found = refused(
            states,
            states.create_state_machine_alias,
            "ValidationException",
            name="y",
            routingConfiguration=routing,
        )
        assert found == message
    for name in ("123", "a b"):
        refused(
            states,
            states.create_state_machine_alias,
            "ValidationException",
            name=name,
            routingConfiguration=route((first, 100)),
        )


def test_a_task_starts_a_version_and_waits_for_it(
    states: Any, create: Create, output: Callable[..., Any]
) -> None:
    _, first, _ = two_versions(states, create)
    sync = "arn:aws:states:::states:startExecution.sync:2"
    assert output(one_task(sync, Parameters={"StateMachineArn": first}))["Output"] == "one"


def test_with_a_machine_its_versions_and_aliases_are_gone(states: Any, create: Create) -> None:
    machine, first, _ = two_versions(states, create)
    states.create_state_machine_alias(name="z", routingConfiguration=route((first, 100)))
    states.delete_state_machine(stateMachineArn=machine)
    name = machine.rpartition(":")[2]
    while True:
        try:
            again = create(says("anew"), name=name)
            break
        except states.exceptions.StateMachineDeleting:
            time.sleep(0.05)
    assert states.list_state_machine_versions(stateMachineArn=again)["stateMachineVersions"] == []
    assert states.list_state_machine_aliases(stateMachineArn=again)["stateMachineAliases"] == []


def test_an_arn_ends_with_a_name(states: Any, create: Create) -> None:
    machine = create(says("one"))
    for arn in (f"{machine}:", machine.rpartition(":")[0] + "::1"):
        refused(states, states.start_execution, "InvalidArn", stateMachineArn=arn)
