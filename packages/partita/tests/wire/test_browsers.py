"""Pages in a browser: which of them may use the server and read its responses.

Whatever runs in a browser on this machine can send requests to a server on it. Ours, but for the
headers that pages of an allowed origin get: dynalite's and Alternator's tests recorded those.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from testkit.servers import processes

from .raw_http import Connect, Raw, message, raw_requests, read_answer

EVIL = "http://evil.example"
EXPOSED = "x-amzn-RequestId,x-amzn-ErrorType,x-amzn-ErrorMessage,Date"
PREFLIGHT = {
    "Access-Control-Request-Headers": "content-type,x-amz-target",
    "Access-Control-Request-Method": "POST",
}

Serve = Callable[..., Raw]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """`serve("--allow-origin", "*")`: raw requests to a server with these options."""
    if "PARTITA_ENDPOINT" in os.environ:
        pytest.skip("needs servers of its own")
    with ExitStack() as stack:
        start = stack.enter_context(processes.starting())
        started: dict[tuple[str, ...], Raw] = {}

        def serve(*options: str) -> Raw:
            if options not in started:
                server = start("serve", "--port", "0", "--in-memory", *options)
                started[options] = raw_requests(server.url)
            return started[options]

        yield serve


def cors(headers: dict[str, str]) -> dict[str, str]:
    return {
        name.removeprefix("access-control-"): value
        for name, value in headers.items()
        if name.startswith("access-control-") or name == "vary"
    }


class TestUnknownOrigins:
    @pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost", "", "http://127.0.0.1"])
    def test_nothing_is_done_for_a_page_that_nobody_has_allowed(
        self, raw: Raw, client: Any, table: Callable[..., str], origin: str
    ) -> None:
        name = table()
        put = {"TableName": name, "Item": {"pk": {"S": "a"}}}
        for content_type in ("application/x-amz-json-1.0", "text/plain"):
            answer = raw("PutItem", put, {"Origin": origin, "Content-Type": content_type})
            assert answer.status == 403
            assert cors(answer.headers) == {}
        assert client.scan(TableName=name)["Count"] == 0

    def test_the_refusal_says_what_to_do(self, raw: Raw) -> None:
        assert raw("ListTables", {}, {"Origin": EVIL}).body == {
            "__type": "com.amazon.coral.service#AccessDeniedException",
            "Message": f"Pages of {EVIL} may not use this server; --allow-origin lets them.",
        }

    @pytest.mark.parametrize("path", ["/", "/metrics", "/partitions?table=a", "/nothing"])
    def test_neither_are_pages_of_the_server_for_it(self, raw: Raw, path: str) -> None:
        answer = raw("", None, {"Origin": EVIL}, method="GET", path=path)
        assert (answer.status, cors(answer.headers)) == (403, {})

    def test_what_it_asks_before_it_sends_is_refused(self, raw: Raw) -> None:
        answer = raw("", None, {"Origin": EVIL, **PREFLIGHT}, method="OPTIONS")
        assert (answer.status, cors(answer.headers)) == (403, {})

    def test_a_refusal_does_not_end_the_connection(self, connect: Connect) -> None:
        connection = connect()
        for origin, status in ((f"Origin: {EVIL}", 403), ("X-Origin: none", 200)):
            connection.sendall(message("ListTables", b"{}", origin))
            assert read_answer(connection)[0] == status

    def test_the_log_names_each_once(self) -> None:
        with processes.starting() as start:
            server = start("serve", "--port", "0", "--in-memory")
            for _ in range(3):
                raw_requests(server.url)("ListTables", {}, {"Origin": EVIL})
            assert server.terminate()[1].count(f"'{EVIL}' was refused: --allow-origin") == 1


class TestAllowedOrigins:
    ALLOWED = ("--allow-origin", "http://localhost:3000", "--allow-origin", "https://Shop.example/")

    @pytest.mark.parametrize("origin", ["http://localhost:3000", "https://shop.example"])
    def test_its_pages_may_read_answers_and_errors(self, serve: Serve, origin: str) -> None:
        for body, status in (("{}", 200), ("{", 400)):
            answer = serve(*self.ALLOWED)("ListTables", body, {"Origin": origin})
            assert answer.status == status
            assert cors(answer.headers) == {
                "allow-origin": origin,
                "expose-headers": EXPOSED,
                "vary": "Origin",
            }

    @pytest.mark.parametrize(
        ("name", "value", "body", "status"),
        [
            ("Content-Length", "99999999", b"", 413),
            ("Content-Encoding", "gzip", gzip.compress(bytes(17_000_000)), 413),
            ("Transfer-Encoding", "chunked", b"no chunk", 400),
        ],
        ids=["too large", "too large when unpacked", "unreadable"],
    )
    def test_and_that_a_request_was_not_read(
        self, serve: Serve, name: str, value: str, body: bytes, status: int
    ) -> None:
        sent = {"Origin": "http://localhost:3000", name: value}
        answer = serve(*self.ALLOWED)("ListTables", body, sent)
        assert answer.status == status
        assert cors(answer.headers)["allow-origin"] == "http://localhost:3000"
        answer = serve(*self.ALLOWED)("ListTables", body, {**sent, "Origin": EVIL})
        assert cors(answer.headers) == {}

    @pytest.mark.parametrize(
        "origin",
        [
            "https://localhost:3000",
            "http://localhost",
            "http://localhost:30000",
            "https://shop.example:8443",
            "https://www.shop.example",
            "https://shop.example.evil.example",
            "http://shop.example",
            "null",
        ],
    )
    def test_others_that_look_like_it_may_not(self, serve: Serve, origin: str) -> None:
        assert serve(*self.ALLOWED)("ListTables", {}, {"Origin": origin}).status == 403

    @pytest.mark.parametrize(
        "origin", ["http://localhost", "http://localhost:3000", "https://localhost:8443"]
    )
    def test_a_host_stands_for_all_its_ports(self, serve: Serve, origin: str) -> None:
        raw = serve("--allow-origin", "localhost")
        assert raw("ListTables", {}, {"Origin": origin}).status == 200
        assert raw("ListTables", {}, {"Origin": "http://a.localhost"}).status == 403
        assert raw("ListTables", {}, {"Origin": "localhost"}).status == 403

    def test_a_host_with_a_port_stands_for_this_one(self, serve: Serve) -> None:
        raw = serve("--allow-origin", "localhost:3000")
        assert raw("ListTables", {}, {"Origin": "https://localhost:3000"}).status == 200
        assert raw("ListTables", {}, {"Origin": "http://localhost:3001"}).status == 403

    @pytest.mark.parametrize("origin", [EVIL, "null"])
    def test_a_star_stands_for_all(self, serve: Serve, origin: str) -> None:
        answer = serve("--allow-origin", "*")("ListTables", {}, {"Origin": origin})
        assert answer.status == 200
        assert cors(answer.headers) == {"allow-origin": "*", "expose-headers": EXPOSED}

    def test_others_than_pages_are_told_nothing_of_it(self, serve: Serve) -> None:
        assert cors(serve("--allow-origin", "*")("ListTables", {}).headers) == {}

    def test_a_page_may_ask_before_it_sends(self, serve: Serve) -> None:
        asked = {"Origin": "http://localhost:3000", **PREFLIGHT}
        answer = serve(*self.ALLOWED)("", None, asked, method="OPTIONS")
        assert (answer.status, answer.body) == (200, b"")
        assert cors(answer.headers) == {
            "allow-origin": "http://localhost:3000",
            "allow-headers": "content-type,x-amz-target",
            "allow-methods": "POST",
            "expose-headers": EXPOSED,
            "max-age": "172800",
            "vary": "Origin",
        }
        assert answer.headers["content-length"] == "0"

    def test_a_page_of_a_public_site_may_ask_for_a_private_network(self, serve: Serve) -> None:
        asked = {"Origin": EVIL, **PREFLIGHT, "Access-Control-Request-Private-Network": "true"}
        answer = serve("--allow-origin", "*")("", None, asked, method="OPTIONS")
        assert answer.headers["access-control-allow-private-network"] == "true"
        answer = serve(*self.ALLOWED)("", None, asked, method="OPTIONS")
        assert (answer.status, cors(answer.headers)) == (403, {})

    @pytest.mark.parametrize("wrong", ["http://", "a b", "http://x/path", "http://*.example", ""])
    def test_what_is_no_origin_is_refused_at_the_start(self, wrong: str) -> None:
        completed = processes.run("serve", "--in-memory", "--port", "0", "--allow-origin", wrong)
        assert completed.returncode == 1
        assert completed.stderr == (
            f"partita: {wrong!r} is not an origin: give one such as http://localhost:3000, a host "
            "such as localhost, or * for all.\n"
        )


class TestHosts:
    """A name of a site may lead to this machine (DNS rebinding): the Host gives it away."""

    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "LocalHost:8000",
            "localhost.",
            "my.localhost:8000",
            "127.0.0.1:8000",
            "127.1.2.3",
            "[::1]:8000",
            "[::1]",
            "0.0.0.0:8000",
            "host.docker.internal:8000",
            "host.containers.internal",
            "sync-localhost:8000",
        ],
    )
    def test_local_names_are_answered_to(self, raw: Raw, host: str) -> None:
        assert raw("ListTables", {}, {"Host": host}).status == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "notlocalhost",
            "128.0.0.1",
            "[fe80::1]:8000",
            ":8000",
            "",
        ],
    )
    def test_no_others_are(self, raw: Raw, host: str) -> None:
        answer = raw("ListTables", {}, {"Host": host})
        assert answer.status == 421
        assert answer.body["Message"].startswith("This server does not answer to the name ")
        assert raw("", None, {"Host": host}, method="GET", path="/metrics").status == 421

    def test_the_refusal_says_what_to_do(self, raw: Raw) -> None:
        assert raw("ListTables", {}, {"Host": "db.test:80"}).body["Message"] == (
            "This server does not answer to the name 'db.test': ask for localhost, or start it "
            "with --allow-host db.test."
        )

    def test_every_request_of_a_connection_is_looked_at(self, connect: Connect) -> None:
        connection = connect()
        for host, status in (("localhost", 200), ("evil.example", 421), ("localhost", 200)):
            connection.sendall(message().replace(b"Host: localhost", b"Host: " + host.encode()))
            assert read_answer(connection)[0] == status

    def test_a_request_without_a_host_is_of_no_browser(self, connect: Connect) -> None:
        connection = connect()
        connection.sendall(message().replace(b"Host: localhost\r\n", b""))
        assert read_answer(connection)[0] == 200

    def test_names_can_be_given(self, serve: Serve) -> None:
        raw = serve("--allow-host", "db.test", "--allow-host", "192.0.2.7:8000")
        for host in ("db.test:8000", "DB.test", "192.0.2.7", "localhost"):
            assert raw("ListTables", {}, {"Host": host}).status == 200
        for host in ("a.db.test", "192.0.2.8"):
            assert raw("ListTables", {}, {"Host": host}).status == 421

    def test_a_star_stands_for_all(self, serve: Serve) -> None:
        assert serve("--allow-host", "*")("ListTables", {}, {"Host": "evil.example"}).status == 200

    def test_a_server_for_others_answers_to_every_name(self, serve: Serve) -> None:
        raw = serve("--host", "0.0.0.0", "--no-auth")
        assert raw("ListTables", {}, {"Host": "dynamodb:8000"}).status == 200

    def test_but_shows_no_data_under_the_name_of_a_site(self, serve: Serve) -> None:
        """A GET has no Origin header."""
        raw = serve("--host", "0.0.0.0", "--no-auth")
        for path in ("/insights?table=a", "/metrics", "/partitions?table=a"):
            for method in ("GET", "HEAD"):
                answer = raw("", None, {"Host": "evil.example"}, method=method, path=path)
                assert answer.status == 421
            assert raw("", None, {"Host": "dynamodb"}, method="GET", path=path).status != 421
            assert raw("", None, {"Host": "10.0.0.7:80"}, method="GET", path=path).status != 421
        for path in ("/", "/ping", "/health"):
            assert raw("", None, {"Host": "evil.example"}, method="GET", path=path).status == 200

    @pytest.mark.parametrize("wrong", ["http://x", "*.example.com", ""])
    def test_what_is_no_host_is_refused_at_the_start(self, wrong: str) -> None:
        completed = processes.run("serve", "--in-memory", "--port", "0", "--allow-host", wrong)
        assert completed.returncode == 1
        assert completed.stderr == (
            f"partita: {wrong!r} is not a host: give a name such as db.example, an address, or * "
            "for all.\n"
        )

    def test_unless_it_is_given_some(self, serve: Serve) -> None:
        raw = serve("--host", "0.0.0.0", "--no-auth", "--allow-host", "dynamodb")
        assert raw("ListTables", {}, {"Host": "dynamodb:8000"}).status == 200
        assert raw("ListTables", {}, {"Host": "evil.example"}).status == 421

    def test_a_page_of_its_own_name_may_not_use_the_server_either(self, raw: Raw) -> None:
        host = {"Host": "localhost:8000", "Origin": "http://localhost:8000"}
        assert raw("ListTables", {}, host).status == 403
