"""No request loses its caller's rights on the way: handed over, decided twice, or forwarded."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import partita
from partita.server.dispatch import MAY_BE_LARGE
from testkit import ROOT
from testkit.servers import processes
from testkit.servers.users import ADMINISTRATOR, People, statement, table_arn

from .test_operations import CASES, WITHOUT_ONE, Everybody, check_denied

SOURCE = Path(partita.__file__).parent
LARGE = "x" * 390_000
"""Three items of this size are more than the server decodes before others have waited enough."""


@pytest.fixture
def mine(admin: Any, table: Callable[..., str]) -> str:
    name = table()
    for pk in "abc":
        item = {"pk": {"S": pk}, "sk": {"S": "1"}, "large": {"S": LARGE}, "n": {"N": "1"}}
        admin.put_item(TableName=name, Item=item)
    return name


@pytest.fixture
def secret(admin: Any, table: Callable[..., str]) -> str:
    name = table()
    admin.put_item(TableName=name, Item=SECRET)
    return name


SECRET = {"pk": {"S": "s"}, "sk": {"S": "1"}, "n": {"N": "42"}}


def own_statements(kind: str, name: str) -> list[dict[str, Any]]:
    template = {
        "read": "SELECT n, large FROM \"{}\" WHERE pk='{}' AND sk='1'",
        "write": "UPDATE \"{}\" SET n = n + 1 WHERE pk='{}' AND sk='1'",
    }[kind]
    return [{"Statement": template.format(name, pk)} for pk in "abc"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("read", "SELECT * FROM \"{}\" WHERE pk='s' AND sk='1'"),
        ("write", "UPDATE \"{}\" SET n = 0 WHERE pk='s' AND sk='1'"),
        ("write", "DELETE FROM \"{}\" WHERE pk='s' AND sk='1'"),
        ("write", "INSERT INTO \"{}\" VALUE {{'pk': 'new', 'sk': '1'}}"),
    ],
)
def test_a_batch_that_is_handed_over_runs_only_what_its_caller_may(
    people: People, admin: Any, mine: str, secret: str, kind: str, text: str
) -> None:
    """The statements on one's own large items make the server hand the whole batch over."""
    client = people.client(people.add(statement("dynamodb:*", table_arn(mine))))
    statements = [*own_statements(kind, mine), {"Statement": text.format(secret)}]
    *own, foreign = client.batch_execute_statement(Statements=statements)["Responses"]
    assert [one.get("Error") for one in own] == [None, None, None]
    assert foreign["Error"]["Code"] == "AccessDenied" and "Item" not in foreign
    assert admin.scan(TableName=secret)["Items"] == [SECRET]


def test_functions_are_not_reached_through_a_batch_that_is_handed_over(
    people: People, mine: str
) -> None:
    client = people.client(people.add(statement("dynamodb:*")))
    foreign = {"Statement": "SELECT * FROM \"partita-functions\" WHERE pk='a' AND sk='a'"}
    *_, last = client.batch_execute_statement(Statements=[*own_statements("read", mine), foreign])[
        "Responses"
    ]
    assert last["Error"]["Code"] == "AccessDenied"


@pytest.fixture(scope="module")
def handed_over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everybody]:
    """Everybody on a server that hands over whatever it can."""
    folder = tmp_path_factory.mktemp("handed-over")
    people = People(folder)
    people.add(policies=[ADMINISTRATOR])
    with processes.starting() as start:
        people.server = start(
            *("serve", "--auth", "--port", "0", "--data", folder),
            command=(sys.executable, "-m", "testkit.servers.everything_is_large"),
            cwd=ROOT,
            env={**os.environ, "PARTITA_PURE": "1"},
            stderr=None,
        )
        them = Everybody(people)
        yield them
        them.close()


HANDED_OVER = [case for case in CASES if case[0] == "dynamodb" and case[1] in MAY_BE_LARGE]


def test_what_may_be_handed_over_is_known() -> None:
    assert {name for _, name in HANDED_OVER} == MAY_BE_LARGE


@pytest.mark.parametrize(("service", "operation"), HANDED_OVER)
def test_without_any_right_it_is_denied_where_it_is_handed_to(
    handed_over: Everybody, service: str, operation: str
) -> None:
    check_denied(handed_over, "nothing", service, operation, 0)


@pytest.mark.parametrize("kind", ["wrong", "elsewhere"])
@pytest.mark.parametrize(
    ("service", "operation", "place"), [case for case in WITHOUT_ONE if case[:2] in HANDED_OVER]
)
def test_without_its_right_it_is_denied_where_it_is_handed_to(
    handed_over: Everybody, kind: str, service: str, operation: str, place: int
) -> None:
    check_denied(handed_over, f"{kind}{place}", service, operation, place)


PERMITS = {
    "PermittedRequest": {
        "database/operations/operation_context.py",
        "server/admission.py",
        "server/large_requests/large_request_worker.py",
        "server/security/authorization_gate.py",
        "server/security/rights/requested_rights.py",
    },
    "PermittedBytes": {"server/admission.py", "server/security/authorization_gate.py"},
    "Forwarded": {
        "server/admission.py",
        "server/companions/companion_peers.py",
        "server/security/authorization_gate.py",
    },
}
"""The modules that may make permits: the admissions, and those that have asked one. `mypy` does the
rest, because an operation, a page and a companion accept nothing else."""


@pytest.mark.parametrize("permit", PERMITS)
def test_permits_are_made_only_where_rights_are_asked_for(permit: str) -> None:
    makers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == permit
    }
    assert makers == PERMITS[permit]
