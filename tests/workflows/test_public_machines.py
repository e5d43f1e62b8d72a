"""Which machines of AWS's own collections a server takes.

Their text is not ours to keep: the list has each machine's place, and the resources of its tasks as
they were read there (F is a function or an activity). `scripts/public_machines.py` checks the
machines themselves.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from partita.workflows.language import InvalidDefinition, parse
from partita.workflows.running.storage.records import STANDARD
from partita.workflows.running.tasks.integrations import Abilities, check_resources

LIST = Path(__file__).with_name("public_machines.tsv")
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:any"
SHARE_MIN = 110 / 170


def machine(resources: list[str]) -> str:
    """One task for each resource, in turn."""
    arns = [FUNCTION if one == "F" else f"arn:aws:states:::{one}" for one in resources]
    states: dict[str, Any] = {
        str(place): {"Type": "Task", "Resource": arn, "Next": str(place + 1)}
        for place, arn in enumerate(arns)
    }
    states[str(len(arns))] = {"Type": "Succeed"}
    return json.dumps({"StartAt": "0", "States": states})


def test_most_public_machines_are_taken_and_the_list_says_which() -> None:
    verdicts = {}
    for line in LIST.read_text().splitlines():
        repository, path, verdict, resources = line.split("\t")
        definition = machine([] if resources == "-" else resources.split())
        try:
            check_resources(parse(definition), STANDARD, Abilities())
            found = "valid"
        except InvalidDefinition:
            found = "refused"
        assert found == verdict, (repository, path)
        verdicts[repository, path] = found
    taken = sum(verdict == "valid" for verdict in verdicts.values())
    assert taken / len(verdicts) >= SHARE_MIN
