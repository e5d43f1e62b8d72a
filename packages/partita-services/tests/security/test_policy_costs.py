"""Policies that are written to be expensive: they are refused, or decided in a moment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from testkit.servers.users import (
    ACCOUNT,
    People,
    as_text,
    client_for,
    policy,
    refusal,
    statement,
    table_arn,
)

from .test_malformed import Sender

ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
STARS = "*a" * 30 + "b"
TEXT = "a" * 40
HOLES = "*" + "?a" * 40 + "b*"
SECONDS_MAX = 2.0
"""The processor time for policies that once took minutes or did not end."""


@contextmanager
def little_time(people: People, seconds_max: float = SECONDS_MAX) -> Iterator[None]:
    """Bounds the processor time that the server spends meanwhile."""
    assert people.server is not None
    pid, ticks = people.server.process.pid, os.sysconf("SC_CLK_TCK")

    def spent() -> float:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    before = spent()
    yield
    assert spent() - before < seconds_max


@pytest.fixture(scope="module")
def borrower(people: People) -> Any:
    """The STS of somebody whom a role trusts that may do everything."""
    key = people.add(statement("sts:AssumeRole"))
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:user/{people.name_of(key)}"},
        "Action": "sts:AssumeRole",
    }
    people.add_role("lender", trust, statement("*"))
    return people.client(key, "sts", read_timeout=20)


def session(people: People, borrower: Any, document: Any) -> Any:
    given = borrower.assume_role(
        RoleArn=ROLE + "lender", RoleSessionName="s1", Policy=as_text(document)
    )["Credentials"]
    assert people.server is not None
    return client_for(
        people.server.url,
        given["AccessKeyId"],
        given["SecretAccessKey"],
        token=given["SessionToken"],
        read_timeout=20,
    )


def like(key: str, *patterns: str, operator: str = "StringLike") -> dict[str, Any]:
    return {f"ForAllValues:{operator}": {key: list(patterns)}}


@pytest.mark.parametrize("pattern", [STARS, HOLES, "*" * 90 + "b", "*a" * 49 + "?b"])
@pytest.mark.parametrize("where", ["action", "resource", "condition", "arn"])
def test_a_session_policy_of_many_wildcards_is_decided_in_a_moment(
    people: People, borrower: Any, table: Any, pattern: str, where: str
) -> None:
    name = table()
    statements = {
        "action": statement(f"dynamodb:{pattern}"),
        "resource": statement("*", table_arn(pattern)),
        "condition": statement("*", Condition=like("dynamodb:Attributes", pattern)),
        "arn": statement(
            "*",
            Condition={"ArnLike": {"aws:PrincipalArn": f"arn:aws:sts::*:{pattern}"}},
        ),
    }
    with little_time(people):
        client = session(people, borrower, policy(statements[where]))
        code, _ = refusal(
            client.put_item,
            TableName=name,
            Item={"pk": {"S": "p"}, "sk": {"S": "s"}, TEXT: {"S": "x"}},
        )
        assert code == "AccessDeniedException"


def test_a_variable_that_never_ends_is_refused_in_a_moment(borrower: Any, people: People) -> None:
    for value in ("${" + " " * 1500, "${" * 700, "${a,'" + " " * 1500, "${ ,' '" * 200):
        document = policy(statement("*", Condition={"StringLike": {"aws:username": value}}))
        with little_time(people):
            code, _ = refusal(
                borrower.assume_role,
                RoleArn=ROLE + "lender",
                RoleSessionName="s1",
                Policy=as_text(document),
            )
            assert code == "MalformedPolicyDocument"


@pytest.mark.parametrize("operator", ["StringLike", "NumericLessThan", "StringEqualsIgnoreCase"])
def test_many_attributes_against_many_values_cost_little(
    people: People, borrower: Any, table: Any, operator: str
) -> None:
    name = table()
    form = "*x{}" if operator == "StringLike" else "{}"
    patterns = [form.format(number) for number in range(150)]
    condition = like("dynamodb:Attributes", *patterns, operator=operator)
    client = session(people, borrower, policy(statement("dynamodb:*", Condition=condition)))
    item = {str(number): {"S": ""} for number in range(1000, 30_000)}
    keys = {"pk": {"S": "0"}, "sk": {"S": "0"}}
    with little_time(people):
        code, _ = refusal(client.put_item, TableName=name, Item={**keys, **item})
        assert code == "AccessDeniedException"


def test_many_parts_of_a_request_cost_little_together(
    people: People, borrower: Any, table: Any
) -> None:
    name = table()
    # None but the last fits.
    patterns = [*(f"*x{number}" for number in range(150)), "*"]
    condition = like("dynamodb:Attributes", *patterns)
    client = session(people, borrower, policy(statement("dynamodb:*", Condition=condition)))
    names = {str(number): {"S": ""} for number in range(1000, 1600)}
    writes = [
        {"Put": {"TableName": name, "Item": {"0": {"S": str(number)}, **names}}}
        for number in range(100)
    ]
    with little_time(people, SECONDS_MAX / 2):
        code, _ = refusal(client.transact_write_items, TransactItems=writes)
        assert code == "AccessDeniedException"


def test_a_text_of_too_many_wildcards_is_no_part_of_a_policy(borrower: Any) -> None:
    many = "*" * 101
    for one in (
        statement(f"dynamodb:{many}"),
        statement("*", table_arn(many)),
        statement("*", Condition=like("aws:username", many)),
    ):
        code, message = refusal(
            borrower.assume_role,
            RoleArn=ROLE + "lender",
            RoleSessionName="s1",
            Policy=as_text(policy(one)),
        )
        assert (code, "100 wildcards" in message) == ("MalformedPolicyDocument", True)


def test_a_resource_policy_of_many_statements_is_read_in_a_moment(
    people: People, admin: Any, table: Any
) -> None:
    arn = table_arn(table())
    one = {"Effect": "Deny", "Principal": "*", "Action": "x:y", "Resource": "*"}
    text = json.dumps(policy(*[one] * 280), separators=(",", ":"))
    assert len(text) < 20 * 1024
    with little_time(people):
        admin.put_resource_policy(ResourceArn=arn, Policy=text)


def test_a_resource_policy_that_is_too_large_is_not_read(
    people: People, admin: Any, table: Any
) -> None:
    arn = table_arn(table())
    members = ",".join(f'"{number}":1' for number in range(60_000))
    with little_time(people):
        code, message = refusal(admin.put_resource_policy, ResourceArn=arn, Policy=f"{{{members}}}")
    assert (code, "20480 bytes" in message) == ("ValidationException", True)


# Numbers that Python refuses to read

HUGE = "9" * 5000
NUMBERS = [
    f'{{"Version":"2012-10-17","Statement":[{{"Effect":"Deny","Principal":"*","Action":"x:y",'
    f'"Resource":"*","Condition":{{"{operator}":{{"aws:EpochTime":{value}}}}}}}]}}'
    for operator in ("NumericEquals", "DateEquals", "StringEquals", "Bool", "Null", "IpAddress")
    for value in (HUGE, f'"{HUGE}"', f"[1,{HUGE}]", f"-{HUGE}", f"1e{HUGE}", "NaN", "1e999")
] + [f'{{"Version":{HUGE},"Statement":[]}}', HUGE, f'{{"Id":{HUGE}}}']


@pytest.mark.parametrize("document", NUMBERS, ids=range(len(NUMBERS)))
def test_a_huge_number_in_a_resource_policy_is_no_server_error(
    admin: Any, table: Any, document: str
) -> None:
    arn = table_arn(table())
    try:
        admin.put_resource_policy(ResourceArn=arn, Policy=document)
    except admin.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "ValidationException"
    admin.describe_table(TableName=arn)


@pytest.mark.parametrize("value", [HUGE[:1900], "9" * 1500])
def test_a_large_number_in_a_session_policy_is_refused_or_compared(
    people: People, borrower: Any, value: str
) -> None:
    condition = {"NumericEquals": {"aws:EpochTime": value}}
    document = policy(statement("*", Condition=condition))
    if len(as_text(document)) <= 2048:
        client = session(people, borrower, document)
        assert refusal(client.list_tables)[0] == "AccessDeniedException"


def test_a_huge_number_in_a_policy_of_a_user_is_refused(people: People, administrator: Any) -> None:
    document = NUMBERS[0].replace('"Principal":"*",', "")
    body = {"PolicyName": "huge", "Document": document}
    assert people.server is not None
    sender = Sender(people.server.url, administrator)
    assert sender.send("access", "PutPolicy", body) == 400
    sender.connection.close()
