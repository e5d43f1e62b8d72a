"""The client against a Partita server, and against servers that misbehave on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from partita.client import Client, ClientError, Credentials, Unreachable
from testkit.servers import processes

KEY = {"k": {"S": "a"}}
TABLE = {
    "TableName": "things",
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", stderr=None)
        server.client().create_table(**TABLE)
        yield server.url


def within(endpoint: str, story: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        client = Client(endpoint, **options)
        try:
            return await story(client)
        finally:
            await client.close()

    return asyncio.run(run())


def test_what_is_put_is_read_again(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        item = {**KEY, "n": {"N": "1"}}
        await client.call("dynamodb", "PutItem", {"TableName": "things", "Item": item})
        answer = await client.call("dynamodb", "GetItem", {"TableName": "things", "Key": KEY})
        return answer["Item"] == item

    assert within(endpoint, story)


def test_signed_calls_are_accepted(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        return await client.call("dynamodb", "ListTables", {})

    credentials = Credentials("AKID", "secret", "token")
    assert within(endpoint, story, credentials=credentials) == {"TableNames": ["things"]}


def test_many_calls_share_few_connections(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        read = {"TableName": "things", "Key": KEY}
        return await asyncio.gather(*(client.call("dynamodb", "GetItem", read) for _ in range(200)))

    assert len(within(endpoint, story, connections=3)) == 200


def test_a_refusal_has_code_message_status_and_body(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        put = {
            "Put": {
                "TableName": "things",
                "Item": {"k": {"S": "new"}},
                "ConditionExpression": "attribute_exists(k)",
            }
        }
        with pytest.raises(ClientError) as caught:
            await client.call("dynamodb", "TransactWriteItems", {"TransactItems": [put]})
        return caught.value

    error = within(endpoint, story)
    assert (error.code, error.status) == ("TransactionCanceledException", 400)
    assert error.body["CancellationReasons"][0]["Code"] == "ConditionalCheckFailed"


def test_a_refusal_is_not_repeated(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            await client.call("dynamodb", "GetItem", {"TableName": "nothing", "Key": KEY})

    within(endpoint, story, tries=1_000_000)


def test_other_services_are_reached_by_their_names(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        return await client.call("dynamodbstreams", "ListStreams", {})

    assert within(endpoint, story)["Streams"] == []


def test_a_cancelled_call_does_not_spoil_the_next(endpoint: str) -> None:
    async def story(client: Client) -> Any:
        read = {"TableName": "things", "Key": KEY}
        for _ in range(20):
            call = asyncio.ensure_future(client.call("dynamodb", "GetItem", read))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        tables = await client.call("dynamodb", "ListTables", {})
        return tables["TableNames"]

    assert within(endpoint, story, connections=1) == ["things"]


def test_an_endpoint_that_is_not_there_is_said_so() -> None:
    async def story(client: Client) -> Any:
        with pytest.raises(Unreachable, match=r"No answer from http://127.0.0.1:9"):
            await client.call("dynamodb", "ListTables", {})

    within("http://127.0.0.1:9", story, tries=2)


class Scripted:
    """A server with scripted responses, one per request; None drops the connection."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                self.requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def ask(self, request: dict[str, Any] | None = None, **options: Any) -> Any:
        async def run() -> Any:
            server = await asyncio.start_server(self, "127.0.0.1", 0)
            client = Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", **options)
            try:
                return await client.call("dynamodb", "TransactWriteItems", request or {})
            finally:
                await client.close()
                server.close()

        return asyncio.run(run())


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def test_lost_connections_throttling_and_faults_are_tried_again() -> None:
    throttled = b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}'
    server = Scripted(None, answer(400, throttled), answer(503, b"busy"), answer(200, b'{"a":1}'))
    assert server.ask() == {"a": 1}
    assert len(server.requests) == 4


def test_a_repeated_transaction_carries_the_same_token() -> None:
    server = Scripted(None, answer(200, b"{}"))
    server.ask()
    bodies = [request.partition(b"\r\n\r\n")[2] for request in server.requests]
    assert bodies[0] == bodies[1]
    assert b"ClientRequestToken" in bodies[0]


def test_tries_have_an_end() -> None:
    server = Scripted(*[answer(500, b'{"__type":"InternalServerError","message":"no"}')] * 3)
    with pytest.raises(ClientError, match="InternalServerError: no"):
        server.ask(tries=3)
    assert len(server.requests) == 3


def test_what_is_no_http_is_a_lost_connection() -> None:
    with pytest.raises(Unreachable):
        Scripted(b"SSH-2.0-OpenSSH\r\n").ask(tries=1)


def test_an_answer_that_does_not_come_is_given_up() -> None:
    with pytest.raises(Unreachable, match="too long"):
        Scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").ask(tries=1, seconds_max=0.2)


def test_the_secret_is_not_shown() -> None:
    assert "hidden" not in repr(Credentials("AKID", "hidden", "hidden too"))
