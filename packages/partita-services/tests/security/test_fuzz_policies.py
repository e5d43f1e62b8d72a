"""Random policies: patterns against a slow oracle, documents against their promises, and
deliberately slow ones against a limit of processor time."""

from __future__ import annotations

import json
import time
from functools import cache
from random import Random
from typing import Any

import pytest

from partita.errors import AccessDeniedException
from partita.server.security.policies.condition_operators import OPERATORS
from partita.server.security.policies.policy_decision import (
    CallerPolicies,
    PolicyRequest,
    Principal,
    applicable,
    decide,
)
from partita.server.security.policies.policy_documents import (
    IDENTITY,
    RESOURCE,
    TRUST,
    PolicyError,
    parse,
)
from partita.server.security.policies.policy_patterns import (
    UnresolvedVariable,
    arn_matches,
    matches,
)
from partita_services.workflows.language.states.choice_rules import OPERATORS as CHOICES
from testkit.attacks.fuzzing import both_lengths, seeds

ACCOUNT = "123456789012"
ANN = Principal(f"arn:aws:iam::{ACCOUNT}:user/ann", ACCOUNT)
CONTEXT = {
    "a": ("b",),
    "aws:username": ("a*b",),
    "x:colon": ("a:b",),
    "x:empty": ("",),
    "x:none": (),
    "x:many": ("a", "b"),
    "dynamodb:attributes": ("pk", "a" * 50, "salary"),
}
SECONDS_MAX = 1.0
"""The processor time for one decision. Without bounds, these took minutes or did not end."""


# An oracle: a pattern is a list of characters and wildcards, tried in every way.

Token = tuple[str, str]
MANY, ONE = ("*", ""), ("?", "")


def fits(tokens: tuple[Token, ...], text: str) -> bool:
    @cache
    def at(token: int, place: int) -> bool:
        if token == len(tokens):
            return place == len(text)
        if tokens[token] == MANY:
            return any(at(token + 1, later) for later in range(place, len(text) + 1))
        if place == len(text) or (tokens[token] != ONE and tokens[token][1] != text[place]):
            return False
        return at(token + 1, place + 1)

    return at(0, 0)


VARIABLES = {
    "${a}": "b",
    "${ A }": "b",
    "${aws:username}": "a*b",
    "${x:colon}": "a:b",
    "${x:empty}": "",
    "${x:gone, 'b?'}": "b?",
    "${x:none,'a'}": "a",
    "${*}": "*",
    "${?}": "?",
    "${$}": "$",
}
UNRESOLVED = ("${x:many}", "${x:gone}", "${x:many,'a'}")


def piece(chance: Random) -> tuple[str, list[Token] | None]:
    """A piece of a pattern, and what it stands for; None for what matches nothing."""
    kind = chance.random()
    if kind < 0.2:
        return "*", [MANY]
    if kind < 0.3:
        return "?", [ONE]
    if kind < 0.4:
        text = chance.choice(list(VARIABLES))
        return text, [("", one) for one in VARIABLES[text]]
    if kind < 0.42:
        return chance.choice(UNRESOLVED), None
    text = chance.choice("abé\n$")
    return text, [("", text)]


def text_for(chance: Random, tokens: list[Token]) -> str:
    """A text that matches, often with a change."""
    made = []
    for token in tokens:
        if token == MANY:
            made += chance.choices("ab*", k=chance.randrange(4))
        else:
            made.append(chance.choice("ab?") if token == ONE else token[1])
    if made and chance.random() < 0.5:
        made[chance.randrange(len(made))] = chance.choice(["", "a", "b", "*", "?"])
    return "".join(made)


@both_lengths
def test_patterns_mean_what_the_oracle_says(rounds: int) -> None:
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(100):
            pieces = [piece(chance) for _ in range(chance.randrange(9))]
            pattern = "".join(text for text, _ in pieces)
            tokens = [token for _, found in pieces for token in found or ()]
            text = text_for(chance, tokens)
            told = f"seed {seed}: {pattern!r} {text!r}"
            if any(found is None for _, found in pieces):
                with pytest.raises(UnresolvedVariable):
                    matches(pattern, text, CONTEXT)
                continue
            assert matches(pattern, text, CONTEXT) == fits(tuple(tokens), text), told


