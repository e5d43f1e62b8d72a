"""Random definitions and expressions, sent to a running server: it never answers with a 500, and
always in bounded time. A seed repeats a case."""

from __future__ import annotations

import http.client
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from partita.client.aws_services import SERVICES
from partita.client.request_signing import Credentials, signed_headers
from testkit.servers import processes

from .conftest import ROLE

Chance = random.Random
CASES = 250
SECONDS_MAX = 30.0
"""The time for one case; other tests may keep the machine busy."""
SOAK_SECONDS = float(os.environ.get("PARTITA_FUZZ_SECONDS", "3600"))

NAMES = ("$states.input", "$states.context", "$x", "$y", "$", "$$", "a", "b", "`c d`", "$states")
FUNCTIONS = (
    *("sum", "count", "map", "filter", "reduce", "sort", "each", "sift", "spread", "merge", "zip"),
    *("string", "number", "length", "substring", "pad", "match", "replace", "split", "join", "now"),
    *("millis", "fromMillis", "toMillis", "formatNumber", "formatBase", "formatInteger", "round"),
    *("power", "sqrt", "random", "uuid", "range", "partition", "hash", "parse", "eval", "type"),
    *("base64encode", "base64decode", "encodeUrl", "decodeUrl", "lookup", "keys", "distinct"),
    *("reverse", "shuffle", "append", "exists", "not", "assert", "error", "contains", "single"),
)
OPERATORS = ("+", "-", "*", "/", "%", "&", "=", "!=", "<", ">", "in", "and", "or", ".", "~>", "..")
LITERALS = (
    *("1", "0", "-1", "1e308", "1e-320", "9999999", "0.1", "123456789012345678901234567890"),
    *('""', '"a"', '"\\u0000"', '"é😀"', "true", "null", "[]", "{}", "/a*/", "/(a+)+$/", "/((/"),
)
PATHS = (
    *("$", "$.a", "$$", "$$.Execution.Input", "$x", "$..a", "$..*..*", "$.a[*]", "$.a[-1]"),
    *(
        "$.a[?@.b > 1]",
        "$[?(@.a == b)]",
        "$.a[0:9999999999]",
        "$.[0]",
        "$['a', 'b']",
        "$.a.length()",
    ),
    *("States.ArrayRange(0, 999999999, 1)", "States.Format('{}{}', $, $)", "States.UUID()"),
    *("States.ArrayPartition($, 1)", "States.StringToJson('[[[')", "States.Hash($, 'MD5')"),
    *(
        "States.MathRandom(1, 1e300)",
        "States.JsonMerge($, $, true)",
        "$" * 50,
        "$.",
        "",
        "$[",
        "a.b",
    ),
    *(
        "States.Array(" * 12 + ")" * 12,
        "States.StringSplit('a,b', ',')",
        "States.Base64Decode('!')",
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 1e308, 2**70, "", "a", "2026-01-01T00:00:00Z", [], {}),
    *([1, 2, 3], {"a": [{"b": 2}, {"b": "x"}]}, "x" * 5000, "\u0000", "\ud83d\ude00", ROLE),
)
FIELDS = (
    *(
        "Type",
        "Next",
        "End",
        "Output",
        "Assign",
        "Arguments",
        "Parameters",
        "ResultPath",
        "Choices",
    ),
    *("InputPath", "OutputPath", "Seconds", "Timestamp", "Branches", "ItemProcessor", "Items"),
    *("ItemSelector", "ItemBatcher", "ItemReader", "MaxConcurrency", "Retry", "Catch", "Resource"),
    *("QueryLanguage", "StartAt", "States", "Comment", "Default", "Condition", "Error", "Cause"),
)


def expression(chance: Chance, levels: int = 4) -> str:
    """A JSONata expression, mostly valid."""
    if levels == 0 or chance.random() < 0.2:
        return chance.choice((*NAMES, *LITERALS))
    inner = [expression(chance, levels - 1) for _ in range(3)]
    call = f"${chance.choice(FUNCTIONS)}({', '.join(inner[: chance.randrange(4)])})"
    made = (
        f"({inner[0]} {chance.choice(OPERATORS)} {inner[1]})",
        call,
        f"[{inner[0]}, {inner[1]}]",
        f"[{inner[0]}..{inner[1]}]",
        f'{{"a": {inner[0]}, {inner[1]}: {inner[2]}}}',
        f"{inner[0]}[{inner[1]}]",
        f"{inner[0]}^(>{inner[1]})",
        f"{inner[0]} ? {inner[1]} : {inner[2]}",
        f"($x := {inner[0]}; {inner[1]})",
        f"(function($x, $y){{{inner[0]}}})({inner[1]}, {inner[2]})",
        f"$map({inner[0]}, function($x){{{inner[1]}}})",
        f"{inner[0]} ~> |{inner[1]}|{inner[2]}|",
        f"{inner[0]}@$x.{inner[1]}#$y",
        f"($f := function($x){{$f({inner[0]})}}; $f({inner[1]}))",
    )
    return chance.choice(made)


