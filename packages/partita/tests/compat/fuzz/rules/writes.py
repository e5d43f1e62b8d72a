"""Writes: updates of missing items, returned attributes, and reasons of cancelled transactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...answers import Answer
from ...notation import Body
from ..requests import Request
from ..twins import Exchange
from .rule import (
    ALTERNATOR,
    CONFORMANCE,
    DYNALITE,
    UNKNOWN,
    Pair,
    Rules,
    both_succeed,
    without,
    without_capacity,
)

RULES = Rules()

CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons"
INVALID_PATH = "The document path provided in the update expression is invalid for update"
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
UPDATE_TEXTS = frozenset(
    (
        INVALID_PATH,
        OVERFLOW,
        UNDERFLOW,
        "The provided expression refers to an attribute that does not exist in the item",
        "An operand in the update expression has an incorrect data type",
    )
)
"""Errors of an update that depend on the item."""

INDEX_KEY = (
    "One or more parameter values were invalid: Type mismatch for Index Key ",
    "The update expression attempted to update the secondary index key to unsupported type",
)
INDEX_KEY_TEXTS = {
    "Invalid attribute value type": INDEX_KEY,
    "One or more parameter values were invalid: Type mismatch for Index Key": INDEX_KEY,
}
"""The error of DynamoDB Local for an index key, and the service's."""

EARLY_TEXTS = ("Cannot update attribute ", "Type mismatch for Index Key ")


@RULES.change("The service calls a sum that needs too many digits an overflow.", ALTERNATOR)
def _too_precise(request: Request, local: Answer, partita: Answer) -> Pair:
    if local.message == "DynamoDB only supports precision up to 38 digits":
        local = replace(local, message=OVERFLOW)
    return local, partita


@RULES.change(
    "An update that only removes does not create an item, and finds no path of a document wrong "
    "where there is no document.",
    ALTERNATOR,
)
def _removed_from_nothing(request: Request, local: Answer, partita: Answer) -> Pair:
    if not any(map(_only_removes, _updates(request))):
        return local, partita
    if local.message == INVALID_PATH:
        return partita, partita
    attributes = local.body.get("Attributes", {}) if local.status == 200 else {}
    if attributes.keys() <= {"pk", "sk"} and "Attributes" not in partita.body:
        local = replace(local, body=without(local.body, "Attributes"))
        local, partita = without_capacity(local, partita)
    return local, partita


def _updates(request: Request) -> list[Body]:
    actions = request.body.get("TransactItems", ())
    return [request.body, *(action["Update"] for action in actions if "Update" in action)]


def _only_removes(update: Body) -> bool:
    if "AttributeUpdates" in update:
        return all(one.get("Action") == "DELETE" for one in update["AttributeUpdates"].values())
    text = update.get("UpdateExpression")
    return text is not None and re.search(r"\b(SET|ADD)\b", text, re.IGNORECASE) is None


@RULES.accept(
    "UPDATED_OLD and UPDATED_NEW have only those parts of a document that the update names.",
    f"{CONFORMANCE}; {DYNALITE}",
)
def _updated_parts(request: Request, local: Answer, partita: Answer) -> bool:
    is_part = "UPDATED_" in str(request.body.get("ReturnValues")) or "MODIFIED" in str(request.body)
    return is_part and both_succeed(local, partita) and _is_part(partita.body, local.body)


