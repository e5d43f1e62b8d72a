"""Where Partita answers otherwise than DynamoDB Local on purpose, and why.

The service is the measure. DynamoDB Local has older texts in many places, checks some things in
another order and does not know some features; where the service's own answer is known, Partita
gives that one. Each entry says what both answer:

* a text is a refusal as `str(Answer)` writes it; `$name` in it stands for anything, and for the
  same thing on both sides;
* a dict is the body of a success; ACCEPTED is any success.

An entry that no longer differs, that is never met, or whose two sides do not say what the servers
said makes the suite fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .answers import Answer, canonical

ACCEPTED = "200 $body"
FAILED = "500 InternalFailure: $text"
VE = "400 ValidationException: "
INVALID = VE + "One or more parameter values were invalid: "
ONE_ERROR = VE + "1 validation error detected: "

Side = str | Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """In these cases (any when empty) of these operations (any when empty), these two answers."""

    reason: str
    source: str
    local: Side
    partita: Side
    operations: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()

    def meets(self, case: str, operation: str, local: Answer) -> bool:
        if self.cases and case not in self.cases:
            return False
        if self.operations and operation not in self.operations:
            return False
        return _pattern(self.local).fullmatch(str(local)) is not None

    def expects(self, local: Answer, partita: Answer) -> bool:
        met = _pattern(self.local).fullmatch(str(local))
        assert met is not None
        return _pattern(self.partita, met.groupdict()).fullmatch(str(partita)) is not None


def _pattern(side: Side, known: Mapping[str, str] | None = None) -> re.Pattern[str]:
    """The side as a regular expression, in which what is known already is filled in."""
    if not isinstance(side, str):
        return re.compile(re.escape(f"200 {canonical(side)}"))
    seen = dict(known or {})
    parts = []
    for number, part in enumerate(re.split(r"\$([a-z]+)", side)):
        if number % 2 == 0:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(re.escape(seen[part]))
        else:
            parts.append(f"(?P<{part}>.*)")
    return re.compile("".join(parts), re.DOTALL)


def because(
    reason: str,
    source: str,
    *pairs: tuple[Side, Side],
    operations: tuple[str, ...] = (),
    cases: tuple[str, ...] = (),
) -> list[Difference]:
    return [Difference(reason, source, *pair, operations, cases) for pair in pairs]


def in_cases(
    family: str, reason: str, source: str, answers: Mapping[str, tuple[Side, Side]]
) -> list[Difference]:
    """Differences that are known by the case, because the text of one side fits several."""
    return [
        Difference(reason, source, *pair, cases=(f"{family}: {name}",))
        for name, pair in answers.items()
    ]


SUITE = "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026"
QUIRKS = "ack-api-quirks, dynamodb: answers of the control plane, live, October 2026"
DYNALITE = "dynalite's tests, recorded from the service in 2019 and 2020"
ALTERNATOR = "ScyllaDB Alternator's tests, which pass on the service"
MODEL = "botocore's service model, in the service's form for constraints"
GUIDE = "developer guide"
REFERENCE = "API reference"

WRITES = ("PutItem", "UpdateItem", "DeleteItem")

# --- The envelope of single-item writes


def enveloped(*texts: str, operations: tuple[str, ...] = WRITES) -> list[Difference]:
    return because(
        "Since 2026 the service writes '1 validation error detected: ' before what it finds wrong "
        "with the request of a single-item write, before it looks for the table.",
        SUITE,
        *((VE + text, ONE_ERROR + text) for text in texts),
        operations=operations,
    )


P = "One or more parameter values were invalid: "

ENVELOPE = [
    *enveloped(
        "Invalid ConditionExpression: $rest",
        "Invalid UpdateExpression: $rest",
        "ExpressionAttributeNames $rest",
        "ExpressionAttributeValues must not be empty",
        "ExpressionAttributeValues contains invalid key: $rest",
        "Value provided in $rest",
        "Can not use both expression and non-expression parameters in the same request: $rest",
        "ConditionalOperator can$rest",
        "Empty attribute name",
        "Supplied AttributeValue $rest",
        "Nesting Levels have exceeded supported limits: $rest",
        "Value null at $rest",
        "The BETWEEN condition was provided a range where $rest",
        P + "An $kind set  may not be empty",
        P + "Binary sets should not be empty",
        P + "Null attribute value types must have the value of true",
        P + "$what for Attribute: $name",
        P + "AttributeValues inside AttributeValueList must be of same type",
        P + "ComparisonOperator $rest",
        P + "Invalid number of argument(s) for the $operator ComparisonOperator",
        P + "Only DELETE action is allowed when no attribute value is specified",
    ),
    *enveloped(
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
        "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        "Item size has exceeded the maximum allowed size",
        operations=("PutItem",),
    ),
]

# --- Values

NO_NUMBER = "The parameter cannot be converted to a numeric value"
TOO_PRECISE = "Attempting to store more than 38 significant digits in a Number"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
IN_EXPRESSION = "ExpressionAttributeValues contains invalid value: "

NUMBERS = [
    *in_cases(
        "values",
        "The service names the number that it cannot read, and tells one that is far out of range.",
        SUITE,
        {
            f"the number {text!r} is refused": (
                f"{VE}A value provided cannot be converted into a number",
                ONE_ERROR + FAR_OUT.get(text, f"{NO_NUMBER}: {text}"),
            )
            for text in BAD_NUMBERS
            if text not in READ_BY_LOCAL
        },
    ),
    *in_cases(
        "values",
        "A number is written in ASCII digits; DynamoDB Local reads those of any script.",
        "documented format of numbers, developer guide",
        {"the number '١' is refused": (ACCEPTED, f"{ONE_ERROR}{NO_NUMBER}: ١")},
    ),
    *in_cases(
        "values",
        "The service names the number that it cannot read.",
        SUITE,
        {
            "an empty number in a set is refused": (
                VE + "A value provided cannot be converted into a number",
                f"{ONE_ERROR}{NO_NUMBER}: ",
            ),
        },
    ),
    *in_cases(
        "batches",
        "The service has an older wording in BatchWriteItem.",
        SUITE,
        {
            "write: an item with an empty number": (
                VE + "A value provided cannot be converted into a number",
                VE + NO_NUMBER,
            ),
        },
    ),
    *because(
        "The service names the number that it cannot read (x in all these cases).",
        SUITE,
        (VE + "A value provided cannot be converted into a number", f"{ONE_ERROR}{NO_NUMBER}: x"),
        (VE + "DynamoDB only supports precision up to 38 digits", ONE_ERROR + TOO_PRECISE),
        (
            f"{VE}{IN_EXPRESSION}A value provided cannot be converted into a number for key $key",
            f"{ONE_ERROR}{NO_NUMBER}: x",
        ),
        operations=("PutItem", "DeleteItem"),
    ),
]
