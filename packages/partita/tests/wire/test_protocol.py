"""The wire protocol: HTTP, headers, JSON, targets, credentials, and malicious clients.

Statuses, bodies and checksums are those that dynalite's tests recorded from AWS, unless a comment
says that the behaviour is ours.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from .raw_http import Connect, Raw, message, read_answer, read_to_end

MIB = 1024 * 1024
CHUNKED = "Transfer-Encoding: chunked"
UNREADABLE = {"__type": "com.amazon.coral.service#SerializationException"}
UNKNOWN = {"__type": "com.amazon.coral.service#UnknownOperationException"}
HEALTHY = b"healthy: dynamodb.us-east-1.amazonaws.com "
NOT_FOUND = b"<UnknownOperationException/>\n"


def is_alive(raw: Raw) -> bool:
    status: int = raw("ListTables", {}).status
    return status == 200


class TestHeaders:
    def test_every_answer_has_an_id_a_checksum_and_a_length(self, raw: Raw) -> None:
        for operation, body in (("ListTables", {}), ("ListTables", "{"), ("Nothing", {})):
            headers = raw(operation, body).headers
            assert re.fullmatch("[0-9A-Z]{52}", headers["x-amzn-requestid"])
            assert headers["x-amz-crc32"].isdigit()
            assert headers["content-type"] == "application/x-amz-json-1.0"

    def test_ids_differ(self, raw: Raw) -> None:
        assert len({raw("ListTables", {}).headers["x-amzn-requestid"] for _ in range(20)}) == 20

    def test_the_checksum_is_that_of_the_body(self, raw: Raw) -> None:
        headers = raw("ListTables", "{").headers
        assert headers["x-amz-crc32"] == "3948637019"

    @pytest.mark.parametrize(
        ("sent", "answered"),
        [
            ("application/json", "application/json"),
            ("application/x-amz-json-1.0", "application/x-amz-json-1.0"),
            ("application/json;charset=asfdsaf", "application/json"),
            ("application/x-amz-json-1.0;blahblah", "application/x-amz-json-1.0"),
            ("  application/json  ;   asfd", "application/json"),
        ],
    )
    def test_the_answer_has_the_content_type_of_the_request(
        self, raw: Raw, sent: str, answered: str
    ) -> None:
        answer = raw("ListTables", {}, {"Content-Type": sent})
        assert (answer.status, answer.headers["content-type"]) == (200, answered)

    @pytest.mark.parametrize(
        "content_type", [None, "whatever", "application/x-amz-json-1.1", "application/jsonasdf"]
    )
    def test_another_content_type_is_not_found(self, raw: Raw, content_type: str | None) -> None:
        answer = raw("ListTables", {}, {"Content-Type": content_type})
        assert (answer.status, answer.body) == (404, NOT_FOUND)
        assert answer.headers["x-amz-crc32"] == "3552371480"
        assert answer.headers["content-length"] == "29"

    @pytest.mark.parametrize("size", [17_000, 2_000_000])
    def test_more_than_16_kb_are_refused(self, connect: Connect, size: int) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", "X-Long: " + "x" * size))
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"\r\n\r\nA header may have at most 16384 bytes.")

    def test_so_are_many_short_ones(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", *(f"X-{n}: y" for n in range(3000))))
        assert read_to_end(connection).startswith(b"HTTP/1.1 400 ")

    @pytest.mark.parametrize("before", [0, 1, 100], ids=["at once", "after one byte", "after 100"])
    @pytest.mark.parametrize("is_second", [False, True])
    def test_so_is_one_that_is_repeated(
        self, connect: Connect, before: int, is_second: bool
    ) -> None:
        connection = connect()
        whole = message("ListTables", b"{}", *["X-A: " + "a" * 1000] * 100)
        if is_second:
            whole = message() + whole
        connection.sendall(whole[:before])
        time.sleep(0.05)
        connection.sendall(whole[before:])
        received = read_to_end(connection)
        assert received.count(b"HTTP/1.1 200 ") == is_second
        assert received.count(b"HTTP/1.1 400 ") == 1

    def test_a_header_of_almost_16_kb_is_read(self, raw: Raw) -> None:
        assert raw("ListTables", {}, {"X-Long": "x" * 15_000}).status == 200


class TestMethods:
    @pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
    def test_another_method_is_not_found(self, raw: Raw, method: str) -> None:
        answer = raw("ListTables", {}, method=method)
        assert (answer.status, answer.body) == (404, NOT_FOUND)

    def test_get_says_that_the_service_is_healthy(self, raw: Raw) -> None:
        answer = raw("", None, {"Authorization": None}, method="GET")
        assert answer.status == 200
        assert answer.body == HEALTHY
        assert answer.headers["x-amz-crc32"] == "3128867991"

    def test_health_needs_no_signature(self, raw: Raw) -> None:
        answer = raw("", None, {"Authorization": None}, method="GET", path="/health")
        assert (answer.status, answer.body) == (200, {"status": "ok"})

    def test_metrics_count_requests(self, raw: Raw) -> None:
        raw("ListTables", {})
        answer = raw("", None, {"Authorization": None}, method="GET", path="/metrics")
        text = answer.body.decode()
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert re.search(r'partita_requests_total\{operation="ListTables",code="200"\} \d+', text)
        assert 'partita_request_seconds_bucket{operation="ListTables",le="+Inf"}' in text
        assert re.search(r"partita_connections [1-9]", text)
        assert "partita_uptime_seconds" in text

    @pytest.mark.parametrize("path", ["/", "/ping", "/?x=1"])
    def test_get_says_that_the_service_is_healthy_here(self, raw: Raw, path: str) -> None:
        answer = raw("", None, {"Authorization": None}, method="GET", path=path)
        assert (answer.status, answer.body) == (200, HEALTHY)

    @pytest.mark.parametrize("path", ["/abc", "/-", "/index.htm", "/health/", "//", "/shell"])
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_there_is_nothing_at_other_paths(self, raw: Raw, method: str, path: str) -> None:
        answer = raw("", None, method=method, path=path)
        assert answer.status == 404
        assert answer.body == (NOT_FOUND if method == "GET" else b"")


class TestOrderOfChecks:
    @pytest.mark.parametrize("body", ["{", "[]", "hello", b'{"a":"\xff"}', '{"a":"\\ud800"}'])
    def test_unreadable_json_comes_before_target_and_credentials(
        self, raw: Raw, body: str | bytes
    ) -> None:
        answer = raw("Nothing", body, {"Authorization": None})
        assert (answer.status, answer.body) == (400, UNREADABLE)

    @pytest.mark.parametrize(
        "target",
        ["whatever", "DynamoDB_20120810.ListTable", "DynamoDB_20111205.ListTables", None],
    )
    def test_an_unknown_target_comes_before_credentials(self, raw: Raw, target: str | None) -> None:
        answer = raw("", {}, {"X-Amz-Target": target, "Authorization": None})
        assert (answer.status, answer.body) == (400, UNKNOWN)
        assert answer.headers["x-amz-crc32"] == "1368724161"

    @pytest.mark.parametrize("operation", ["CreateGlobalTable", "UpdateGlobalTable"])
    def test_an_operation_that_is_not_built_is_unknown(self, raw: Raw, operation: str) -> None:
        assert raw(operation, {}).body == UNKNOWN

    @pytest.mark.parametrize("authorization", [None, "X", "AWS4"])
    def test_missing_credentials(self, raw: Raw, authorization: str | None) -> None:
        answer = raw("ListTables", {"Limit": "x"}, {"Authorization": authorization})
        assert answer.status == 400
        assert answer.body == {
            "__type": "com.amazon.coral.service#MissingAuthenticationTokenException",
            "message": "Request is missing Authentication Token",
        }

    def test_incomplete_credentials(self, raw: Raw) -> None:
        sent = {"Authorization": "AWS4-HMAC-SHA256 Signature=a", "X-Amz-Date": None}
        assert raw("ListTables", {}, sent).body == {
            "__type": "com.amazon.coral.service#IncompleteSignatureException",
            "message": (
                "Authorization header requires 'Credential' parameter. "
                "Authorization header requires 'SignedHeaders' parameter. "
                "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' "
                "header. Authorization=AWS4-HMAC-SHA256 Signature=a"
            ),
        }

    def test_credentials_in_the_query(self, raw: Raw) -> None:
        unsigned: dict[str, str | None] = {"Authorization": None, "X-Amz-Date": None}
        complete = (
            "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Signature=b"
            "&X-Amz-SignedHeaders=host&X-Amz-Date=20260101T000000Z"
        )
        assert raw("ListTables", {}, unsigned, path=complete).status == 200
        half = raw("ListTables", {}, unsigned, path="/?X-Amz-Algorithm=a&X-Amz-Date=b")
        assert half.body["message"] == (
            "AWS query-string parameters must include 'X-Amz-Credential'. "
            "AWS query-string parameters must include 'X-Amz-Signature'. "
            "AWS query-string parameters must include 'X-Amz-SignedHeaders'. "
            "Re-examine the query-string parameters."
        )
        both = raw("ListTables", {}, path="/?X-Amz-Algorithm")
        assert both.body == {
            "__type": "com.amazon.coral.service#InvalidSignatureException",
            "message": (
                "Found both 'X-Amz-Algorithm' as a query-string param "
                "and 'Authorization' as HTTP header."
            ),
        }

    def test_no_body_is_unreadable_once_the_rest_is_right(self, raw: Raw) -> None:
        assert raw("ListTables", None).body == UNREADABLE
        assert "MissingAuth" in raw("ListTables", None, {"Authorization": None}).body["__type"]

    def test_types_come_before_constraints(self, raw: Raw) -> None:
        answer = raw("GetItem", {"TableName": "", "Key": 1})
        assert answer.body == {**UNREADABLE, "Message": "Unexpected field type"}

    def test_constraints_come_before_the_table(self, raw: Raw) -> None:
        answer = raw("GetItem", {"TableName": "no-such-table", "ReturnConsumedCapacity": "x"})
        assert answer.body["message"].startswith("2 validation errors detected: ")

    def test_boto3_sees_the_errors_as_its_own(self, client: Any) -> None:
        with pytest.raises(client.exceptions.ClientError) as refused:
            client.get_item(TableName="bad name", Key={"pk": {"S": "a"}})
        assert refused.value.response["Error"]["Code"] == "ValidationException"
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.get_item(TableName="no-such-table", Key={"pk": {"S": "a"}})


class TestBodies:
    def test_the_largest_body_is_read(self, raw: Raw) -> None:
        assert raw("ListTables", b"{}" + b" " * (16 * MIB - 2)).status == 200

    def test_one_byte_more_is_too_large(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}" + b" " * (16 * MIB - 1)))
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"transfer-encoding: chunked" in answer
        assert answer.endswith(b"\r\n\r\n0\r\n\r\n")

    def test_a_length_that_is_too_large_is_refused_before_the_body(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"", "Expect: 100-continue", length=20 * MIB))
        assert read_to_end(connection).startswith(b"HTTP/1.1 413 ")

    def test_chunks_are_joined(self, connect: Connect) -> None:
        connection = connect()
        chunks = b"1\r\n{\r\n1\r\n}\r\n0\r\nX-Amz-Target: Trailer\r\n\r\n"
        connection.sendall(message("ListTables", chunks, "Transfer-Encoding: chunked"))
        assert read_answer(connection)[0] == 200

    def test_very_many_very_small_chunks_are_refused(self, connect: Connect, raw: Raw) -> None:
        """This limit is ours: such requests cost more than they are worth."""
        for count, status in ((4_000, 200), (5_000, 400)):
            connection = connect()
            chunks = b"1\r\n{\r\n" + b"1\r\n \r\n" * count + b"1\r\n}\r\n0\r\n\r\n"
            connection.sendall(message("ListTables", chunks, "Transfer-Encoding: chunked"))
            assert read_answer(connection)[0] == status
        assert is_alive(raw)

    def test_endless_chunks_are_refused(self, connect: Connect, raw: Raw) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"", "Transfer-Encoding: chunked"))
        with suppress(OSError):
            for _ in range(20):
                connection.sendall(b"100000\r\n" + b" " * MIB + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
        assert is_alive(raw)

    def test_a_client_may_ask_before_it_sends_the_body(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"", "Expect: 100-continue", length=2))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert read_answer(connection)[0] == 200

    def test_one_of_http_1_0_may_not(self, connect: Connect) -> None:
        connection = connect()
        whole = message("ListTables", b"{}", "Expect: 100-continue", version="1.0")
        connection.sendall(whole[:-2])
        time.sleep(0.1)
        connection.sendall(whole[-2:])
        assert read_to_end(connection).startswith(b"HTTP/1.1 200 ")

    def test_no_other_transfer_coding_is_known(self, connect: Connect) -> None:
        connection = connect()
        head = message("ListTables", b"").replace(
            b"Content-Length: 0", b"Transfer-Encoding: gzip, chunked"
        )
        connection.sendall(head + b"2\r\n{}\r\n0\r\n\r\n")
        assert read_to_end(connection).startswith(b"HTTP/1.1 501 ")


class TestConnections:
    def test_a_connection_is_used_again(self, connect: Connect) -> None:
        connection = connect()
        for _ in range(3):
            connection.sendall(message())
            assert read_answer(connection)[0] == 200

    def test_an_error_does_not_end_the_connection(self, connect: Connect) -> None:
        connection = connect()
        for body, status in ((b"{", 400), (b"{}", 200)):
            connection.sendall(message("ListTables", body))
            assert read_answer(connection)[0] == status

    def test_a_connection_ends_when_asked(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", "Connection: close"))
        assert b"\r\nconnection: close\r\n" in read_to_end(connection)

    def test_http_1_0_ends_the_connection_unless_asked(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", "Connection: keep-alive", version="1.0"))
        assert read_answer(connection)[1]["connection"] == "keep-alive"
        connection.sendall(message(version="1.0"))
        assert read_to_end(connection).startswith(b"HTTP/1.1 200 ")

    def test_pipelined_requests_are_answered_in_order(
        self, connect: Connect, table: Callable[..., str]
    ) -> None:
        name = table()
        connection = connect()
        requests = []
        for number in range(50):
            put = {"TableName": name, "Item": {"pk": {"S": str(number)}}}
            requests.append(message("PutItem", json.dumps(put).encode()))
            get = {"TableName": name, "Key": {"pk": {"S": str(number)}}, "ConsistentRead": True}
            requests.append(message("GetItem", json.dumps(get).encode()))
        connection.sendall(b"".join(requests))
        connection.shutdown(socket.SHUT_WR)
        answers = read_to_end(connection).split(b"HTTP/1.1 200 OK\r\n")[1:]
        bodies = [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers]
        assert len(bodies) == 100
        assert bodies[0::2] == [{}] * 50

    def test_a_request_may_arrive_byte_by_byte(self, connect: Connect) -> None:
        connection = connect()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in message():
            connection.sendall(bytes([byte]))
        assert read_answer(connection)[0] == 200

    def test_what_follows_the_last_request_is_not_answered(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", "Connection: close") + message())
        received = read_to_end(connection)
        assert (received.count(b"HTTP/1.1 "), received[:13]) == (1, b"HTTP/1.1 200 ")

    @pytest.mark.parametrize(
        ("version", "lines"),
        [
            ("1.1", ["Connection: Upgrade, HTTP2-Settings, close"]),
            ("1.1", ["Connection: Upgrade, HTTP2-Settings", "Connection: close"]),
            ("1.0", ["Connection: Upgrade, HTTP2-Settings"]),
        ],
    )
    def test_an_offer_of_http_2_on_a_last_request_ends_the_connection(
        self, connect: Connect, version: str, lines: list[str]
    ) -> None:
        connection = connect()
        offer = [*lines, "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"]
        connection.sendall(message("ListTables", b"{}", *offer, version=version))
        received = read_to_end(connection)
        assert received.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close\r\n" in received

    @pytest.mark.parametrize("version", ["2.0", "0.9"])
    @pytest.mark.parametrize("lines", [(), ("Connection: keep-alive",)])
    def test_another_version_of_http_is_refused(
        self, connect: Connect, version: str, lines: tuple[str, ...]
    ) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", *lines, version=version))
        assert read_to_end(connection).startswith(b"HTTP/1.1 505 ")

    @pytest.mark.parametrize("authority", ["localhost", "LOCALHOST:8000", "127.0.0.1"])
    def test_a_target_may_name_the_host(self, connect: Connect, authority: str) -> None:
        connection = connect()
        for target in (f"http://{authority}/health", f"HTTP://{authority}", f"http://{authority}/"):
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert read_answer(connection)[0] == 200

    def test_which_then_counts(self, connect: Connect) -> None:
        connection = connect()
        for authority in ("evil.example", "localhost@evil.example", "localhost:1@evil.example"):
            target = f"http://{authority}/health"
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert read_answer(connection)[0] == 421

    def test_an_offer_of_http_2_is_declined(self, connect: Connect) -> None:
        connection = connect()
        offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AA")
        connection.sendall(message("ListTables", b"{}", *offer) + message())
        assert read_answer(connection)[0] == 200

    def test_a_client_that_stops_sending_still_gets_its_answer(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message())
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection).startswith(b"HTTP/1.1 200 ")

    def test_a_thousand_connections(self, endpoint: str) -> None:
        address = urlsplit(endpoint)
        target = (address.hostname or "", address.port or 80)
        with ExitStack() as opened:
            connections = [
                opened.enter_context(closing(socket.create_connection(target, timeout=30)))
                for _ in range(1000)
            ]
            for connection in connections:
                connection.sendall(message())
            assert all(read_answer(connection)[0] == 200 for connection in connections)


class TestHarm:
    """These responses are ours: it is not known how AWS responds."""

    @pytest.mark.parametrize(
        "garbage",
        [
            b"\x00\xff\x12\x00 garbage\r\n\r\n",
            b"hello\r\n" * 10,
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        ],
    )
    def test_garbage_is_refused(self, connect: Connect, raw: Raw, garbage: bytes) -> None:
        connection = connect()
        connection.sendall(garbage)
        assert read_to_end(connection).startswith(b"HTTP/1.1 400 ")
        assert is_alive(raw)

    def test_garbage_after_a_request_does_not_spoil_its_answer(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message() + b"garbage\r\n\r\n")
        answers = read_to_end(connection)
        assert answers.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 400 " in answers

    @pytest.mark.parametrize("levels", [250, 10_000, 1_000_000])
    def test_nesting_without_end_is_unreadable(self, raw: Raw, levels: int) -> None:
        value = b'{"L":[' * levels + b'{"S":"x"}' + b"]}" * levels
        body = b'{"TableName":"abc","Item":{"pk":' + value + b"}}"
        assert raw("PutItem", body).body == UNREADABLE
        assert is_alive(raw)

    def test_a_number_of_500_000_digits_is_no_string(self, raw: Raw) -> None:
        body = b'{"TableName":"abc","Item":{"pk":{"N":' + b"1" * 500_000 + b"}}}"
        expected = {**UNREADABLE, "Message": "NUMBER_VALUE cannot be converted to String"}
        assert raw("PutItem", body).body == expected

    def test_a_lone_surrogate_beside_a_huge_number_is_unreadable(self, raw: Raw) -> None:
        body = rb'{"TableName":"abc","zzz":1e400,"Key":{"p":{"S":"\ud800"}}}'
        assert raw("GetItem", body).body == UNREADABLE

    @pytest.mark.parametrize("zzz", ["1" * 30, "[" * 300 + "]" * 300], ids=["digits", "lists"])
    @pytest.mark.parametrize(
        ("operation", "body"),
        [
            ("BatchGetItem", '{"RequestItems":{"a!":{"Keys":[{"p":{"S":"a"}}],"zzz":%s}}}'),
            (
                "TransactWriteItems",
                '{"ClientRequestToken":"t","TransactItems":'
                '[{"Put":{"TableName":"abc","Item":{"p":{"S":"a","zzz":%s}},"zzz":%s}}]}',
            ),
            (
                "UpdateTimeToLive",
                '{"TableName":"abc","TimeToLiveSpecification":'
                '{"Enabled":true,"AttributeName":"a","zzz":%s}}',
            ),
            ("UpdateTable", '{"TableName":"abc","OnDemandThroughput":{"zzz":%s}}'),
        ],
    )
    def test_members_that_nobody_knows_do_no_harm(
        self, raw: Raw, operation: str, body: str, zzz: str
    ) -> None:
        answer = raw(operation, body.replace("%s", zzz))
        assert answer.status == 400 and "zzz" not in json.dumps(answer.body)

    def test_thousands_of_offers_of_http_2_in_one_packet(self, connect: Connect, raw: Raw) -> None:
        connection = connect()
        connection.sendall(b"GET / HTTP/1.1\r\nConnection:upgrade\r\nUpgrade:h\r\n\r\n" * 4800)
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection).count(b"HTTP/1.1 200 ") == 4800
        assert is_alive(raw)

    @pytest.mark.parametrize("line", [b"a: x\r\n", b"x"], ids=["many lines", "one line"])
    def test_what_follows_a_chunked_body_is_limited(self, connect: Connect, line: bytes) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"2\r\n{}\r\n0\r\n", CHUNKED) + b"a: ")
        with suppress(ConnectionError):
            connection.sendall(line * (4 * MIB // len(line)))
        assert read_to_end(connection).startswith(b"HTTP/1.1 400 ")

    def test_so_it_is_when_all_comes_at_once(self, connect: Connect) -> None:
        connection = connect()
        body = b"2\r\n{}\r\n0\r\n" + b"a: %b\r\n" % (b"x" * 1000) * 60 + b"\r\n"
        connection.sendall(message("ListTables", body, CHUNKED))
        assert read_to_end(connection).startswith(b"HTTP/1.1 400 ")

    def test_a_body_of_many_small_chunks_may_arrive_byte_by_byte(self, connect: Connect) -> None:
        connection = connect()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = b'{"Limit":1' + b" " * 3_000 + b"}"
        connection.sendall(message("ListTables", b"", CHUNKED))
        for byte in body:
            for sent in b"1\r\n%c\r\n" % byte:
                connection.sendall(bytes([sent]))
        connection.sendall(b"0\r\n\r\n")
        assert read_answer(connection)[0] == 200

    def test_a_client_that_does_not_read_costs_the_others_nothing(
        self, connect: Connect, client: Any, raw: Raw, table: Callable[..., str]
    ) -> None:
        name = table()
        client.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": {"S": "x" * 390_000}})
        scan = message("Scan", json.dumps({"TableName": name}).encode())
        connection = connect()
        connection.setblocking(False)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            try:
                connection.send(scan * 50)
            except BlockingIOError:
                time.sleep(0.02)
        assert is_alive(raw)
        metrics = raw("", None, method="GET", path="/metrics").body.decode()
        resident = re.search(r"process_resident_memory_bytes (\d+)", metrics)
        assert resident is None or int(resident.group(1)) < 512 * MIB

    def test_unfinished_requests_cost_the_others_nothing(self, connect: Connect, raw: Raw) -> None:
        for _ in range(50):
            connect().sendall(message("ListTables", b"{", length=2))
            connect().sendall(b"POST / HTTP/1.1\r\nHost: loc")
        assert is_alive(raw)