def _is_part(part: Any, whole: Any) -> bool:
    """True when one document equals another without some of its members."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_part(one, whole[name]) for name, one in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        rest = iter(whole)
        return all(any(_is_part(one, other) for other in rest) for one in part)
    return bool(part == whole)


@RULES.change("A failed EXISTS shows its item when asked.", "API reference, ParameterizedStatement")
def _item_of_exists(request: Request, local: Answer, partita: Answer) -> Pair:
    if local.type != "TransactionCanceledException" or request.operation != "ExecuteTransaction":
        return local, partita
    asked = iter(request.body["TransactStatements"])

    def shown(reason: Body) -> Body:
        is_exists = next(asked)["Statement"].startswith("EXISTS")
        return without(reason, "Item") if is_exists else reason

    return local, _with_reasons(partita, shown)


@RULES.change("DynamoDB Local ends the text with a full stop for a ConditionCheck.", CONFORMANCE)
def _full_stop(request: Request, local: Answer, partita: Answer) -> Pair:
    def stopped(reason: Body) -> Body:
        is_failure = reason["Code"] == "ConditionalCheckFailed"
        return {**reason, "Message": reason["Message"].removesuffix(".")} if is_failure else reason

    return _with_reasons(local, stopped), partita


@RULES.change("An INSERT of an item that is there has a code of its own.", CONFORMANCE)
def _code_of_duplicates(request: Request, local: Answer, partita: Answer) -> Pair:
    def coded(reason: Body) -> Body:
        is_duplicate = reason.get("Message") == "Duplicate primary key exists in table"
        return {**reason, "Code": "DuplicateItem"} if is_duplicate else reason

    return _with_reasons(local, coded), partita


@RULES.change("DynamoDB Local loses empty documents in the items of reasons.", "DynamoDB Local")
def _empty_documents(request: Request, local: Answer, partita: Answer) -> Pair:
    return _with_reasons(local, _without_empty), _with_reasons(partita, _without_empty)


def _without_empty(value: Any) -> Any:
    """Returns a value without its empty maps and lists."""
    if isinstance(value, dict):
        is_empty = value in ({"M": {}}, {"L": []})
        return {} if is_empty else {name: _without_empty(one) for name, one in value.items()}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


def _with_reasons(answer: Answer, change: Callable[[Body], Body]) -> Answer:
    """A cancelled transaction with changed reasons, whose codes the message repeats."""
    if answer.type != "TransactionCanceledException" or not answer.body:
        return answer
    reasons = [change(reason) for reason in answer.body["CancellationReasons"]]
    codes = ", ".join(reason["Code"] for reason in reasons)
    body = {**answer.body, "CancellationReasons": reasons}
    return replace(answer, message=f"{CANCELLED} [{codes}]", body=body)


@RULES.accept(
    "What does not fit an item or a table cancels a transaction, with a reason for each action; "
    "DynamoDB Local stops at the first.",
    f"API reference, TransactionCanceledException; {CONFORMANCE}",
)
def _cancelled(request: Request, local: Answer, partita: Answer) -> bool:
    if partita.type != "TransactionCanceledException":
        return False
    reasons = partita.body["CancellationReasons"]
    if local.type == "ValidationException":
        return _tells(reasons, str(local.message))
    if local.type != "TransactionCanceledException" or not local.body:
        return False
    theirs = local.body["CancellationReasons"]
    return len(theirs) == 1 < len(reasons) and theirs[0] in reasons


def _tells(reasons: list[Body], text: str) -> bool:
    """True for this reason, or for another error of an update that has several."""
    texts = {str(reason.get("Message")) for reason in reasons}
    if text in INDEX_KEY_TEXTS:
        return any(one.startswith(INDEX_KEY_TEXTS[text]) for one in texts)
    return text in texts or (text in UPDATE_TEXTS and not texts.isdisjoint(UPDATE_TEXTS))


@RULES.accept(
    "What the request alone shows is told before a condition is looked at: that it updates a key "
    "or gives an index key another type. The service has another text if only the item shows it.",
    f"{DYNALITE}; {UNKNOWN} with a condition that fails",
)
def _told_before_the_condition(request: Request, local: Answer, partita: Answer) -> bool:
    if not any(text in str(partita) for text in EARLY_TEXTS):
        return False
    both_cancel = local.type == partita.type == "TransactionCanceledException"
    is_failure = str(local.type).startswith("ConditionalCheckFailed")
    return both_cancel or is_failure or local.message in UPDATE_TEXTS


@RULES.accept(
    "Of several things that are wrong with an update, one is told. DynamoDB Local goes by the "
    "hashes of the attributes' names.",
    f"observed on DynamoDB Local; {UNKNOWN}",
)
def _several_wrong_actions(request: Request, local: Answer, partita: Answer) -> bool:
    actions = re.findall(r"\b(SET|REMOVE|ADD|DELETE)\b|, ", str(request.body))
    return len(actions) > 1 and {local.message, partita.message} <= UPDATE_TEXTS


def may_diverge(exchange: Exchange) -> bool:
    """True when tables may differ after an update that only removes from a missing item."""
    if not any(map(_only_removes, _updates(exchange.request))):
        return False
    if exchange.local.message == INVALID_PATH:
        return True
    for name, items in exchange.left_local.items():
        created = [item for item in items if item not in exchange.left_partita[name]]
        lost = [item for item in exchange.left_partita[name] if item not in items]
        if lost or any(item.keys() - {"pk", "sk"} for item in created):
            return False
    return True
