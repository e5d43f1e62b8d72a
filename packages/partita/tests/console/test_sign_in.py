"""Signing in on a server with `--auth`, the rights of the console after it, and the access page."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from partita.server.security.identities.user_directory import AccessKey
from partita.server.security.rights.administration_rights import RIGHTS
from testkit.browser.accessibility import serious_findings
from testkit.browser.chromium import Browser
from testkit.browser.person import Person, signs_in, wait_for
from testkit.servers.processes import SecureServer, Server, starting
from testkit.servers.users import ADMINISTRATOR, People, statement, table_arn

from .test_access import TYPE, ask

READER = [
    statement(["dynamodb:ListTables", "dynamodb:Describe*"]),
    statement("dynamodb:*", table_arn("open")),
]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("guarded")
    everybody = People(folder)
    everybody.add(policies=[ADMINISTRATOR])
    with starting() as start:
        move = tmp_path_factory.mktemp("moves") / "shop"
        move.mkdir()
        everybody.server = start(
            *("serve", "--auth", "--port", "0", "--data", folder, "--move", move)
        )
        yield everybody


@pytest.fixture(scope="module")
def administrator(people: People) -> AccessKey:
    return people.add(policies=[ADMINISTRATOR])


@pytest.fixture(scope="module")
def tables(people: People, administrator: AccessKey) -> Any:
    client = people.client(administrator)
    for name in ("open", "closed"):
        client.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.put_item(TableName=name, Item={"pk": {"S": f"in {name}"}, "n": {"N": "1"}})
    return client


@pytest.fixture
def visitor(chromium: Browser, people: People) -> Iterator[Person]:
    assert people.server is not None
    chromium.open("about:blank")
    chromium.call("Network.clearBrowserCookies")
    yield Person(chromium, people.server.url)
    chromium.open("about:blank")
    chromium.call("Network.clearBrowserCookies")
    chromium.complaints.clear()


def session(
    server: Server, key: AccessKey | None, **headers: str
) -> tuple[int, dict[str, str], Any]:
    body = {} if key is None else {"AccessKeyId": key.id, "SecretAccessKey": key.secret}
    sent = {"content-type": TYPE, **headers}
    return ask(server, "POST", "/console/api/sign-in", body, sent)


def test_nothing_is_shown_to_somebody_who_has_not_signed_in(people: People, tables: Any) -> None:
    server = people.server
    assert server is not None
    assert ask(server, "GET", "/console")[0] == 200
    told = ask(server, "GET", "/console/api/session")[2]
    assert told["SignsIn"] is True and "Token" not in told
    headers = {"content-type": TYPE, "x-console-token": ""}
    for path in ("dynamodb/ListTables", "access/ListUsers"):
        assert ask(server, "POST", f"/console/api/{path}", {}, headers)[0] == 401
    assert ask(server, "GET", "/console/api/heat", headers=headers)[0] == 401


def test_a_session_is_a_cookie_that_no_script_reads_and_a_token_of_its_own(
    people: People, administrator: AccessKey, tables: Any
) -> None:
    server = people.server
    assert server is not None
    status, headers, body = session(server, administrator)
    assert (status, body) == (200, {})
    assert {"HttpOnly", "SameSite=Strict", "Path=/console"} < {
        part.strip() for part in headers["set-cookie"].split(";")
    }
    value = SimpleCookie(headers["set-cookie"])["partita-console"].value
    cookie = {"cookie": f"partita-console={value}"}
    told = ask(server, "GET", "/console/api/session", headers=cookie)[2]
    assert told["User"].endswith(people.name_of(administrator))
    assert administrator.secret not in json.dumps(told)
    asked = {**cookie, "content-type": TYPE}
    path = "/console/api/dynamodb/ListTables"
    own = {**asked, "x-console-token": told["Token"]}
    assert ask(server, "POST", path, {}, own)[0] == 200
    assert ask(server, "POST", path, {}, asked)[0] == 403
    other = {**own, "origin": "http://evil.example"}
    assert ask(server, "POST", path, {}, other)[0] == 403
    assert ask(server, "POST", "/console/api/sign-out", {}, own)[0] == 200
    assert ask(server, "POST", path, {}, own)[0] == 401


def test_who_is_not_known_does_not_get_in(people: People, administrator: AccessKey) -> None:
    server = people.server
    assert server is not None
    wrong = AccessKey(administrator.id, "x" * 40)
    assert session(server, wrong)[0] == 401
    assert session(server, AccessKey("AKIANOBODY", "x"))[0] == 401
    assert session(server, AccessKey("a\r\nb", "é"))[0] == 401
    assert session(server, None)[0] == 400
    assert session(server, administrator, origin="http://evil.example")[0] == 403
    plain = {"content-type": "text/plain"}
    assert ask(server, "POST", "/console/api/sign-in", {}, plain)[0] == 415


def test_the_console_has_the_rights_of_who_signed_in(
    visitor: Person, people: People, tables: Any, pictures: Path
) -> None:
    key = people.add(*READER)
    visitor.open("#/explore/open")
    visitor.sees("Sign in")
    assert serious_findings(visitor.browser) == []
    visitor.photographs(pictures / "sign-in.png")
    visitor.fills("Access key", key.id)
    visitor.fills("Secret", "wrong")
    visitor.clicks("Sign in", "button")
    visitor.sees("The access key or its secret is wrong.")
    signs_in(visitor, key)
    visitor.sees("in open", "#items")
    visitor.sees(people.name_of(key), ".who")
    page = visitor.browser.evaluate("document.documentElement.outerHTML + document.cookie")
    assert key.secret not in page
    visitor.clicks("in open")
    visitor.fills("Value of n", "2")
    visitor.clicks("Save")
    visitor.sees("Item saved.")
    item = tables.get_item(TableName="open", Key={"pk": {"S": "in open"}})["Item"]
    assert item["n"] == {"N": "2"}
    visitor.browser.evaluate("location.hash = '#/explore/closed'")
    visitor.sees("AccessDeniedException")
    visitor.no_longer_sees("in closed")
    visitor.browser.evaluate("location.hash = '#/access'")
    visitor.sees("No access")
    visitor.sees("partita:ListUsers")
    visitor.browser.evaluate("location.hash = '#/heat'")
    visitor.sees("not authorized to perform: partita:GetMetrics")
    visitor.clicks("Sign out")
    visitor.sees("Access key")


def test_an_edit_survives_the_end_of_a_session(
    visitor: Person, people: People, tables: Any
) -> None:
    key = people.add(*READER)
    visitor.open("#/explore/open")
    signs_in(visitor, key)
    visitor.clicks("in open")
    visitor.fills("Value of n", "77")
    visitor.browser.call("Network.clearBrowserCookies")
    visitor.clicks("Save")
    visitor.sees("Your session has ended. What you have typed is still here.")
    signs_in(visitor, key)
    assert visitor.value("Value of n") == "77"
    visitor.clicks("Save")
    visitor.sees("Item saved.")
    item = tables.get_item(TableName="open", Key={"pk": {"S": "in open"}})["Item"]
    assert item["n"] == {"N": "77"}


def test_a_key_that_is_disabled_ends_its_session(
    visitor: Person, people: People, tables: Any
) -> None:
    from partita.server.security.identities.user_directory import set_status

    key = people.add(*READER)
    visitor.open("#/tables")
    signs_in(visitor, key)
    visitor.sees("closed", "#tables")
    name = people.name_of(key)
    people.change(lambda known: set_status(known, name, None, is_active=False))
    # A page that was still loading details has noticed it by itself.
    if "Your session has ended." not in visitor.text():
        visitor.clicks("Refresh")
    visitor.sees("Your session has ended.")


def test_users_keys_and_policies_are_managed_by_those_who_may(
    visitor: Person, people: People, administrator: AccessKey, tables: Any, pictures: Path
) -> None:
    visitor.open("#/access")
    signs_in(visitor, administrator)
    visitor.clicks("Add user")
    visitor.fills("Name", "mallory")
    visitor.chooses("Policy to attach", "AmazonDynamoDBReadOnlyAccess")
    visitor.clicks("Add user")
    visitor.sees("The secret is shown only once.")
    lines = dict(line.split("=", 1) for line in visitor.text("#secret").split())
    made = AccessKey(lines["AWS_ACCESS_KEY_ID"], lines["AWS_SECRET_ACCESS_KEY"])
    visitor.clicks("Done")
    visitor.sees("mallory", "#users")
    assert made.secret not in visitor.text()
    assert serious_findings(visitor.browser) == []
    visitor.photographs(pictures / "access.png")

    def may(call: Callable[[], Any]) -> bool:
        from botocore.exceptions import ClientError

        try:
            call()
        except ClientError:
            return False
        return True

    theirs = people.client(made)
    wait_for(lambda: may(lambda: theirs.scan(TableName="closed")), "mallory may read")
    put = {"TableName": "closed", "Item": {"pk": {"S": "by mallory"}}}
    assert not may(lambda: theirs.put_item(**put))
    visitor.clicks("Policies")
    visitor.clicks("New policy")
    visitor.fills("Name", "writes-closed")
    document = {
        "Version": "2012-10-17",
        "Statement": [statement("dynamodb:PutItem", table_arn("closed"))],
    }
    visitor.fills("Policy document, as in IAM", '{"Version": "2012-10-17", "Statement": 5}')
    visitor.clicks("Save policy")
    visitor.sees("ValidationException")
    visitor.fills("Policy document, as in IAM", json.dumps(document))
    visitor.clicks("Save policy")
    visitor.sees("writes-closed is in effect now.")
    visitor.chooses("Attach writes-closed to", "user/mallory")
    visitor.sees("user/mallory has writes-closed.")
    wait_for(lambda: may(lambda: theirs.put_item(**put)), "mallory may write")
    visitor.photographs(pictures / "access-policies.png")
    visitor.clicks("Who may what")
    visitor.chooses("Who", "mallory")
    visitor.fills("on", table_arn("closed"))
    visitor.clicks("Check")
    visitor.sees("user/mallory may dynamodb:PutItem", "#decision")
    visitor.clicks("Users")
    visitor.clicks("Delete mallory")
    visitor.fills("Type mallory to confirm", "mallory")
    visitor.clicks("Delete user")
    visitor.sees("mallory was deleted.")
    wait_for(lambda: not may(lambda: theirs.scan(TableName="closed")), "mallory is gone")
    visitor.clicks("Who did what")
    visitor.sees("DeleteUser", "#events")
    visitor.fills("Search for a user, a table or an operation", "attachpolicy")
    wait_for(lambda: len(visitor.cells("#events")) == 1, "one event")
    assert visitor.cells("#events")[0][1] == people.name_of(administrator)
    visitor.photographs(pictures / "access-events.png")


def test_every_operation_on_access_needs_its_right(
    people: People, administrator: AccessKey
) -> None:
    server = people.server
    assert server is not None
    for actions, allowed in (
        ([], set()),
        (["partita:Get*"], set()),
        (["partita:ListUsers"], {"ListUsers", "ExplainDecision"}),
        (["partita:ListEvents"], {"ListEvents"}),
    ):
        key = people.add(statement([*actions, "dynamodb:ListTables"]))
        value = SimpleCookie(session(server, key)[1]["set-cookie"])["partita-console"].value
        asked = {"content-type": TYPE, "cookie": f"partita-console={value}"}
        asked["x-console-token"] = ask(server, "GET", "/console/api/session", headers=asked)[2][
            "Token"
        ]
        for operation in RIGHTS:
            _, _, body = ask(server, "POST", f"/console/api/access/{operation}", {}, asked)
            is_denied = str(body.get("__type", "")).endswith("AccessDeniedException")
            assert is_denied == (operation not in allowed), (actions, operation, body)


def test_moves_are_for_those_who_may_look_at_them_and_steer_them(people: People) -> None:
    server = people.server
    assert server is not None

    def asked(key: AccessKey, method: str, path: str, body: object = None) -> Any:
        _, headers, _ = session(server, key)
        cookie = {"cookie": headers["set-cookie"].partition(";")[0]}
        token = ask(server, "GET", "/console/api/session", headers=cookie)[2]["Token"]
        sent = {"content-type": TYPE, "x-console-token": token, **cookie}
        return ask(server, method, f"/console/api/moves{path}", body, sent)[2]

    def refused(right: str, answer: Any) -> bool:
        return f"not authorized to perform: partita:{right}" in answer["message"]

    nobody = people.add(*READER)
    watcher = people.add(statement("partita:GetMoves"))
    for path in ("", "/shop", "/shop/designs"):
        assert refused("GetMoves", asked(nobody, "GET", path))
    assert asked(watcher, "GET", "") == {"Moves": ["shop"]}
    for path in ("/shop/start", "/shop/stop"):
        assert refused("SteerMoves", asked(watcher, "POST", path, {"Command": "load"}))
    steerer = people.add(statement("partita:*"))
    assert asked(steerer, "POST", "/shop/stop", {}) == {}


def test_the_console_works_over_tls(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    everybody = People(folder)
    key = everybody.add(policies=[ADMINISTRATOR])
    server = SecureServer("serve", "--auth", "--tls-self-signed", "--port", "0", "--data", folder)
    port = server.port
    try:
        context = ssl.create_default_context(cafile=str(folder / "tls" / "certificate.pem"))

        def https(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
            connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=30)
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, headers)
            response = connection.getresponse()
            content = response.read()
            told = response.headers
            connection.close()
            return response.status, told, json.loads(content) if b"{" in content[:1] else content

        asked = {"content-type": TYPE, "origin": f"https://localhost:{port}"}
        body = {"AccessKeyId": key.id, "SecretAccessKey": key.secret}
        status, told, _ = https("POST", "/console/api/sign-in", body, **asked)
        assert status == 200
        assert "Secure" in told["set-cookie"]
        value = SimpleCookie(told["set-cookie"])["partita-console"].value
        cookie = {"cookie": f"partita-console={value}"}
        token = https("GET", "/console/api/session", **cookie)[2]["Token"]
        own = {**asked, **cookie, "x-console-token": token}
        assert https("POST", "/console/api/dynamodb/ListTables", {}, **own)[::2] == (
            200,
            {"TableNames": []},
        )
        assert https("GET", "/console/api/heat", **own)[0] == 200
    finally:
        server.terminate()
