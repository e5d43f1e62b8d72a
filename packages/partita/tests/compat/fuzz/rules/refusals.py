"""Errors: which of several mistakes is reported, and texts that no pattern can compare."""

from __future__ import annotations

import re
from dataclasses import replace

from ...answers import Answer
from ..requests import Request
from ..twins import Exchange
from .rule import CONFORMANCE, DYNALITE, RECORDED, UNKNOWN, Pair, Rules, statement

RULES = Rules()

ENVELOPE = "1 validation error detected: "
KEY_TEXTS = (
    "Consistent reads are not supported on global secondary indexes",
    "Invalid attribute value type",
    "One of the required keys was not given a value",
    "One or more parameter values are not valid. A value specified for a secondary index key",
    "One or more parameter values are not valid. The AttributeValue for a key attribute",
    "One or more parameter values were invalid: Type mismatch for ",
    "The number of conditions on the keys is invalid",
    "The provided starting key does not match the range key predicate",
)
EXPRESSION_TEXTS = (
    "ExpressionAttribute",
    "Invalid ",
    "One or more parameter values were invalid: Global secondary index ",
    "The BETWEEN condition was provided a range where the lower bound is greater than the upper",
    "Value provided in ",
)
PARAMETER_TEXTS = (
    "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    "Cannot specify the ",
    "ConditionalOperator can",
    "Either the KeyConditions or KeyConditionExpression parameter must be specified",
    "Must specify the AttributesToGet or ProjectionExpression when choosing to get",
)
DUPLICATES = "Provided list of item keys contains duplicates"
REPEATED = "Transaction request cannot include multiple operations on one item"
OTHER_TYPE = "Condition parameter type does not match schema type"
IN_STATEMENT = re.compile(r"Validation failed in TransactStatements\[\d+\]: ")


def _text(answer: Answer) -> str:
    return str(answer.message).removeprefix(ENVELOPE)


@RULES.accept("Where DynamoDB Local fails there is nothing to compare with.", "DynamoDB Local")
def _failed(request: Request, local: Answer, partita: Answer) -> bool:
    return local.status == 500


@RULES.accept(
    "The service checks the members of a request against its model before everything else.",
    f"botocore's service model; {CONFORMANCE}",
)
def _members_first(request: Request, local: Answer, partita: Answer) -> bool:
    return _text(local).startswith(EXPRESSION_TEXTS) and _text(partita).startswith("Value null at ")


@RULES.accept(
    "The service checks the parameters against each other before it reads an expression.", DYNALITE
)
def _parameters_first(request: Request, local: Answer, partita: Answer) -> bool:
    return _text(local).startswith(EXPRESSION_TEXTS) and _text(partita).startswith(PARAMETER_TEXTS)


@RULES.accept(
    "The service reads values and expressions before it looks at the table and its keys.",
    CONFORMANCE,
)
def _expressions_first(request: Request, local: Answer, partita: Answer) -> bool:
    return _text(local).startswith(KEY_TEXTS) and _text(partita).startswith(EXPRESSION_TEXTS)


@RULES.accept("Alternatives on a key are reads of their own, which may not overlap.", RECORDED)
def _overlapping_reads(request: Request, local: Answer, partita: Answer) -> bool:
    return _text(partita) == (
        "Overlapping conditions with range keys are not supported in where clause"
    )


@RULES.accept(
    "A path into a key is told before a condition or an item is looked at, and in a transaction "
    "too; of two such paths either, and other mistakes with keys before it.",
    f"observed on DynamoDB Local if nothing else is wrong; {UNKNOWN} with other mistakes",
)
def _paths_into_keys(request: Request, local: Answer, partita: Answer) -> bool:
    if _leads_into_a_key(partita):
        return request.operation == "TransactWriteItems" or local.status != 200
    text = _text(partita)
    is_earlier = text.startswith(KEY_TEXTS) or "Cannot update attribute " in text
    return _leads_into_a_key(local) and is_earlier


