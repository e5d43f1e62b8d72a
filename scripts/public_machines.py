"""Check the machines that tests/workflows/public_machines.tsv lists, where their text is at hand.

    scripts/public_machines.py FOLDER

FOLDER has checkouts of the listed repositories as OWNER/NAME. What a template leaves open is filled
in as CloudFormation would: `${Name}` stays where a function or a name may stand, and is a number
where JSON needs one. Prints what differs from the list, and exits with 1 if anything does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from partita.workflows.language import InvalidDefinition, parse
from partita.workflows.running.tasks.integrations import Abilities, check_resources

LIST = Path(__file__).parent.parent / "tests" / "workflows" / "public_machines.tsv"
OPEN_NUMBER = re.compile(r"(:\s*)\$\{\w+\}(?=\s*[,}\]])")


def refusal(text: str) -> str:
    try:
        check_resources(parse(OPEN_NUMBER.sub(r"\g<1>60", text)), "STANDARD", Abilities())
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
        reason = refusal(file.read_text())
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
