"""Checks the state machines listed in public_machines.tsv whose source is available.

    scripts/public_machines.py FOLDER

FOLDER has checkouts of the listed repositories as OWNER/NAME, and unpacked npm packages as
npm/NAME@VERSION. A file is a state machine, or a CloudFormation template with state machines in it.
Placeholders of a template are filled in as CloudFormation does: `${Name}` stays where a function
or a name is expected, and becomes a number where JSON needs one. Prints the differences from the
list, and exits with 1 if there are any.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from partita_services.workflows.language import InvalidDefinition, parse
from partita_services.workflows.running.state_machine_arns import (
    activity_arn,
    function_arn,
    machine_arn,
)
from partita_services.workflows.running.tasks.integrations import ServerAbilities, check_resources

ROOT = Path(__file__).parent.parent
LIST = ROOT / "packages/partita-services/tests/workflows/public_machines.tsv"
OPEN_NUMBER = re.compile(r"(:\s*)\$\{\w+\}(?=\s*[,}\]])")
MACHINE = "AWS::StepFunctions::StateMachine"
REFERENCES = {"AWS::StepFunctions::Activity": activity_arn, MACHINE: machine_arn}
"""The value of Ref, for resources whose Ref is an ARN."""
PSEUDO_PARAMETERS = {"AWS::Partition": "aws"}


def definitions(text: str) -> list[str]:
    """Returns the state machines in a file, which is one itself or a CloudFormation template."""
    try:
        template = json.loads(text)
    except ValueError:
        return [text]
    if "StartAt" in template:
        return [text]
    resources = template.get("Resources", {})
    return [
        _filled_in(resource["Properties"]["DefinitionString"], resources)
        for resource in resources.values()
        if resource["Type"] == MACHINE
    ]


def _filled_in(value: Any, resources: dict[str, Any]) -> str:
    match value:
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_filled_in(part, resources) for part in parts)
        case {"Fn::GetAtt": [name, _]}:
            return function_arn(name)
        case {"Ref": name}:
            kind = resources.get(name, {}).get("Type")
            known = REFERENCES.get(kind, PSEUDO_PARAMETERS.get)
            return known(name) or str(name).rpartition(":")[2]
        case _:
            return str(value)


def refusal(text: str) -> str:
    try:
        check_resources(parse(OPEN_NUMBER.sub(r"\g<1>60", text)), "STANDARD", ServerAbilities())
    except InvalidDefinition as error:
        return str(error)
    return ""


def main(folder: Path) -> int:
    counts = {"valid": 0, "refused": 0, "absent": 0}
    differ = 0
    for line in LIST.read_text().splitlines():
        repository, path, verdict, _ = line.split("\t")
        file = folder / repository / path
        if not file.is_file():
            counts["absent"] += 1
            continue
        reason = " ".join(filter(None, map(refusal, definitions(file.read_text()))))
        found = "refused" if reason else "valid"
        counts[found] += 1
        if found != verdict:
            differ += 1
            print(f"{repository}/{path} is {found}, not {verdict}. {reason}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if differ else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