def _leads_into_a_key(answer: Answer) -> bool:
    return _text(answer).startswith("Key attributes must be scalars; ")


@RULES.accept(
    "No two actions of a transaction may be on one item. DynamoDB Local does not see that 1 and "
    "1.0 are one, and looks at the items first.",
    "API reference, TransactWriteItems",
)
def _one_action_for_an_item(request: Request, local: Answer, partita: Answer) -> bool:
    return partita.message == REPEATED


@RULES.accept(
    "Of several statements that are wrong, one is told: those first that are wrong by themselves, "
    "as with the expressions of TransactWriteItems.",
    CONFORMANCE,
)
def _several_statements(request: Request, local: Answer, partita: Answer) -> bool:
    theirs, ours = (IN_STATEMENT.match(_text(one)) for one in (local, partita))
    return theirs is not None and ours is not None and theirs[0] != ours[0]


@RULES.accept(
    "attribute_type takes the name of a type, whatever it is asked of. DynamoDB Local's PartiQL "
    "asks that the name has the type of the key.",
    "developer guide, functions of condition expressions",
)
def _type_of_a_key(request: Request, local: Answer, partita: Answer) -> bool:
    tests = re.search(r"attribute_type\(| IS ", statement(request))
    return tests is not None and _text(local).endswith(OTHER_TYPE)


@RULES.accept(
    "Every value that a key is compared with must have its type. DynamoDB Local looks at the last "
    "of several comparisons with a key.",
    "observed on DynamoDB Local for a single comparison",
)
def _last_comparison(request: Request, local: Answer, partita: Answer) -> bool:
    return " OR " in statement(request) and _text(partita).endswith(OTHER_TYPE)


@RULES.change(
    "Operands are shown as values, numbers in their one form; DynamoDB Local shows bytes as a "
    "buffer and numbers as they were written.",
    UNKNOWN,
)
def _shown_operands(request: Request, local: Answer, partita: Answer) -> Pair:
    if "operand: AttributeValue: {" in _text(local):
        local, partita = _masked(local), _masked(partita)
    return local, partita


def _masked(answer: Answer) -> Answer:
    shown = re.compile(r"AttributeValue: \{[NB]:[^}]*\}")
    return replace(answer, message=shown.sub("AttributeValue", answer.message or ""))


@RULES.change(
    "Of overlapping paths both are named. DynamoDB Local names any path as the second.", DYNALITE
)
def _second_path(request: Request, local: Answer, partita: Answer) -> Pair:
    if "Two document paths overlap with each other" in _text(local):
        local, partita = _with_one_path(local), _with_one_path(partita)
    return local, partita


def _with_one_path(answer: Answer) -> Answer:
    return replace(answer, message=str(answer.message).partition(", path two: ")[0])


@RULES.change(
    "Names are listed in their order; DynamoDB Local has that of their hashes.", CONFORMANCE
)
def _listed_names(request: Request, local: Answer, partita: Answer) -> Pair:
    return _with_sorted_names(local), _with_sorted_names(partita)


def _with_sorted_names(answer: Answer) -> Answer:
    listed = re.search(r"(?<= does not project \[).*(?=\])|(?<= keys: \{).*(?=\})", _text(answer))
    if listed is None or answer.message is None:
        return answer
    names = ", ".join(sorted(listed[0].split(", ")))
    return replace(answer, message=answer.message.replace(listed[0], names))


def may_diverge(exchange: Exchange) -> bool:
    """True when tables may have different items, because DynamoDB Local fails halfway.

    It does so in a batch of statements with one item twice. It also carries out updates of paths
    that lead into a key.
    """
    operation = exchange.request.operation
    if exchange.local.message == DUPLICATES:
        return operation == "BatchExecuteStatement"
    return operation == "TransactWriteItems" and _leads_into_a_key(exchange.partita)