def garbled(chance: Chance, text: str) -> str:
    """The text with some characters changed, lost, repeated or moved."""
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(text) + 1)
        end = min(len(text), place + chance.randrange(1, 20))
        text = chance.choice(
            (
                text[:place] + text[end:],
                text[:place] + chance.choice('(){}[]"\\/$.*%\u0000é') * chance.choice((1, 3, 2000)),
                text[:end] + text[place:],
                text[place:] + text[:place],
            )
        )
    return text


def query(chance: Chance) -> str:
    source = expression(chance, chance.randrange(1, 6))
    if chance.random() < 0.25:
        source = garbled(chance, source)
    return "{% " + source + " %}"


def value(chance: Chance, levels: int = 3) -> Any:
    kind = chance.randrange(8)
    if levels == 0 or kind < 3:
        return chance.choice(VALUES)
    if kind == 3:
        return query(chance)
    if kind == 4:
        return chance.choice(PATHS)
    if kind == 5:
        return [value(chance, levels - 1) for _ in range(chance.randrange(4))]
    names = (*FIELDS, "a", "b.$", "c d", "")
    return {chance.choice(names): value(chance, levels - 1) for _ in range(chance.randrange(4))}


def state(chance: Chance, is_jsonata: bool, levels: int = 2) -> dict[str, Any]:
    """A state, mostly valid."""
    kind = chance.choice(("Pass", "Pass", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map"))
    made: dict[str, Any] = {"Type": kind}
    if kind not in ("Choice", "Succeed", "Fail"):
        made |= chance.choice(({"End": True}, {"Next": "B"}, {"Next": "A"}))
    fields: dict[str, Any] = (
        {"Output": query(chance), "Assign": {"x": query(chance)}}
        if is_jsonata
        else {
            "Parameters": {"a.$": chance.choice(PATHS), "b": value(chance, 1)},
            "InputPath": chance.choice(PATHS),
            "ResultPath": chance.choice(("$", "$.a", "$.a.b[0]", None)),
        }
    )
    for name, content in fields.items():
        if kind in ("Pass", "Map", "Parallel") and chance.random() < 0.6:
            made[name] = content
    if kind == "Choice":
        rule = {"Condition": query(chance), "Next": "B"}
        if not is_jsonata:
            rule = {"Variable": chance.choice(PATHS), "StringMatches": "*a*a*a*", "Next": "B"}
        made |= {"Choices": [rule], "Default": "A"}
    if kind == "Wait":
        made["Seconds"] = query(chance) if is_jsonata else chance.choice((0, 1, -1, 1e300))
    if kind == "Fail":
        made["Error"] = query(chance) if is_jsonata else "E"
    inner = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    if levels:
        inner["States"] = {"A": state(chance, is_jsonata, levels - 1)}
    if kind == "Parallel":
        made["Branches"] = [inner]
    if kind == "Map":
        made["ItemProcessor"] = inner
        made["Items" if is_jsonata else "ItemsPath"] = (
            query(chance) if is_jsonata else chance.choice(PATHS)
        )
    return made


def definition(chance: Chance) -> dict[str, Any]:
    is_jsonata = chance.random() < 0.6
    made: dict[str, Any] = {
        "StartAt": "A",
        "States": {"A": state(chance, is_jsonata), "B": state(chance, is_jsonata)},
    }
    return {"QueryLanguage": "JSONata", **made} if is_jsonata else made


def mutated(chance: Chance, tree: Any) -> Any:
    """The tree with one part of it exchanged."""
    if isinstance(tree, dict) and tree and chance.random() < 0.8:
        name = chance.choice(list(tree))
        changed = {**tree, name: mutated(chance, tree[name])}
        if chance.random() < 0.2:
            changed[chance.choice(FIELDS)] = changed.pop(name)
        return changed
    if isinstance(tree, list) and tree and chance.random() < 0.8:
        place = chance.randrange(len(tree))
        return [*tree[:place], mutated(chance, tree[place]), *tree[place + 1 :]]
    return value(chance)


def text_of(chance: Chance, tree: Any) -> str:
    for _ in range(chance.choice((0, 0, 1, 2))):
        tree = mutated(chance, tree)
    text = json.dumps(tree)
    return garbled(chance, text) if chance.random() < 0.1 else text


def validation(chance: Chance) -> tuple[str, dict[str, Any]]:
    request = {"definition": text_of(chance, definition(chance))}
    return "ValidateStateMachineDefinition", request


def trial(chance: Chance) -> tuple[str, dict[str, Any]]:
    is_jsonata = chance.random() < 0.7
    made = state(chance, is_jsonata)
    if is_jsonata:
        made["QueryLanguage"] = "JSONata"
    request: dict[str, Any] = {
        "definition": text_of(chance, made),
        "input": text_of(chance, value(chance)),
        "roleArn": ROLE,
        "inspectionLevel": chance.choice(("INFO", "DEBUG", "TRACE")),
    }
    if chance.random() < 0.3:
        request["variables"] = text_of(chance, {"x": value(chance)})
    if chance.random() < 0.3:
        mock = {"errorOutput": {"error": "E", "cause": "because"}}
        request["mock"] = chance.choice((mock, {"result": json.dumps(value(chance))}))
        if chance.random() < 0.5:
            request["context"] = text_of(chance, {"Execution": {"Input": value(chance)}})
    return "TestState", request


class Fuzzer:
    """Sends requests, and reports the seed of one that was not answered properly."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self.connection = http.client.HTTPConnection(self._host, timeout=120)
        self.statuses: set[int] = set()

    def send(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        body = json.dumps(request).encode()
        headers = {
            "Host": self._host,
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AWSStepFunctions.{operation}",
        }
        key = Credentials("any", "any")
        now = time.time()
        headers |= signed_headers(SERVICES["states"], "us-east-1", key, headers, body, now)
        self.connection.request("POST", "/", body, headers)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def ask(self, seed: int, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        began = time.monotonic()
        status, answer = self.send(operation, request)
        said = f"seed {seed}: {operation} {json.dumps(request)[:3000]} -> {status} {answer}"
        assert status in (200, 400), said
        assert time.monotonic() - began < SECONDS_MAX, said
        self.statuses.add(status)
        return answer if status == 200 else {}

    def case(self, seed: int) -> None:
        chance = Chance(seed)
        kind = chance.randrange(10)
        if kind < 3:
            self.ask(seed, *validation(chance))
        elif kind < 8:
            self.ask(seed, *trial(chance))
        else:
            self.execution(seed, chance)

    def execution(self, seed: int, chance: Chance) -> None:
        """Starts a machine if its definition is valid, and waits for its end."""
        text = text_of(chance, definition(chance))
        machine = {"definition": text, "roleArn": ROLE, "type": "EXPRESS"}
        made = self.ask(seed, "CreateStateMachine", {"name": f"fuzz-{seed}", **machine})
        if not made:
            return
        arn = made["stateMachineArn"]
        given = {"stateMachineArn": arn, "input": json.dumps(value(chance))}
        self.ask(seed, "StartExecution", given)
        self.ask(seed, "DeleteStateMachine", {"stateMachineArn": arn})


@pytest.fixture
def fuzzer(serve: Callable[..., processes.Server]) -> Iterator[Fuzzer]:
    server = serve("serve", "--port", "0", "--in-memory", "--time-scale", "3600", stderr=None)
    sending = Fuzzer(server.url)
    yield sending
    sending.connection.close()


def test_definitions_and_expressions_at_random_are_answered(fuzzer: Fuzzer) -> None:
    for seed in range(CASES):
        fuzzer.case(seed)
    assert fuzzer.statuses == {200, 400}


@pytest.mark.soak
def test_definitions_and_expressions_at_random_are_answered_for_hours(fuzzer: Fuzzer) -> None:
    deadline = time.monotonic() + SOAK_SECONDS
    seed = random.SystemRandom().randrange(2**32) << 20
    while time.monotonic() < deadline:
        seed += 1
        fuzzer.case(seed)
