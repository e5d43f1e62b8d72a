"""Intentional differences from DynamoDB Local that random requests show.

Texts that differ are listed in `intended.txt`, in the form of `differences.txt`, of which the
entries that name no case hold here too. Where whole answers differ, a rule of `rules/` takes out of
both what is known to be otherwise in the service, and no more. What the rules leave must be the
same, or listed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..answers import Answer
from ..differences import DIFFERENCES, read
from ..notation import Body, Step
from .requests import Request
from .rules import capacity, reads, refusals, writes
from .twins import Exchange

LIST = Path(__file__).with_name("intended.txt")
RULES = (*capacity.RULES, *reads.RULES, *writes.RULES, *refusals.RULES)
TEXTS = (*read(LIST), *(one for one in DIFFERENCES if not one.cases))


def is_intended(exchange: Exchange) -> bool:
    may_diverge = writes.may_diverge(exchange) or refusals.may_diverge(exchange)
    if exchange.diverged and not may_diverge:
        return False
    request, local, partita = exchange.request, exchange.local, exchange.partita
    for rule in RULES:
        local, partita = rule.apply(request, local, partita)
    if local == partita or _is_listed(request, local, partita):
        return True
    return request.operation == "BatchExecuteStatement" and _are_listed(request, local, partita)


def _is_listed(request: Request, local: Answer, partita: Answer) -> bool:
    said, step = str(local), Step(request.operation, request.body)
    return any(
        one.meets("", 0, step, said) and one.expects(step, said, str(partita)) for one in TEXTS
    )


def _are_listed(request: Request, local: Answer, partita: Answer) -> bool:
    """True when each statement of a batch has the same response on both, or listed errors."""
    if local.status != 200 or partita.status != 200:
        return False
    pairs = zip(local.body["Responses"], partita.body["Responses"], strict=True)
    return all(theirs == ours or _is_same_error(request, theirs, ours) for theirs, ours in pairs)


def _is_same_error(request: Request, theirs: Body, ours: Body) -> bool:
    """True when the responses would be equal or an intended difference for separate statements."""
    single = replace(request, operation="ExecuteStatement")
    local, partita = map(_as_answer, (theirs, ours))
    for rule in RULES:
        local, partita = rule.apply(single, local, partita)
    return local == partita or _is_listed(single, local, partita)


def _as_answer(response: Body) -> Answer:
    error = response.get("Error")
    if error is None:
        return Answer(200, response)
    code = error["Code"].replace("ValidationError", "ValidationException")
    return Answer(400, {}, code, error["Message"])
