"""The smallest request, on the fewest items, that still shows a kind of difference."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..notation import Body, mentioned
from .kinds import kind
from .requests import Request
from .twins import Exchange, State, Twins

TRIALS_MAX = 400
TOKENS = re.compile(r"[:#]?\w+|'[^']*'|\"[^\"]*\"|\s+|.", re.DOTALL)
EXPRESSION_CHARS_MIN = 3


class Shrinking:
    """Tries smaller and smaller requests, as long as they show the same."""

    def __init__(self, twins: Twins, wanted: str, judge: Callable[[Exchange], bool]) -> None:
        self._twins = twins
        self._wanted = wanted
        self._judge = judge
        self._trials = 0

    def shrunk(self, state: State, request: Request) -> tuple[State, Exchange] | None:
        """The smallest that is found; none if the items alone do not make the difference."""
        found = self._shown(state, request)
        if found is None:
            return None
        smaller: tuple[State, Exchange] | None = (state, found)
        while smaller is not None:
            state, found = smaller
            smaller = self._smaller(state, found.request)
        return state, found

    def _smaller(self, state: State, request: Request) -> tuple[State, Exchange] | None:
        for less in _less_state(state):
            if (found := self._shown(less, request)) is not None:
                return less, found
        for body in _less_request(request.body):
            if (found := self._shown(state, replace(request, body=body))) is not None:
                return state, found
        return None

    def _shown(self, state: State, request: Request) -> Exchange | None:
        self._trials += 1
        if self._trials > TRIALS_MAX:
            return None
        self._twins.reset(state)
        exchange = self._twins.ask(request)
        shown = exchange.differs and self._judge(exchange) and kind(exchange) == self._wanted
        return exchange if shown else None


def _less_state(state: State) -> Iterator[State]:
    """Without a table, half of its items, an item, an attribute."""
    for name, items in state.items():
        for count in (len(items), len(items) // 2, 1):
            if not count:
                continue
            for start in range(0, len(items), count):
                yield {**state, name: [*items[:start], *items[start + count :]]}
    for name, items in state.items():
        for number, item in enumerate(items):
            for attribute in item:
                if attribute in ("pk", "sk"):
                    continue
                less = {key: value for key, value in item.items() if key != attribute}
                yield {**state, name: [*items[:number], less, *items[number + 1 :]]}


def _less_request(body: Body) -> Iterator[Body]:
    for less in _less(body):
        tidied = _tidied(less)
        yield tidied
        if tidied != less:
            yield less


def _less(value: Any) -> Iterator[Any]:
    """A value without a part: a member, words of a text, or the same of something inside it."""
    if isinstance(value, dict):
        for name in value:
            yield {key: one for key, one in value.items() if key != name}
        for name in value:
            for less in _less(value[name]):
                yield {**value, name: less}
    elif isinstance(value, list):
        for number in range(len(value)):
            yield [*value[:number], *value[number + 1 :]]
        for number, one in enumerate(value):
            for less in _less(one):
                yield [*value[:number], less, *value[number + 1 :]]
    elif isinstance(value, str) and len(value) > EXPRESSION_CHARS_MIN:
        words = TOKENS.findall(value)
        count = len(words) // 2
        while count:
            for start in range(0, len(words), max(1, count // 2)):
                yield "".join((*words[:start], *words[start + count :]))
            count //= 2


def _tidied(body: Any) -> Any:
    """Without placeholders that nothing uses any more."""
    if isinstance(body, list):
        return [_tidied(one) for one in body]
    if not isinstance(body, dict):
        return body
    tidy = {name: _tidied(value) for name, value in body.items()}
    members = ("ExpressionAttributeNames", "ExpressionAttributeValues")
    text = json.dumps({name: one for name, one in tidy.items() if name not in members})
    for name in members:
        if name in tidy:
            used = mentioned(text, tidy.pop(name))
            tidy |= {name: used} if used else {}
    return tidy
