"""Names for tools that allow fewer characters than DynamoDB does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

WORD = re.compile(r"[A-Za-z0-9]+")


def pascal_case(name: str) -> str:
    """Returns a logical id for CloudFormation: letters and digits."""
    words = "".join(word[0].upper() + word[1:] for word in WORD.findall(name)) or "Table"
    return words if words[0].isalpha() else f"Table{words}"


def snake_case(name: str) -> str:
    """Returns a name for Terraform and Python."""
    words = "_".join(word.lower() for word in WORD.findall(name)) or "table"
    return words if words[0].isalpha() else f"table_{words}"


def distinct(names: Iterable[str], form: Callable[[str], str]) -> dict[str, str]:
    """Returns each name in another form. Names that would become equal are numbered."""
    formed_names: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        short = formed = form(name)
        number = 2
        while formed in taken:
            formed = f"{short}{number}"
            number += 1
        taken.add(formed)
        formed_names[name] = formed
    return formed_names
