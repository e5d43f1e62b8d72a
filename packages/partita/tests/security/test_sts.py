"""STS: GetCallerIdentity, sessions of users and of roles, and presigned URLs."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from partita.server.security.identities.session_tokens import SEAL_BYTES, SessionSeal
from partita.server.security.identities.user_directory import (
    AccessKey,
    Directory,
    add_key,
    add_user,
    set_status,
)
from testkit.servers.users import (
    ACCOUNT,
    ADMINISTRATOR,
    People,
    client_for,
    refusal,
    statement,
    table_arn,
)

ROLE = f"arn:aws:iam::{ACCOUNT}:role/"


def in_session(people: People, credentials: dict[str, Any], service: str = "dynamodb") -> Any:
    assert people.server is not None
    return client_for(
        people.server.url,
        credentials["AccessKeyId"],
        credentials["SecretAccessKey"],
        service,
        credentials["SessionToken"],
    )


def trust(*principals: str, **more: Any) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": {"AWS": list(principals)},
        "Action": "sts:AssumeRole",
        **more,
    }


def test_everybody_may_know_who_they_are(people: People) -> None:
    key = people.add(statement("dynamodb:ListTables"))
    identity = people.client(key, "sts").get_caller_identity()
    name = people.name_of(key)
    assert identity["Arn"] == f"arn:aws:iam::{ACCOUNT}:user/{name}"
    assert identity["Account"] == ACCOUNT
    assert identity["UserId"].startswith("AIDA")


def test_a_stranger_is_refused_in_stss_words(people: People) -> None:
    assert people.server is not None
    sts = client_for(people.server.url, "AKIAIOSFODNN7EXAMPLE", "x", "sts")
    assert refusal(sts.get_caller_identity) == (
        "InvalidClientTokenId",
        "The security token included in the request is invalid.",
    )


def test_a_wrong_secret_is_refused_in_stss_words(people: People, administrator: AccessKey) -> None:
    assert people.server is not None
    sts = client_for(people.server.url, administrator.id, "x", "sts")
    assert refusal(sts.get_caller_identity)[0] == "SignatureDoesNotMatch"


def test_a_presigned_url_is_taken_by_sts(people: People, administrator: AccessKey) -> None:
    sts = people.client(administrator, "sts")
    url = sts.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    with urlopen(url) as answer:
        assert b"<Arn>arn:aws:iam::" in answer.read()
    with pytest.raises(HTTPError) as refused:
        urlopen(url.replace("GetCallerIdentity", "GetSessionToken"))
    assert b"SignatureDoesNotMatch" in refused.value.read()


def test_a_session_of_a_user_may_do_what_the_user_may(people: People) -> None:
    key = people.add(statement("dynamodb:ListTables"))
    given = people.client(key, "sts").get_session_token(DurationSeconds=900)["Credentials"]
    session = in_session(people, given)
    assert "TableNames" in session.list_tables()
    assert refusal(session.describe_limits)[0] == "AccessDeniedException"
    again = in_session(people, given, "sts")
    assert refusal(again.get_session_token) == (
        "AccessDenied",
        "Cannot call GetSessionToken with session credentials",
    )


def test_a_session_ends_with_its_user(people: People) -> None:
    key = people.add(policies=[ADMINISTRATOR])
    session = in_session(people, people.client(key, "sts").get_session_token()["Credentials"])
    assert session.list_tables()
    name = people.name_of(key)
    people.change(lambda directory: set_status(directory, name, None, is_active=False))
    assert refusal(session.list_tables)[0] == "UnrecognizedClientException"


def test_a_token_that_was_changed_is_nobodys(people: People, administrator: AccessKey) -> None:
    given = people.client(administrator, "sts").get_session_token()["Credentials"]
    for token in (given["SessionToken"][:-8] + "AAAAAAA=", "AAAA", "no base64!"):
        session = in_session(people, {**given, "SessionToken": token})
        assert refusal(session.list_tables)[0] == "UnrecognizedClientException"


def test_a_key_of_a_session_without_its_token_is_nobodys(
    people: People, administrator: AccessKey
) -> None:
    assert people.server is not None
    given = people.client(administrator, "sts").get_session_token()["Credentials"]
    client = client_for(people.server.url, given["AccessKeyId"], given["SecretAccessKey"])
    assert refusal(client.list_tables)[0] == "UnrecognizedClientException"


def test_a_role_is_for_those_whom_it_trusts(people: People) -> None:
    trusted, other = people.add(), people.add(statement("sts:AssumeRole"))
    people.add_role(
        "reader",
        trust(f"arn:aws:iam::{ACCOUNT}:user/{people.name_of(trusted)}"),
        statement("dynamodb:ListTables"),
    )
    asked = {"RoleArn": f"{ROLE}reader", "RoleSessionName": "tester"}
    answer = people.client(trusted, "sts").assume_role(**asked)
    arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/reader/tester"
    assert answer["AssumedRoleUser"]["Arn"] == arn
    session = in_session(people, answer["Credentials"])
    assert session.list_tables()
    code, message = refusal(session.describe_table, TableName="xyz")
    assert (code, message) == (
        "AccessDeniedException",
        f"User: {arn} is not authorized to perform: dynamodb:DescribeTable on resource: "
        f"{table_arn('xyz')} because no identity-based policy allows the dynamodb:DescribeTable "
        "action",
    )
    name = people.name_of(other)
    assert refusal(people.client(other, "sts").assume_role, **asked) == (
        "AccessDenied",
        f"User: arn:aws:iam::{ACCOUNT}:user/{name} is not authorized to perform: sts:AssumeRole on "
        f"resource: {ROLE}reader",
    )


def test_a_role_that_trusts_the_account_leaves_it_to_policies(people: People) -> None:
    people.add_role("shared", trust(ACCOUNT), statement("dynamodb:ListTables"))
    asked = {"RoleArn": f"{ROLE}shared", "RoleSessionName": "s1"}
    without, with_right = people.add(), people.add(statement("sts:AssumeRole", f"{ROLE}shared"))
    assert refusal(people.client(without, "sts").assume_role, **asked)[0] == "AccessDenied"
    assert people.client(with_right, "sts").assume_role(**asked)


def test_an_external_id_that_the_trust_asks_for(people: People) -> None:
    key = people.add(policies=[ADMINISTRATOR])
    people.add_role(
        "external",
        trust(ACCOUNT, Condition={"StringEquals": {"sts:ExternalId": "x-1"}}),
        statement("dynamodb:ListTables"),
    )
    sts = people.client(key, "sts")
    asked = {"RoleArn": f"{ROLE}external", "RoleSessionName": "s1"}
    assert refusal(sts.assume_role, **asked)[0] == "AccessDenied"
    assert refusal(sts.assume_role, **asked, ExternalId="x-2")[0] == "AccessDenied"
    assert sts.assume_role(**asked, ExternalId="x-1")


def test_a_session_policy_narrows_a_role(people: People) -> None:
    key = people.add(policies=[ADMINISTRATOR])
    people.add_role("wide", trust(ACCOUNT), statement("dynamodb:*"))
    narrow = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Resource":"*",'
    narrow += '"Action":["dynamodb:ListTables","kinesis:*"]}}'
    asked = {"RoleArn": f"{ROLE}wide", "RoleSessionName": "s1", "Policy": narrow}
    session = in_session(people, people.client(key, "sts").assume_role(**asked)["Credentials"])
    assert session.list_tables()
    code, message = refusal(session.describe_limits)
    assert code == "AccessDeniedException"
    assert message.endswith("because no session policy allows the dynamodb:DescribeLimits action")
    kinesis = in_session(
        people, people.client(key, "sts").assume_role(**asked)["Credentials"], "kinesis"
    )
    assert refusal(kinesis.list_streams)[0] == "AccessDeniedException"


def test_a_role_that_is_gone_ends_its_sessions(people: People) -> None:
    key = people.add(policies=[ADMINISTRATOR])
    people.add_role("short", trust(ACCOUNT), statement("dynamodb:*"))
    asked = {"RoleArn": f"{ROLE}short", "RoleSessionName": "s1"}
    session = in_session(people, people.client(key, "sts").assume_role(**asked)["Credentials"])
    assert session.list_tables()
    people.change(
        lambda directory: replace(
            directory,
            roles={name: role for name, role in directory.roles.items() if name != "short"},
        )
    )
    assert refusal(session.list_tables)[0] == "UnrecognizedClientException"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"RoleSessionName": "s1"}, "ValidationError"),
        ({"RoleArn": "no arn", "RoleSessionName": "s1"}, "ValidationError"),
        ({"RoleArn": f"{ROLE}wide", "RoleSessionName": "a b"}, "ValidationError"),
        (
            {"RoleArn": f"{ROLE}wide", "RoleSessionName": "s1", "Policy": "{}"},
            "MalformedPolicyDocument",
        ),
        (
            {"RoleArn": f"{ROLE}wide", "RoleSessionName": "s1", "DurationSeconds": 10},
            "ValidationError",
        ),
        (
            {"RoleArn": f"{ROLE}wide", "RoleSessionName": "s1", "DurationSeconds": 43200},
            "ValidationError",
        ),
    ],
)
def test_wrong_parameters(people: People, asked: dict[str, Any], code: str) -> None:
    key = people.add(policies=[ADMINISTRATOR])
    people.add_role("wide", trust(ACCOUNT), statement("dynamodb:*"))
    assert refusal(people.client(key, "sts").assume_role, **asked)[0] == code


# A session of a role ends with whoever assumed it.


class Chain:
    """A user, a role that the user assumes, and another that a session of the first assumes."""

    def __init__(self, people: People, prefix: str) -> None:
        self.people = people
        self.key = people.add(policies=[ADMINISTRATOR])
        self.user = people.name_of(self.key)
        self.roles = [f"{prefix}-first", f"{prefix}-second"]
        for name in self.roles:
            allowed = (statement("dynamodb:ListTables"), statement("sts:AssumeRole"))
            people.add_role(name, trust(ACCOUNT), *allowed)
        sts = people.client(self.key, "sts")
        of_user = sts.get_session_token()["Credentials"]
        first = self._assume(sts, 0)
        self.sessions = {
            "first": first,
            "second": self._assume(in_session(people, first, "sts"), 1),
            "by a session": self._assume(in_session(people, of_user, "sts"), 0),
        }

    def _assume(self, sts: Any, place: int) -> dict[str, Any]:
        asked = {"RoleArn": f"{ROLE}{self.roles[place]}", "RoleSessionName": "s1"}
        credentials: dict[str, Any] = sts.assume_role(**asked)["Credentials"]
        return credentials

    def good(self) -> set[str]:
        """Returns the sessions that are accepted."""
        found = set()
        for name, credentials in self.sessions.items():
            try:
                in_session(self.people, credentials).list_tables()
                found.add(name)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "UnrecognizedClientException"
        return found


def remove_user(directory: Directory, name: str) -> Directory:
    return replace(directory, users={n: one for n, one in directory.users.items() if n != name})


def test_a_session_of_a_role_ends_with_the_user_who_assumed_it(people: People) -> None:
    chain = Chain(people, "ends")
    everyone = {"first", "second", "by a session"}
    assert chain.good() == everyone
    people.change(lambda directory: set_status(directory, chain.user, None, is_active=False))
    assert chain.good() == set()
    people.change(lambda directory: set_status(directory, chain.user, None, is_active=True))
    assert chain.good() == everyone
    only = chain.key.id
    people.change(lambda directory: set_status(directory, chain.user, only, is_active=False))
    assert chain.good() == set()
    people.change(lambda directory: set_status(directory, chain.user, only, is_active=True))
    people.change(lambda directory: remove_user(directory, chain.user))
    assert chain.good() == set()
    # Another of the same name is somebody else.
    people.change(lambda directory: add_user(directory, chain.user, 0)[0])
    assert chain.good() == set()


def test_another_key_of_the_user_ends_nothing(people: People) -> None:
    chain = Chain(people, "another")
    other: list[str] = []

    def with_key(directory: Directory) -> Directory:
        directory, key = add_key(directory, chain.user, 0)
        other.append(key.id)
        return directory

    people.change(with_key)
    people.change(lambda directory: set_status(directory, chain.user, other[0], is_active=False))
    assert chain.good() == {"first", "second", "by a session"}


def test_a_session_ends_with_a_role_in_the_middle_of_its_chain(people: People) -> None:
    chain = Chain(people, "middle")
    people.change(
        lambda directory: replace(
            directory, roles={n: one for n, one in directory.roles.items() if n != chain.roles[0]}
        )
    )
    assert chain.good() == set()


def test_sessions_of_roles_that_do_not_say_who_assumed_them_are_over(people: People) -> None:
    """Versions before this rule did not record who assumed a role."""
    chain = Chain(people, "earlier")
    directory = people.file.load()
    seal = SessionSeal(directory.session_key)
    role = directory.roles[chain.roles[0]]
    issued = seal.issue("role", chain.roles[0], role.id, "s1", time.time(), 900)
    content = b64decode(issued.token)[SEAL_BYTES:]
    members = json.loads(content)
    assert members.pop() == []
    old = json.dumps(members, separators=(",", ":")).encode()
    token = b64encode(seal._digest(b"token", old) + old).decode()
    opened = seal.open(token.encode())
    assert opened is not None and opened[0].issuers is None
    session = client_for(
        people.server.url if people.server else "", members[0], opened[1], token=token
    )
    assert refusal(session.list_tables)[0] == "UnrecognizedClientException"
