"""Partita gives the answers of DynamoDB Local, apart from the differences that are listed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from partita.server.protocol.service_model import DYNAMODB, STREAMS, load

from . import (
    cases_batches,
    cases_capacity,
    cases_conditions,
    cases_delete_item,
    cases_get_item,
    cases_legacy,
    cases_mutations,
    cases_partiql,
    cases_put_item,
    cases_query,
    cases_requests,
    cases_scan,
    cases_settings,
    cases_streams,
    cases_tables,
    cases_transactions,
    cases_update_item,
    cases_values,
)
from .answers import Answer
from .differences import DIFFERENCES, ORIGINS, Difference, difference
from .endpoints import Endpoint
from .notation import Case, Step

FAMILIES: tuple[ModuleType, ...] = (
    cases_put_item,
    cases_get_item,
    cases_update_item,
    cases_delete_item,
    cases_values,
    cases_conditions,
    cases_legacy,
    cases_query,
    cases_scan,
    cases_batches,
    cases_transactions,
    cases_partiql,
    cases_mutations,
    cases_capacity,
    cases_tables,
    cases_settings,
    cases_requests,
    cases_streams,
)

# The operations of the first issue, and PartiQL's.
OPERATIONS = frozenset(
    (
        "BatchExecuteStatement",
        "BatchGetItem",
        "BatchWriteItem",
        "CreateTable",
        "DeleteItem",
        "DeleteTable",
        "DescribeEndpoints",
        "DescribeStream",
        "DescribeLimits",
        "DescribeTable",
        "DescribeTimeToLive",
        "ExecuteStatement",
        "ExecuteTransaction",
        "GetItem",
        "GetRecords",
        "GetShardIterator",
        "ListStreams",
        "ListTables",
        "ListTagsOfResource",
        "PutItem",
        "Query",
        "Scan",
        "TagResource",
        "TransactGetItems",
        "TransactWriteItems",
        "UntagResource",
        "UpdateItem",
        "UpdateTable",
        "UpdateTimeToLive",
    )
)
REQUESTS_MIN = 400


def _named(family: ModuleType) -> list[tuple[str, Case]]:
    prefix = family.__name__.rpartition("cases_")[2]
    return [(f"{prefix}: {case.name}", case) for case in family.CASES]


CASES = [named for family in FAMILIES for named in _named(family)]

MODELS = [load(service) for service in (DYNAMODB, STREAMS)]
WIRE = Path(__file__).parents[1] / "wire"


def _is_path(source: str) -> bool:
    return re.fullmatch(r"\w+ [\w./-]+\.(ts|js|py|json)", source) is not None


def _is_operation(source: str) -> bool:
    return any(source.split()[1] in model.inputs for model in MODELS)


def _is_test(source: str) -> bool:
    file, _, test = source.split()[1].partition("::")
    return f"def {test}(" in (WIRE / file).read_text()


def _is_issue(source: str) -> bool:
    return re.fullmatch(r"issue [\w-]+/[\w-]+ \d+", source) is not None


def _is_title(source: str) -> bool:
    return len(source.split()) > 1


# How the place of a source is written, by its origin.
PLACES: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(("alternator", "conformance", "dynalite", "extenddb", "moto"), _is_path),
    **dict.fromkeys(("floci", "guide", "ours", "parser", "quirks", "reference"), _is_title),
    "issue": _is_issue,
    "model": _is_operation,
    "wire": _is_test,
}

# What the last test looks at: the cases that were played, and the differences that were met.
played: set[str] = set()
met: set[Difference] = set()


def test_the_suite_has_enough_requests_and_all_operations() -> None:
    steps = [step for _, case in CASES for step in case.steps]
    assert len(steps) >= REQUESTS_MIN
    assert {step.operation for step in steps} >= OPERATIONS


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({name for name, _ in CASES}) == len(CASES)


def test_every_listed_difference_has_a_reason_and_sources() -> None:
    assert DIFFERENCES
    assert all(one.reason and one.sources and one.local != one.partita for one in DIFFERENCES)


def test_every_source_is_a_place_in_something_that_tells_of_the_service() -> None:
    sources = {source for one in DIFFERENCES for source in one.sources}
    assert {source.partition(" ")[0] for source in sources} == ORIGINS.keys()
    assert [source for source in sources if not PLACES[source.split()[0]](source)] == []


def test_no_listed_difference_takes_just_anything() -> None:
    assert [one for one in DIFFERENCES if one.unbound] == []


def test_every_case_that_is_listed_is_played() -> None:
    names = {name for name, _ in CASES}
    assert {name for one in DIFFERENCES for name, _ in one.cases} <= names


@pytest.mark.compat
@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_the_answers_are_the_same(
    name: str, case: Case, partita: Endpoint, local: Endpoint
) -> None:
    answers = zip(case.steps, local.play(case), partita.play(case), strict=True)
    wrong = [
        complaint
        for number, (step, theirs, ours) in enumerate(answers, 1)
        if (complaint := _compare(name, number, step, theirs, ours))
    ]
    played.add(name)
    assert not wrong, "\n\n".join(wrong)


def _compare(case: str, number: int, step: Step, local: Answer, partita: Answer) -> str | None:
    """Returns what is wrong with Partita's response, or None."""
    said = str(local)
    listed = difference(case, number, step, said)
    if listed is None:
        return None if partita == local else _told(step, "they differ", local, partita)
    met.add(listed)
    if partita == local:
        return _told(step, "a listed difference is none", local, partita)
    if not listed.expects(step, said, str(partita)):
        return _told(step, f"listed is\n  partita  {listed.partita}", local, partita)
    return None


def _told(step: Step, what: str, local: Answer, partita: Answer) -> str:
    body = str(step.body)[:500]
    return f"{step.operation} {body}: {what}\n  local    {local}\n  partita  {partita}"


@pytest.mark.compat
def test_every_listed_difference_was_met() -> None:
    if played != {name for name, _ in CASES}:
        pytest.skip("only some of the cases were played")
    assert [one for one in DIFFERENCES if one not in met] == []
