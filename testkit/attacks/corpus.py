"""The worst requests that a client without a key can send: bodies, headers, queries and paths.

Each body is as costly as its size allows. There are two sizes: 60 KB, which servers tend to read at
once, and 1 MB. `BODIES` has their content type and coding; `cases` sends each to every path.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

KB, MB = 1024, 1024 * 1024
SMALL, LARGE = 60 * KB, 1 * MB - 1 * KB
LARGEST = 16 * MB

JSON_1_0, JSON_1_1 = "application/x-amz-json-1.0", "application/x-amz-json-1.1"
CBOR = "application/x-amz-cbor-1.1"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
CONTENT_TYPES = (
    *(JSON_1_0, JSON_1_1, "application/json", CBOR, FORM, f"{FORM}; charset=utf-8", MULTIPART),
    *("text/plain", "text/xml", "application/vnd.partita.console+json", "application/octet-stream"),
    *("", "garbage", ";" * 200),
)
ENCODINGS = ("", "gzip", "deflate", "zstd", "br", "identity", "gzip, gzip", "x" * 200)

SIGNED_QUERY = (
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20260101%2Fus-east-1"
    "%2F{}%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=" + "0" * 64
)
LOCATION = f"/2015-03-31/functions/f/code?{SIGNED_QUERY.format('lambda')}"
PRESIGNED = f"/?Action=GetCallerIdentity&Version=2011-06-15&{SIGNED_QUERY.format('sts')}"
PATHS = (
    *("/", "/ping", "/health", "/metrics", "/requests", "/partitions", "/insights", "/explain"),
    *("/nothing", "/console", "/console/static/app.js", "/console/api/sign-in"),
    *("/console/api/session", "/console/api/explain", "/console/api/dynamodb/ListTables"),
    *("/2015-03-31/functions", "/2015-03-31/functions/f/invocations", "/2017-03-31/tags/x"),
    *("/2015-03-31/event-source-mappings/x", "/schedules/x", "/schedule-groups", "/tags/x"),
    *(LOCATION, PRESIGNED, "/partita/companions/workflows", "//", "/%2e%2e/%00"),
)
MAIN_PATHS = ("/", "/2015-03-31/functions", "/schedules/x", "/console/api/sign-in", PRESIGNED)
"""One path of each kind."""
BATCH, LIST = "DynamoDB_20120810.BatchExecuteStatement", "DynamoDB_20120810.ListTables"
RECORDS = "Kinesis_20131202.PutRecords"
TARGETS = (
    *(BATCH, LIST, RECORDS, "DynamoDB_20120810.GetItem", "DynamoDB_20120810.Query"),
    "DynamoDBStreams_20120810.ListStreams",
    "AWSStepFunctions.CreateStateMachine",
    "PartitaAccess.PutUser",
    "PartitaRights.Check",
    "Nobody.Knows",
    "",
)


class Body(NamedTuple):
    content_type: str
    content: bytes
    encoding: str = ""
    chunk_bytes: int = 0
    """The size of chunks, for a body in chunked transfer coding."""


class Case(NamedTuple):
    """A request without a signature."""

    name: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    chunk_bytes: int = 0

    def message(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1"]
        if not any(name == "Host" for name, _ in self.headers):
            lines.append("Host: localhost")
        lines += [f"{name}: {value}" for name, value in self.headers]
        length = f"Content-Length: {len(self.body)}"
        lines.append("Transfer-Encoding: chunked" if self.chunk_bytes else length)
        body = chunked(self.body, self.chunk_bytes) if self.chunk_bytes else self.body
        return "\r\n".join((*lines, "", "")).encode("latin-1") + body


# Bodies


def filled(part: bytes, size: int, before: bytes = b"", after: bytes = b"") -> bytes:
    """Repeats the part as often as it fits."""
    return before + part * ((size - len(before) - len(after)) // len(part)) + after


def json_bodies(size: int) -> Iterator[tuple[str, bytes]]:
    yield "deep arrays", filled(b"[", size, b'{"a":')
    yield "deep objects", filled(b'{"a":', size)
    half = size // 12
    yield "deep and closed", b'{"a":' * half + b"1" + b"}" * half
    yield "wide arrays", filled(b"[],", size, b'{"a":[', b"1]}")
    yield "wide objects", filled(b"{},", size, b'{"a":[', b"1]}")
    yield "wide numbers", filled(b"0,", size, b'{"a":[', b"0]}")
    yield "wide strings", filled(b'"",', size, b'{"Statements":[', b"1]}")
    names = b",".join(b'"%d":1' % number for number in range(size // 10))
    yield "many names", b"{%b}" % names
    yield "one name again and again", filled(b'"a":{},', size, b"{", b'"b":1}')
    yield "a long number", b'{"a":%b}' % (b"9" * (size - 10))
    yield "long numbers", filled(b"9" * 4000 + b",", size, b'{"a":[', b"0]}")
    yield "large exponents", filled(b"1e999999999,", size, b'{"a":[', b"0]}")
    yield "escapes", filled(b"\\u0041", size, b'{"TableName":"', b'"}')
    yield "surrogates", filled(b"\\ud800", size, b'{"TableName":"', b'"}')
    yield "a long name", b'{"TableName":"%b"}' % (b"x" * (size - 30))
    yield (
        "statement",
        json.dumps({"Statements": [{"Statement": "SELECT * FROM " + "(" * (size - 100)}]}).encode(),
    )
    stars = {"Effect": "Allow", "Action": "*" * 1000, "Resource": "*a" * 500}
    count = max(1, size // 2200)
    document = json.dumps({"Version": "2012-10-17", "Statement": [stars] * count})
    yield "policy", json.dumps({"ResourceArn": "x", "Policy": document}).encode()


def shared_references(levels: int) -> bytes:
    """Returns nested CBOR: each level contains the next twice, by tags 28 and 29 (references)."""
    inner = b"\xd8\x1c\x80"
    for level in range(levels):
        # Shared values are numbered from the outside, so the level below has the next number.
        number = levels - level
        inner = b"\xd8\x1c\x82" + inner + b"\xd8\x1d" + head(0, number)
    return inner


def head(major: int, argument: int) -> bytes:
    """Returns the head of a CBOR value."""
    if argument < 24:
        return bytes([major << 5 | argument])
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << (8 * size):
            return bytes([major << 5 | info]) + argument.to_bytes(size, "big")
    raise ValueError(argument)


def array(items: list[bytes]) -> bytes:
    return head(4, len(items)) + b"".join(items)


def cbor_bodies(size: int) -> Iterator[tuple[str, bytes]]:
    yield "shared references", shared_references(min(size // 6, 60))
    yield "cycle", b"\xd8\x1c\x81\xd8\x1d\x00"
    yield "cycle in a map", b"\xd8\x1c\xa1\x61a\xd8\x1d\x00"
    for name, part in (
        *(("arrays", b"\x81"), ("open arrays", b"\x9f"), ("maps", b"\xa1\x00")),
        *(("open maps", b"\xbf\x00"), ("tags", b"\xc1"), ("shares", b"\xd8\x1c")),
        *(("sets", b"\xd9\x01\x02\x81"), ("unknown tags", b"\xd9\x4e\x20")),
    ):
        yield f"deep {name}", filled(part, size)
    for name, part in (
        *(("arrays", b"\x80"), ("maps", b"\xa0"), ("numbers", b"\x00"), ("texts", b"\x60")),
        *(("dates", b"\xc1\x00"), ("null", b"\xf6"), ("undefined", b"\xf7")),
        *(("half floats", b"\xf9\x7c\x01"), ("open texts", b"\x7f\xff")),
    ):
        yield f"wide {name}", filled(part, size, b"\xbf\x61a\x9f", b"\xff\xff")
    for major, name in ((2, "bytes"), (3, "text"), (4, "array"), (5, "map")):
        for bits in (31, 40, 63):
            yield f"promised {name} of 2^{bits}", head(major, (1 << bits) - 1) + b"\x00" * 64
    yield "text in chunks", filled(b"\x61a", size, b"\xa1\x61a\x7f", b"\xff")
    yield "bytes in chunks", filled(b"\x41a", size, b"\xa1\x61a\x5f", b"\xff")
    number = b"\xc2" + head(2, size - 20) + b"\xff" * (size - 20)
    yield "large integer", b"\xa1\x61a" + number
    yield "large integer as a key", b"\xa1" + number + b"\x00"
    yield "decimal", b"\xa1\x61a\xc4\x82\x1a\x3b\x9a\xca\x00\x01"
    yield "large float", b"\xa1\x61a\xc5\x82\x1a\x7f\xff\xff\xff\x01"
    yield "fraction", b"\xa1\x61a\xd8\x1e\x82" + number[: size // 2] + b"\x03"
    pattern = b"(" * 80 + b"a*" * 2000 + b")" * 80
    yield "regular expression", b"\xa1\x61a\xd8\x23" + head(3, len(pattern)) + pattern
    many = filled(b"(?:a|b)*", size - 20)
    yield "large regular expression", b"\xa1\x61a\xd8\x23" + head(3, len(many)) + many
    mail = filled(b"a: b\r\n", size - 20)
    yield "mail", b"\xa1\x61a\xd8\x24" + head(3, len(mail)) + mail
    yield "dates in texts", filled(b"\xc0\x742013-03-21T20:04:00Z", size, b"\xa1\x61a\x9f", b"\xff")
    # One string and thousands of references to it, by tags 256 and 25.
    text = head(3, size // 2) + b"x" * (size // 2)
    references = b"\xd8\x19\x00" * (size // 2 // 3 - 10)
    yield "text references", b"\xa1\x61a\xd9\x01\x00\x9f" + text + references + b"\xff"
    # Numbers with the same hash: each is compared with all before it.
    keys = [head(0, index * ((1 << 61) - 1)) for index in range(min(8, size // 9))]
    keys += [
        b"\xc2" + head(2, 12) + (index * ((1 << 61) - 1)).to_bytes(12, "big")
        for index in range(8, size // 15)
    ]
    yield "colliding keys", head(5, len(keys)) + b"".join(key + b"\x00" for key in keys)
    yield "colliding members", b"\xa1\x61a\xd9\x01\x02" + array(keys)
    yield "addresses", filled(b"\xd9\x01\x04\x44\x7f\x00\x00\x01", size, b"\xa1\x61a\x9f", b"\xff")


def form_bodies(size: int) -> Iterator[tuple[str, bytes]]:
    yield "a long Action", b"Action=" + b"x" * (size - 7)
    yield "fields", filled(b"a&", size, b"Action=GetCallerIdentity&Version=2011-06-15&")
    yield "fields with values", filled(b"a=1&", size, b"Action=GetCallerIdentity&")
    yield "encoded", filled(b"%41", size, b"Action=")
    yield "encoded beyond UTF-8", filled(b"%ff", size, b"Action=")
    yield "encoded names", filled(b"%41=%2b&", size)
    yield "plus", filled(b"+", size, b"Action=")
    yield "semicolons", filled(b";", size, b"Action=x")
    yield "only signs", filled(b"&=", size)
    yield "not UTF-8", filled(b"\xff", size, b"Action=")
    policy = b'{"Statement":[{"Effect":"Allow","Action":"%b","Resource":"*"}]}' % (b"*a" * 900)
    role = b"Action=AssumeRole&RoleArn=arn:aws:iam::123456789012:role/r&RoleSessionName=s&"
    yield "AssumeRole", filled(b"Policy=" + policy + b"&", size, role)
    yield "a long duration", b"Action=GetSessionToken&DurationSeconds=" + b"9" * (size - 50)


def multipart_bodies(size: int) -> Iterator[tuple[str, bytes]]:
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    yield "parts", filled(part, size, after=b"--x--\r\n")
    yield "boundaries", filled(b"--x\r\n", size)
    yield "one header", b"--x\r\n" + b"a" * size


def zstandard(size: int) -> bytes:
    """Returns a frame of blocks that repeat one byte, which take 4 bytes for 128 KB."""
    blocks = size // (128 * KB)
    begin = (0xFD2FB528).to_bytes(4, "little") + bytes([0x00, 0x58])
    block = (128 * KB << 3 | 1 << 1).to_bytes(3, "little") + b"a"
    last = (128 * KB << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"a"
    return begin + block * (blocks - 1) + last


def packed(content: bytes, coding: str = "gzip") -> bytes:
    return gzip.compress(content, 9, mtime=0) if coding == "gzip" else zlib.compress(content, 9)


def coded_bodies() -> Iterator[tuple[str, Body]]:
    """Yields compressed bodies: small on the wire, and decompressed at the limit or beyond it."""
    worst = LARGEST - 100
    contents = {
        "spaces": (JSON_1_0, b"{" + b" " * worst + b"}"),
        "beyond the limit": (JSON_1_0, b"{" + b" " * (4 * worst) + b"}"),
        "arrays": (JSON_1_0, filled(b"[],", worst, b'{"a":[', b"1]}")),
        "deep arrays": (JSON_1_0, filled(b"[", worst, b'{"a":')),
        "a long name": (JSON_1_0, b'{"TableName":"%b"}' % (b"x" * worst)),
        "cbor arrays": (CBOR, filled(b"\x80", worst, b"\xbf\x61a\x9f", b"\xff\xff")),
        "fields": (FORM, filled(b"a&", worst, b"Action=GetCallerIdentity&")),
        "encoded": (FORM, filled(b"%41", worst, b"Action=")),
        "a long Action": (FORM, b"Action=" + b"x" * worst),
    }
    for name, (content_type, content) in contents.items():
        for coding in ("gzip", "deflate"):
            yield f"{coding}: {name}", Body(content_type, packed(content, coding), coding)
    spaces = b"{" + b" " * worst + b"}"
    twice = packed(packed(b"\0" * (64 * MB)))
    yield "gzip in gzip", Body(JSON_1_0, twice, "gzip")
    yield "gzip in gzip, and says so", Body(JSON_1_0, twice, "gzip, gzip")
    empty = packed(b"")
    yield "members", Body(JSON_1_0, empty * (SMALL // len(empty)), "gzip")
    yield "many members", Body(JSON_1_0, empty * (LARGE // len(empty)), "gzip")
    yield "large members", Body(JSON_1_0, packed(spaces[: 4 * MB]) * 5, "gzip")
    yield (
        "a long file name",
        Body(JSON_1_0, b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"n" * SMALL + b"\0" + empty[10:], "gzip"),
    )
    yield "cut off", Body(JSON_1_0, packed(spaces)[:-9], "gzip")
    yield "zstd", Body(JSON_1_0, zstandard(LARGEST), "zstd")
    yield "brotli", Body(JSON_1_0, b"\x8b\x07\x80" * 1000, "br")
    yield "raw deflate", Body(JSON_1_0, packed(spaces, "deflate")[2:-4], "deflate")


def chunked(content: bytes, size: int) -> bytes:
    """Returns the content in chunks, with chunk extensions unless chunks have minimal size."""
    extension = b";a=b" if size > 1 else b""
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    lines = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    return lines + b"0\r\n\r\n"


def chunked_bodies() -> Iterator[tuple[str, Body]]:
    deep = b'{"a":' + b"[" * 10_000
    yield "chunks of a byte", Body(JSON_1_0, deep, chunk_bytes=1)
    yield "many chunks of a byte", Body(JSON_1_0, deep * 50, chunk_bytes=1)
    yield "chunks with extensions", Body(JSON_1_0, deep, chunk_bytes=9)
    yield "chunks of a form", Body(FORM, b"a&" * 20_000, chunk_bytes=1000)


@cache
def bodies() -> dict[str, Body]:
    """Returns all bodies by name."""
    found: dict[str, Body] = {}
    for size_name, size in (("small", SMALL), ("large", LARGE)):
        for kind, (content_type, contents) in KINDS.items():
            for name, content in contents(size):
                found[f"{size_name} {kind}: {name}"] = Body(content_type, content)
    found.update(coded_bodies())
    found.update(chunked_bodies())
    found["nothing"] = Body(JSON_1_0, b"")
    return found


KINDS: dict[str, tuple[str, Callable[[int], Iterator[tuple[str, bytes]]]]] = {
    "json": (JSON_1_0, json_bodies),
    "cbor": (CBOR, cbor_bodies),
    "form": (FORM, form_bodies),
    "multipart": (MULTIPART, multipart_bodies),
}
WORST_PLAIN = (
    *("small cbor: shared references", "small cbor: text references"),
    *("small json: deep and closed", "small form: encoded names"),
)
WORST_CODED = ("gzip: fields", "gzip: deep arrays", "deflate: cbor arrays", "zstd")


# Headers and queries

LONG = 15 * KB
DATE = ("X-Amz-Date", "20260101T000000Z")


def authorizations() -> Iterator[tuple[str, str]]:
    scope = "AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/dynamodb/aws4_request"
    whole = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={{}}, Signature={'0' * 64}"
    yield "credentials", "AWS4-HMAC-SHA256 " + f"Credential={scope}, " * (LONG // 75)
    yield "credential of slashes", whole.replace(scope, "/" * (LONG - 200)).format("host")
    yield "a long key id", whole.replace("AKIA", "A" * (LONG - 200)).format("host")
    yield "signed headers", whole.format(";".join(["a"] * (LONG // 2 - 100)))
    yield "signed host", whole.format(";".join(["host"] * (LONG // 5 - 100)))
    yield "commas", "AWS4-HMAC-SHA256 " + "," * (LONG - 30)
    yield "equals", "AWS4-HMAC-SHA256 " + "=" * (LONG - 30)
    yield "pairs", "AWS4-HMAC-SHA256 " + ",".join(f"a{n}=b" for n in range(1900))
    yield "spaces", "AWS4-HMAC-SHA256 Credential=" + " " * (LONG - 100) + "x"
    yield "tabs", "AWS4-HMAC-SHA256" + "\t" * (LONG - 100) + "x"
    yield "letters", "AWS4-HMAC-SHA256 " + "a" * (LONG - 30)
    yield "signatures", whole.format("host") + ", Signature=0" * 1000
    yield "a long signature", whole.format("host") + "0" * (LONG - 400)
    yield "bytes", whole.format("\xff" * (LONG - 400))
    yield "asymmetric", whole.format("host").replace("HMAC", "ECDSA-P256")
    yield "Basic", "Basic " + "QUFB" * ((LONG - 10) // 4)
    yield "Basic of nothing", "Basic " + "=" * (LONG - 10)
    yield "Bearer", "Bearer " + "." * (LONG - 10)


def headers() -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    for name, value in authorizations():
        yield f"Authorization: {name}", (("Authorization", value), DATE)
    plain = next(value for name, value in authorizations() if name == "signatures")[:190]
    signed = (("Authorization", plain),)
    yield "many headers", tuple((f"a{number}", "b") for number in range(1500))
    yield "one header again and again", (("a", "b"),) * 2500
    yield "Authorization again and again", (*signed * 60, DATE)
    for name, values in {
        "X-Amz-Date": ("9" * (LONG - 200), "x", "20260101T000000Z" * 100, "99999999T999999Z"),
        "Date": ("9" * (LONG - 200), "Mon, " * 2000, "(" * (LONG - 200), ":" * 9000, "1 1 1 1:1:1"),
        "X-Amz-Security-Token": ("A" * (LONG - 200), "\xff" * 9000, "==" * 5000, "e30." * 2000),
        "X-Amz-Content-Sha256": ("UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        "X-Partita-Role": ("r" * (LONG - 200), "arn:aws:iam::" * 900),
    }.items():
        for value in values:
            date = () if name in ("Date", "X-Amz-Date") else (DATE,)
            yield f"{name}: {value[:20]!r}", (*signed, *date, (name, value))
    for name, values in {
        "Accept-Encoding": ("," * LONG, "gzip;q=" + "0" * LONG, ";q=1," * 3000, "q=" + " " * LONG),
        "Cookie": (
            'a="' + "\\" * (LONG - 10) + '"',
            "a=b;" * 3700,
            "=" * LONG,
            "partita=" + "x" * 9000,
        ),
        "Content-Type": ("a" * LONG, f"{FORM};" + "a=b;" * 3000, "/" * LONG, CBOR + " " * 9000),
        "Content-Encoding": ("gzip," * 3000, "x" * LONG),
        "Host": ("[" * LONG, "a." * 7000, "localhost:" + "9" * LONG),
        "Origin": ("http://" + "a." * 7000, "null", "-" * LONG),
        "X-Amz-Target": ("." * LONG, "DynamoDB_20120810." + "A" * LONG, "Kinesis_20131202."),
        "X-Console-Token": ("x" * LONG,),
        "X-Partita-Secret": ("x" * LONG,),
        "Range": ("bytes=" + "0-," * 5000,),
        "User-Agent": ("(" * LONG,),
        "X-Forwarded-For": ("1," * 7000,),
        "Upgrade": ("h2c", "websocket"),
        "Expect": ("x" * LONG,),
    }.items():
        for value in values:
            yield f"{name}: {value[:20]!r}", ((name, value[:LONG]),)


def queries() -> Iterator[tuple[str, str]]:
    signed = SIGNED_QUERY.format("sts")
    rest = LONG - len(signed) - 100
    for name, part in {
        "names": "a&",
        "pairs": "a=b&",
        "encoded": "%41&",
        "encoded values": "a=%2b&",
        "bytes": "%ff",
        "plus": "+",
        "actions": "Action=x&",
        "signatures": "X-Amz-Signature=0&",
        "algorithms": "X-Amz-Algorithm=x&",
    }.items():
        yield name, part * (rest // len(part)) + signed + "&Action=GetCallerIdentity"
        yield f"{name} alone", part * (rest // len(part))
    yield "credential", signed.replace("AKIA", "%2F" * (rest // 3)) + "&Action=x"
    yield "signed headers", signed.replace("=host", "=" + "a%3B" * (rest // 4)) + "&Action=x"
    yield "token", signed + "&Action=x&X-Amz-Security-Token=" + "A" * rest
    yield "expires", signed.replace("Expires=600", "Expires=" + "9" * rest) + "&Action=x"


# Where everything is sent


def case(name: str, method: str, path: str, body: Body, target: str, **more: str) -> Case:
    coding = more.get("encoding", body.encoding)
    content_type = more.get("content_type", body.content_type)
    sent = {"Content-Type": content_type, "Content-Encoding": coding, "X-Amz-Target": target}
    present = tuple((key, value) for key, value in sent.items() if value)
    return Case(name, method, path, present, body.content, body.chunk_bytes)


def body_cases() -> Iterator[Case]:
    """Yields every body with its own content type, for every path and every target."""
    for name, body in bodies().items():
        target = RECORDS if body.content_type == CBOR else BATCH
        for path in PATHS:
            yield case(f"{name} to {path[:40]}", "POST", path, body, target)
        for other in TARGETS:
            yield case(f"{name} for {other}", "POST", "/", body, other)


def shape_cases() -> Iterator[Case]:
    """Yields every method, path, content type and coding, with some bodies."""
    some = bodies()
    for method, path, content_type in product(METHODS, PATHS, CONTENT_TYPES):
        for name in WORST_PLAIN:
            shown = f"{method} {path[:40]} {content_type[:40]}: {name}"
            yield case(shown, method, path, some[name], RECORDS, content_type=content_type)
    for method, path, coding in product(METHODS, PATHS, ENCODINGS):
        for name in WORST_CODED:
            shown = f"{method} {path[:40]} {coding[:20]}: {name}"
            yield case(shown, method, path, some[name], BATCH, encoding=coding)


def header_cases() -> Iterator[Case]:
    """Yields every header and query, at every path, with and without a body."""
    for path, method in product(PATHS, ("GET", "POST")):
        for name, given in headers():
            names = {key.lower() for key, _ in given}
            usual = tuple(
                (key, value)
                for key, value in (("X-Amz-Target", LIST), ("Content-Type", JSON_1_0))
                if key.lower() not in names
            )
            yield Case(f"{method} {path[:40]} {name}", method, path, (*given, *usual), b"{}")
    plain_paths = sorted({path.partition("?")[0] for path in PATHS})
    for path, method in product(plain_paths, ("GET", "POST")):
        for name, query in queries():
            for content_type in (JSON_1_0, FORM):
                kept = (("Content-Type", content_type),)
                shown = f"{method} {path}?{name} {content_type}"
                yield Case(shown, method, f"{path}?{query}", kept)


KINDS_OF_CASES = (body_cases, shape_cases, header_cases)
