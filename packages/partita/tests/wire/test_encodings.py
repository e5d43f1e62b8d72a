"""Content codings: which compressions of requests are accepted, and how responses are compressed.

Unless a comment says that the behaviour is ours, it is the service's, as Alternator's tests
recorded it: also the status 500 for content that cannot be unpacked.
"""

from __future__ import annotations

import gzip
import json
import select
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from .raw_http import Answer, Connect, Raw, message, read_answer, read_to_end

MIB = 1024 * 1024
PUT = b'{"TableName":"%b","Item":{"pk":{"S":"a"}}}'

Pack = Callable[[bytes], bytes]
Put = Callable[[str, Pack], Answer]


class TestRequests:
    @pytest.fixture
    def put(self, raw: Raw, client: Any, table: Callable[..., str]) -> Put:
        """`put("gzip", pack)`: the answer to a put that is packed so; if it is an error, there is
        no item."""
        name = table()
        body = PUT % name.encode()

        def send(encoding: str, pack: Pack) -> Answer:
            answer = raw("PutItem", pack(body), {"Content-Encoding": encoding})
            found = client.get_item(TableName=name, Key={"pk": {"S": "a"}}, ConsistentRead=True)
            assert ("Item" in found) == (answer.status == 200)
            return answer

        return send

    @pytest.mark.parametrize(
        ("encoding", "pack"),
        [
            ("gzip", gzip.compress),
            ("GZIP", gzip.compress),
            ("gzip", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
            ("gzip", lambda body: b"".join(gzip.compress(bytes([byte])) for byte in body)),
            ("deflate", zlib.compress),
            ("identity", bytes),
            ("", bytes),
        ],
        ids=["gzip", "in capitals", "two members", "many members", "deflate", "identity", "none"],
    )
    def test_packed_requests_are_read(self, put: Put, encoding: str, pack: Pack) -> None:
        assert put(encoding, pack).status == 200

    @pytest.mark.parametrize(
        ("encoding", "pack"),
        [
            ("garbage", bytes),
            ("br", bytes),
            ("gzip", bytes),
            ("deflate", bytes),
            ("gzip", lambda body: b""),
            ("deflate", lambda body: b""),
            ("gzip", lambda body: gzip.compress(body)[:-1]),
            ("gzip", lambda body: b"\x1f\x8bgarbage"),
            ("deflate", gzip.compress),
            ("gzip", zlib.compress),
            ("deflate", lambda body: zlib.compress(body[:9]) + zlib.compress(body[9:])),
            # Ours: the service runs this one, and overlooks what follows.
            ("gzip", lambda body: gzip.compress(body) + b"junk"),
            # Ours: so many members are no use to anybody.
            ("gzip", lambda body: gzip.compress(b"") * 1000 + gzip.compress(body)),
            # Ours: the service is not known to unpack twice.
            ("gzip, gzip", lambda body: gzip.compress(gzip.compress(body))),
        ],
    )
    def test_what_cannot_be_unpacked_does_not_run(
        self, put: Put, encoding: str, pack: Pack
    ) -> None:
        answer = put(encoding, pack)
        assert answer.status == 500
        assert answer.body["__type"].endswith("#InternalServerError")
        assert answer.body["message"].startswith("The Content-Encoding ")

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_page_is_shown_whatever_coding_its_request_names(self, raw: Raw, method: str) -> None:
        for encoding in ("gzip", "br"):
            sent = {"Content-Encoding": encoding}
            assert raw("", None, sent, method=method, path="/health").status == 200

    def test_a_refusal_does_not_end_the_connection(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message("ListTables", b"{}", "Content-Encoding: br"))
        assert read_answer(connection)[0] == 500
        connection.sendall(message())
        assert read_answer(connection)[0] == 200

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_a_bomb_is_refused(self, connect: Connect, raw: Raw, coding: str) -> None:
        """This limit is ours: the service accepts much more."""
        pack = gzip.compress if coding == "gzip" else zlib.compress
        connection = connect()
        bomb = pack(b"{" + b" " * (100 * MIB) + b"}")
        connection.sendall(message("ListTables", bomb, f"Content-Encoding: {coding}"))
        assert read_answer(connection)[0] == 413
        assert raw("ListTables", {}).status == 200

    def test_so_is_one_in_parts(self, connect: Connect) -> None:
        connection = connect()
        bomb = gzip.compress(b" " * (4 * MIB)) * 5
        connection.sendall(message("ListTables", bomb, "Content-Encoding: gzip"))
        assert read_answer(connection)[0] == 413

    def test_small_packets_that_unpack_to_much_let_others_go_between(
        self, connect: Connect
    ) -> None:
        large = b'{"Limit":1,"zzz":"' + b"x" * (15 * MIB) + b'"}'
        packed = message("ListTables", gzip.compress(large, 9), "Content-Encoding: gzip")

        def is_let_between() -> bool:
            connection, other = connect(), connect()
            connection.sendall(packed * 12)
            other.sendall(message())
            assert read_answer(other)[0] == 200
            ready, _, _ = select.select([connection], [], [], 0)
            at_once = connection.recv(MIB) if ready else b""
            connection.shutdown(1)
            assert (at_once + read_to_end(connection)).count(b"HTTP/1.1 200 ") == 12
            return at_once.count(b"HTTP/1.1 200 ") < 12

        # This side may be held up for as long as all twelve take.
        assert any(is_let_between() for _ in range(5))


@pytest.fixture(scope="module")
def get(client: Any, module_table: Callable[..., str]) -> bytes:
    """The body of a GetItem whose answer has some 4,200 bytes."""
    name = module_table()
    client.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": {"S": "x" * 4_096}})
    return json.dumps({"TableName": name, "Key": {"pk": {"S": "a"}}}).encode()


class TestAnswers:
    @pytest.mark.parametrize(
        ("coding", "unpack"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)]
    )
    def test_an_answer_above_4_kb_is_packed_when_asked(
        self, connect: Connect, get: bytes, coding: str, unpack: Pack
    ) -> None:
        connection = connect()
        connection.sendall(message("GetItem", get, f"Accept-Encoding: {coding}"))
        _, headers, packed = read_answer(connection)
        assert headers["content-encoding"] == coding
        assert int(headers["x-amz-crc32"]) == zlib.crc32(packed)
        assert len(packed) < 200
        assert json.loads(unpack(packed))["Item"]["pk"] == {"S": "a"}
        connection.sendall(message("GetItem", get))
        assert "content-encoding" not in read_answer(connection)[1]

    def test_the_next_one_up_to_4_kb_is_not(
        self, connect: Connect, client: Any, table: Callable[..., str]
    ) -> None:
        name = table()
        around = len('{"Item":{"v":{"S":""},"pk":{"S":"a"}}}')
        connection = connect()
        for size, is_packed in ((4_096, False), (4_097, True)):
            value = {"S": "x" * (size - around)}
            client.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": value})
            body = json.dumps({"TableName": name, "Key": {"pk": {"S": "a"}}}).encode()
            connection.sendall(message("GetItem", body))
            assert len(read_answer(connection)[2]) == size
            connection.sendall(message("GetItem", body, "Accept-Encoding: gzip"))
            assert ("content-encoding" in read_answer(connection)[1]) == is_packed

    @pytest.mark.parametrize(
        ("accepted", "coding"),
        [
            ("identity", None),
            ("", None),
            ("br", None),
            ("x-gzip", None),
            ("not-gzip", None),
            ("gzip, deflate", "gzip"),
            ("br, identity, deflate, gzip", "deflate"),
            ("GZIP, identity", "gzip"),
            ("dog, gzip ,, cat", "gzip"),
            ("gzip;q=0.8, deflate;q=0.5", "gzip"),
            ("br, gzip;q=0, deflate; q = 0.5 , identity;q=0", "deflate"),
            ("*", "gzip"),
            ("*, deflate;q=0.5", "gzip"),
            ("*, deflate", "deflate"),
            ("*, identity", "gzip"),
            ("*, gzip;q=0.5", "deflate"),
            ("*, gzip;q=0", "deflate"),
            ("gzip;q=0", None),
            ("gzip ;q=0", None),
            ("identity, GZIP ; q=0.000", None),
            ("*;q=0", None),
            ("*;q=0.5,identity", "gzip"),
            ("gzip;q=0.5,identity;q=0.8", "gzip"),
            ('"gzip"', None),
            ("gzip br", None),
            ("gzip:q=1", None),
            ("deflate;q=0.5, gzip;q=31", "gzip"),
            ("gzip;q=31,deflate;q=51", "gzip"),
            ("deflate;q=0.5, gzip;q=0.2", "deflate"),
            ("deflate;q=0.5, gzip;q=1;q=0.2", "gzip"),
            ("deflate;q=0.5,gzip;q=0.", "deflate"),
            ("deflate;q=0.5,gzip;q=0.x", "gzip"),
            ("deflate;q=-0.5,gzip;q=0.2", "gzip"),
            ("gzip;q= 0;q=1", None),
            ("gzip;q =0;q=1", "gzip"),
            ("gzip;nq=0;q=1", None),
            ("gzip;q=0, gzip;q=1, gzip;q=0", "gzip"),
            ("br,identity;q=0.5,gzip;q=0.0001", "gzip"),
        ],
    )
    def test_the_coding_is_chosen_as_the_service_does(
        self, connect: Connect, get: bytes, accepted: str, coding: str | None
    ) -> None:
        connection = connect()
        connection.sendall(message("GetItem", get, f"Accept-Encoding: {accepted}"))
        assert read_answer(connection)[1].get("content-encoding") == coding

    @pytest.mark.parametrize(("first", "second"), [("gzip", "identity"), ("identity", "gzip")])
    @pytest.mark.parametrize("name", ["Accept-Encoding", "accept-encoding"])
    def test_of_several_headers_the_first_counts(
        self, connect: Connect, get: bytes, name: str, first: str, second: str
    ) -> None:
        connection = connect()
        lines = (f"Accept-Encoding: {first}", f"{name}: {second}")
        connection.sendall(message("GetItem", get, *lines))
        is_packed = "content-encoding" in read_answer(connection)[1]
        assert is_packed == (first == "gzip")
