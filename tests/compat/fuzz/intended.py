"""Where Partita answers otherwise than DynamoDB Local on purpose, as random requests show it.

Texts that differ are listed in `intended.txt`, in the form of `differences.txt`, of which the
entries that name no case hold here too. Where whole answers differ, a rule says how: it takes out
of both answers, or changes in that of DynamoDB Local, what is known to be otherwise in the service,
and no more. What the rules leave must be the same, or listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..answers import Answer
from ..differences import DIFFERENCES, Difference, read
from ..notation import Body
from .requests import Request
from .twins import Exchange

LIST = Path(__file__).with_name("intended.txt")
TEXTS = (*read(LIST), *(one for one in DIFFERENCES if not one.cases))

STATEMENTS = ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")
TRANSACTIONS = ("TransactGetItems", "TransactWriteItems", "ExecuteTransaction")
CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons"

Pair = tuple[Answer, Answer]


@dataclass(frozen=True)
class Rule:
    reason: str
    source: str
    apply: Callable[[Request, Answer, Answer], Pair]


def is_intended(exchange: Exchange) -> bool:
    if exchange.diverged and not _may_diverge(exchange):
        return False
    local, partita = exchange.local, exchange.partita
    for rule in RULES:
        local, partita = rule.apply(exchange.request, local, partita)
    return local == partita or _is_listed(exchange.request, local, partita)


def _is_listed(request: Request, local: Answer, partita: Answer) -> bool:
    said = str(local)
    return any(
        one.meets("", 0, request.operation, said) and one.expects(said, str(partita))
        for one in TEXTS
    )


# What the rules below do.


def _without(answer: Answer, *names: str) -> Answer:
    if not isinstance(answer.body, dict):
        return answer
    return replace(
        answer, body={name: one for name, one in answer.body.items() if name not in names}
    )


def _without_everywhere(value: Any, *names: str) -> Any:
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if name not in names}
        return {name: _without_everywhere(one, *names) for name, one in kept.items()}
    if isinstance(value, list):
        return [_without_everywhere(one, *names) for one in value]
    return value


def _capacity_of_statements(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation in STATEMENTS:
        return local, _without_capacity(partita)
    return local, partita


def _without_capacity(answer: Answer) -> Answer:
    return replace(answer, body=_without_everywhere(answer.body, "ConsumedCapacity"))


def _unasked_capacity(request: Request, local: Answer, partita: Answer) -> Pair:
    asked = request.body.get("ReturnConsumedCapacity", "NONE")
    if request.operation == "DeleteItem" and asked == "NONE":
        return _without(local, "ConsumedCapacity"), partita
    return local, partita


def _units_of_transactions(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "TransactWriteItems":
        return _without_capacity(local), _without_capacity(partita)
    if request.operation == "TransactGetItems":
        body = _without_everywhere(partita.body, "ReadCapacityUnits")
        return local, replace(partita, body=body)
    return local, partita


def _units_of_batches(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation in ("BatchGetItem", "BatchWriteItem"):
        return _without_capacity(local), _without_capacity(partita)
    return local, partita


def _units_of_reads(request: Request, local: Answer, partita: Answer) -> Pair:
    """At least a unit for a Query that finds nothing; what a Scan costs is not compared."""
    if request.operation == "Scan" or (request.operation == "Query" and _may_fetch(request)):
        return _without_capacity(local), _without_capacity(partita)
    if request.operation == "Query" and _units(local) == 0.0:
        least = 1.0 if request.body.get("ConsistentRead") else 0.5
        if _units(partita) == least:
            return _without_capacity(local), _without_capacity(partita)
    return local, partita


def _units(answer: Answer) -> float | None:
    if answer.status != 200:
        return None
    capacity: Body = answer.body.get("ConsumedCapacity", {})
    return capacity.get("CapacityUnits")


def _may_fetch(request: Request) -> bool:
    """Whether a local index lacks attributes that the table has."""
    name = request.body.get("IndexName")
    return any(
        index.name == name and index.projection != "ALL"
        for table in request.tables
        for index in table.local
    )


def _projected_away(request: Request, local: Answer, partita: Answer) -> Pair:
    if request.operation == "TransactGetItems" and local.status == 200:
        responses = [one if one.get("Item") else {} for one in local.body["Responses"]]
        return replace(local, body={**local.body, "Responses": responses}), partita
    return local, partita


def _full_stop(request: Request, local: Answer, partita: Answer) -> Pair:
    return _with_reasons(local, _without_full_stop), partita


def _without_full_stop(reason: Body) -> Body:
    if reason.get("Code") == "ConditionalCheckFailed":
        return {**reason, "Message": reason["Message"].removesuffix(".")}
    return reason


def _code_of_duplicates(request: Request, local: Answer, partita: Answer) -> Pair:
    return _with_reasons(local, _with_code_of_duplicates), partita


def _with_code_of_duplicates(reason: Body) -> Body:
    if reason.get("Message") == "Duplicate primary key exists in table":
        return {**reason, "Code": "DuplicateItem"}
    return reason


def _with_reasons(answer: Answer, change: Callable[[Body], Body]) -> Answer:
    """A cancelled transaction with changed reasons, whose codes the message repeats."""
    if answer.type != "TransactionCanceledException" or not answer.body:
        return answer
    reasons = [change(reason) for reason in answer.body["CancellationReasons"]]
    codes = ", ".join(reason["Code"] for reason in reasons)
    body = {**answer.body, "CancellationReasons": reasons}
    return replace(answer, message=f"{CANCELLED} [{codes}]", body=body)


def _cancelled_by_an_update(request: Request, local: Answer, partita: Answer) -> Pair:
    """What DynamoDB Local says of the whole request must be what one of the reasons says."""
    if local.type == "ValidationException" and partita.type == "TransactionCanceledException":
        texts = [one.get("Message") for one in partita.body["CancellationReasons"]]
        if local.message in texts:
            return partita, partita
    return local, partita


BYTES_SHOWN = re.compile(r"\{B:java\.nio\.HeapByteBuffer\[[^\]]*\]\}")
NUMBER_OR_BYTES = re.compile(r"AttributeValue: \{[NB]:[^}]*\}")


def _shown_operands(request: Request, local: Answer, partita: Answer) -> Pair:
    if "operand: AttributeValue: {" in str(local.message):
        return _masked(local), _masked(partita)
    return local, partita


def _masked(answer: Answer) -> Answer:
    return replace(answer, message=NUMBER_OR_BYTES.sub("AttributeValue", answer.message or ""))


RULES: tuple[Rule, ...] = (
    Rule(
        "PartiQL statements tell what they consume; DynamoDB Local does not.",
        "dynamodb-conformance (nubo-db), recorded from the service in 2026",
        _capacity_of_statements,
    ),
    Rule(
        "DynamoDB Local adds capacity that nobody asked for when it finds nothing to delete.",
        "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026",
        _unasked_capacity,
    ),
    Rule(
        "Transactions tell read and write units apart, 2 for each unit of every action.",
        "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026",
        _units_of_transactions,
    ),
    Rule(
        "The units of a batch are those of its requests; a key that finds nothing costs one.",
        "dynalite's tests, recorded from the service in 2019 and 2020",
        _units_of_batches,
    ),
    Rule(
        "A read that finds nothing costs the smallest unit; what a local index fetches is summed "
        "before it is rounded.",
        "developer guide; dynalite's tests, recorded from the service in 2019 and 2020",
        _units_of_reads,
    ),
    Rule(
        "TransactGetItems leaves out an item of which a projection leaves nothing.",
        "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026",
        _projected_away,
    ),
    Rule(
        "DynamoDB Local ends the text with a full stop for a ConditionCheck.",
        "dynamodb-conformance (paritysuite, nubo-db), recorded from the service in 2026",
        _full_stop,
    ),
    Rule(
        "An INSERT of an item that is there has a code of its own.",
        "dynamodb-conformance (nubo-db), recorded from the service in 2026",
        _code_of_duplicates,
    ),
    Rule(
        "An update that does not fit its item cancels a transaction.",
        "API reference, TransactionCanceledException",
        _cancelled_by_an_update,
    ),
    Rule(
        "Operands are shown as values, numbers in their one form; DynamoDB Local shows a buffer.",
        "not known of the service",
        _shown_operands,
    ),
)


def _may_diverge(exchange: Exchange) -> bool:
    """Whether the tables may be different: an update that only removes creates no item."""
    for name, items in exchange.left_local.items():
        created = [item for item in items if item not in exchange.left_partita[name]]
        lost = [item for item in exchange.left_partita[name] if item not in items]
        if lost or any(set(item) - {"pk", "sk"} for item in created):
            return False
    return exchange.request.operation in ("UpdateItem", "TransactWriteItems")


def reasons() -> Iterator[tuple[str, str]]:
    """Why each rule and each listed text is there, and who says so."""
    for one in (*RULES, *TEXTS):
        yield one.reason, one.source


__all__ = ["Difference", "is_intended", "reasons"]
