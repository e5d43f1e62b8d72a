"""The machines of AWS's own collections that a server accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from partita_services.workflows.language import InvalidDefinition, parse
from partita_services.workflows.running.storage.workflow_records import STANDARD
from partita_services.workflows.running.tasks.integrations import ServerAbilities, check_resources

LIST = Path(__file__).with_name("public_machines.tsv")
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:any"
PATH = "path:"
MACHINES_MIN, VALID_MIN = 170, 110


def state(named: str) -> dict[str, Any]:
    """The state that a word in the list stands for: a task by its resource, or a state with a
    path."""
    if named.startswith(PATH):
        return {"Type": "Pass", "InputPath": named.removeprefix(PATH)}
    return {"Type": "Task", "Resource": FUNCTION if named == "F" else f"arn:aws:states:::{named}"}


def machine(named: list[str]) -> str:
    """One state for each word, in turn."""
    states: dict[str, Any] = {
        str(place): {**state(one), "Next": str(place + 1)} for place, one in enumerate(named)
    }
    states[str(len(named))] = {"Type": "Succeed"}
    return json.dumps({"StartAt": "0", "States": states})


def test_most_public_machines_are_taken_and_the_list_says_which() -> None:
    verdicts = {}
    for line in LIST.read_text().splitlines():
        repository, path, verdict, resources = line.split("\t")
        definition = machine([] if resources == "-" else resources.split())
        try:
            check_resources(parse(definition), STANDARD, ServerAbilities())
            found = "valid"
        except InvalidDefinition:
            found = "refused"
        assert found == verdict, (repository, path)
        verdicts[repository, path] = found
    assert len(verdicts) >= MACHINES_MIN
    assert sum(verdict == "valid" for verdict in verdicts.values()) >= VALID_MIN