@both_lengths
def test_parts_of_arns_mean_what_the_oracle_says(rounds: int) -> None:
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(50):
            patterns, texts, is_fit = [], [], True
            for _ in range(6):
                found = [one for one in (piece(chance) for _ in range(3)) if one[1] is not None]
                tokens = tuple(token for _, some in found for token in some or ())
                text = text_for(chance, list(tokens))
                patterns.append("".join(text for text, _ in found))
                texts.append(text)
            # A value may have colons, which part the text and not the pattern.
            given = ":".join(texts).split(":", 5)
            for pattern, text in zip(patterns, given, strict=True):
                is_fit = is_fit and matches(pattern, text, CONTEXT)
            whole, arn = ":".join(patterns), ":".join(texts)
            is_found = arn_matches(whole, arn, CONTEXT)
            assert is_found == is_fit, f"seed {seed}: {whole!r} {arn!r}"


@both_lengths
def test_patterns_of_choices_mean_what_the_oracle_says(rounds: int) -> None:
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(50):
            tokens = [chance.choice([MANY, ("", "a"), ("", "b"), ("", "*"), ("", "\\")])]
            tokens += chance.choices([MANY, ("", "a"), ("", "b"), ("", "*")], k=chance.randrange(7))
            escaped = {"*": "\\*", "\\": "\\\\"}
            pattern = "".join(
                "*" if token == MANY else escaped.get(token[1], token[1]) for token in tokens
            )
            text = text_for(chance, tokens)
            is_found = CHOICES["StringMatches"](text, pattern)
            assert is_found == fits(tuple(tokens), text), f"seed {seed}: {pattern!r} {text!r}"


# Documents

NAMES = [
    *(
        "Version",
        "Id",
        "Statement",
        "Sid",
        "Effect",
        "Action",
        "NotAction",
        "Resource",
        "Condition",
    ),
    *("NotResource", "Principal", "NotPrincipal", "AWS", "Service", "aws:username", "s:n", "a"),
    *("dynamodb:Attributes", "Null", "ForAllValues:StringLike", *OPERATORS),
]
TEXTS = [
    *("*", "", "Allow", "Deny", "2012-10-17", "2008-10-17", "dynamodb:*", "d:?*", "true", "false"),
    *(
        "arn:aws:dynamodb:*:*:table/*",
        "arn:::::",
        "arn:*:*:*:*:*",
        "10.0.0.0/8",
        "::/0",
        "fe80::%x",
    ),
    *(
        "${",
        "${}",
        "${a",
        "${aws:username}",
        "${*}",
        "${a,'}",
        "${${a}}",
        "2026-01-01",
        "0001-01-01",
    ),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "1e999", "-1", "NaN", "1e99999999"),
    *(
        "\ud800",
        "\x00",
        "é",
        "9" * 5000,
        "*" * 50,
        "?a" * 40,
        "QQ==",
        "Q",
        ":",
        "a:b",
        "\U0010ffff",
    ),
]


def value(chance: Random, depth: int) -> Any:
    kind = chance.random()
    if depth == 0 or kind < 0.5:
        numbers = [0, -1, 1.5, 10**30, True, False, None, float("nan"), float("inf")]
        return chance.choice(TEXTS) if chance.random() < 0.8 else chance.choice(numbers)
    if kind < 0.7:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(NAMES + TEXTS): value(chance, depth - 1) for _ in range(3)}


def statement(chance: Random, kind: str) -> dict[str, Any]:
    name = chance.choice([*OPERATORS, "Null"])
    texts = [*TEXTS, *VARIABLES, *UNRESOLVED]
    good = [text for text in texts if chance.random() < 0.02 or is_good(name, text)]
    operator = chance.choice(["", "ForAllValues:", "ForAnyValue:"]) + name
    made: dict[str, Any] = {
        "Effect": chance.choice(["Allow", "Deny"]),
        chance.choice(["Action", "NotAction"]): chance.choice(["*", "dynamodb:*", "dynamodb:?e*"]),
        chance.choice(["Resource", "NotResource"]): chance.choice(["*", "arn:aws:d:*:*:${a}*"]),
        "Principal": "*",
        "Condition": {
            "Null" if name == "Null" else operator + chance.choice(["", "IfExists"]): {
                chance.choice([one for one in CONTEXT if ":" in one]): chance.choices(good, k=3)
            }
        },
    }
    if kind == IDENTITY:
        del made["Principal"]
    if kind == TRUST:
        made.pop("Resource", None)
        made.pop("NotResource", None)
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        made[chance.choice([*made, *NAMES])] = value(chance, 3)
    return made


def is_good(name: str, text: str) -> bool:
    """True when the operator accepts the value."""
    if name == "Null":
        return text in ("true", "false")
    operator = OPERATORS[name]
    if operator.is_arn:
        return text.count(":") > 4
    try:
        return operator.read is None or text in VARIABLES or operator.read(text) is not None
    except ValueError:
        return False


def document(chance: Random, kind: str) -> str:
    statements = [statement(chance, kind) for _ in range(2)]
    made: Any = {"Version": chance.choice(["2012-10-17", "2008-10-17"]), "Statement": statements}
    if chance.random() < 0.2:
        made = value(chance, 5)
    text = json.dumps(made, ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.2:
        place = chance.randrange(len(text) + 1)
        text = (
            text[:place]
            + chance.choice(["", '"', "9" * 5000, "[" * 3000, "\\u", "}"])
            + (text[place + chance.randrange(3) :])
        )
    return text


@both_lengths
def test_any_document_is_a_policy_or_refused(rounds: int) -> None:
    policies = 0
    for seed in seeds(rounds):
        chance = Random(seed)
        for _ in range(60):
            kind = chance.choice([IDENTITY, RESOURCE, TRUST])
            text = document(chance, kind)
            began = time.process_time()
            try:
                made = parse(text, "p", kind)
            except PolicyError as error:
                assert error.reason, f"seed {seed}"
                continue
            finally:
                assert time.process_time() - began < SECONDS_MAX, f"seed {seed}: {text[:500]}"
            policies += 1
            request = PolicyRequest(ANN, "dynamodb:GetItem", f"arn:aws:d:x:{ACCOUNT}:b:c", CONTEXT)
            given = (
                CallerPolicies(resource=(made,))
                if kind == RESOURCE
                else CallerPolicies(identity=(made,))
            )
            decided = decide(given, request)
            # What cannot count is left out beforehand, and changes nothing.
            again = PolicyRequest(ANN, request.action, request.resource, CONTEXT)
            assert decide(applicable(given, again), again).outcome == decided.outcome, text
    assert policies > 200


# What costs most

TEXTS_OF_COST = ["a" * 60_000, "ab" * 30_000, "a" * 30_000 + "b"]
PATTERNS_OF_COST = [
    "*a" * 50 + "b",
    "*" + "?a" * 90 + "c*",
    "*" + "a" * 3000 + "?" + "a" * 2500 + "b*",
    "*" + "a" * 5800 + "b*",
    "*" * 99 + "b",
    "?" * 99 + "*b",
    "a*" * 33 + "?*" * 33 + "b",
    "*" + "a" * 50 + "?" + "a" * 50 + "b*",
]


@pytest.mark.parametrize("pattern", PATTERNS_OF_COST, ids=range(len(PATTERNS_OF_COST)))
@pytest.mark.parametrize("text", TEXTS_OF_COST, ids=range(len(TEXTS_OF_COST)))
def test_no_pattern_makes_a_decision_slow(pattern: str, text: str) -> None:
    one = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    condition = {"ForAnyValue:StringLike": {"dynamodb:Attributes": [pattern]}}
    made = json.dumps({"Version": "2012-10-17", "Statement": [{**one, "Condition": condition}]})
    policies = CallerPolicies(identity=(parse(made, "p"),))
    began = time.process_time()
    # The more values, the sooner it is refused; the worst is just below that.
    for count in (1, 2, 5, 20, 300):
        values = tuple(text[number:] for number in range(count))
        request = PolicyRequest(ANN, "dynamodb:PutItem", "*", {"dynamodb:attributes": values})
        try:
            decide(policies, request)
        except AccessDeniedException:
            break
    assert time.process_time() - began < SECONDS_MAX
