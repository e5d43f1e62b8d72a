"""Archives that are not what they seem: they are refused as Lambda refuses them, and quickly."""

from __future__ import annotations

import io
import json
import stat
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from botocore.exceptions import ClientError

from testkit.packaging.function_packages import create
from testkit.servers.processes import Server

CODE = "def handler(event, context): return 'calm'"
DAMAGED = "Could not unzip uploaded file. Please check your file, then try to upload again."
MB = 1024 * 1024


def archive(
    *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as made:
        made.writestr("app.py", CODE)
        for name, data in entries:
            made.writestr(name, data, method)
    return content.getvalue()


def bomb() -> bytes:
    return archive(("zeros", bytes(300 * MB)))


def bombs_that_lie() -> bytes:
    """Archives whose entries are larger than their directory says."""
    made = bytearray(archive(("zeros", bytes(100 * MB))))
    size = struct.pack("<I", 100 * MB)
    assert made.count(size) == 2
    return bytes(made).replace(size, struct.pack("<I", 10))


def overlapping() -> bytes:
    """Many entries with the same content."""
    packer, data = zlib.compressobj(9, zlib.DEFLATED, -15), bytes(MB)
    packed = packer.compress(data) + packer.flush()
    described = struct.pack(
        "<HHHHHIIIHH", 20, 0, 8, 0, 0, zlib.crc32(data), len(packed), len(data), 4, 0
    )
    content = b"PK\x03\x04" + described + b"name" + packed
    rest = struct.pack("<HHHII", 0, 0, 0, 0, 0)
    directory = (b"PK\x01\x02\x14\x00" + described + rest + b"name") * 200
    end = struct.pack("<HHHHIIH", 0, 0, 200, 200, len(directory), len(content), 0)
    return content + directory + b"PK\x05\x06" + end


def many_entries() -> bytes:
    one = struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    count = 230_000
    directory = (b"PK\x01\x02" + one + b"a") * count
    end = struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, len(directory), 0, 0)
    return directory + b"PK\x05\x06" + end


def link() -> bytes:
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return archive((entry, b"/etc/passwd"))


def with_flag(flag: int) -> bytes:
    made = bytearray(archive())
    made[6] |= flag
    made[made.index(b"PK\x01\x02") + 8] |= flag
    return bytes(made)


def with_name(name: bytes) -> bytes:
    """Replaces a harmless name by one of the same length."""
    harmless = "n" * len(name)
    return archive((harmless, b"x")).replace(harmless.encode(), name)


def broken() -> bytes:
    return archive(("a", b"right"), method=zipfile.ZIP_STORED).replace(b"right", b"wrong")


CASES: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", DAMAGED),
    "no archive": (lambda: b"PK" * 100, DAMAGED),
    "an end without a beginning": (lambda: archive()[-22:], DAMAGED),
    "a bomb": (bomb, "Unzipped size must be smaller than 262144000 bytes"),
    "a bomb that lies": (bombs_that_lie, DAMAGED),
    "overlapping entries": (overlapping, DAMAGED),
    "a huge directory": (many_entries, DAMAGED),
    "a way out": (lambda: archive(("../../way-out", b"x")), DAMAGED),
    "a way out inside": (lambda: archive(("a/../../way-out", b"x")), DAMAGED),
    "an absolute path": (lambda: archive(("/tmp/way-out", b"x")), DAMAGED),
    "a link": (link, "symbolic link"),
    "an encrypted entry": (lambda: with_flag(1), DAMAGED),
    "a name with NUL": (lambda: with_name(b"name\0.py"), DAMAGED),
    "a long name": (lambda: archive(("n" * 300, b"x")), DAMAGED),
    "a long path": (lambda: archive(("n/" * 600 + "n", b"x")), DAMAGED),
    "a file that is a folder": (lambda: archive(("a", b"x"), ("a/b", b"x")), DAMAGED),
    "lzma": (lambda: archive(("a", b"x"), method=zipfile.ZIP_LZMA), DAMAGED),
    "bzip2": (lambda: archive(("a", b"x"), method=zipfile.ZIP_BZIP2), DAMAGED),
    "a broken checksum": (broken, DAMAGED),
}


@pytest.mark.parametrize("case", CASES)
def test_an_archive_that_cannot_be_unpacked_is_refused(
    functions: Any, name: str, case: str
) -> None:
    make, words = CASES[case]
    content = make()
    with pytest.raises(ClientError) as caught:
        create(functions, name, "", Code={"ZipFile": content})
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValueException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert words in caught.value.response["Error"]["Message"]
    create(functions, name, CODE)
    with pytest.raises(ClientError) as caught:
        functions.update_function_code(FunctionName=name, ZipFile=content)
    assert words in caught.value.response["Error"]["Message"]
    functions.delete_function(FunctionName=name)


@pytest.mark.parametrize(
    ("entries", "method"),
    [
        ([("inner/", b""), ("inner/other.py", b"VALUE = 1")], zipfile.ZIP_STORED),
        ([("zeros", bytes(200 * MB))], zipfile.ZIP_DEFLATED),
        ([("with\\backslashes.txt", b"x"), ("ünïcode.txt", b"x")], zipfile.ZIP_DEFLATED),
        ([(f"many/{number}", b"") for number in range(20_000)], zipfile.ZIP_STORED),
    ],
    ids=["folders", "200 MB", "names", "20,000 files"],
)
def test_what_can_be_unpacked_is_run(
    functions: Any, name: str, entries: list[Any], method: int
) -> None:
    create(functions, name, "", Code={"ZipFile": archive(*entries, method=method)})
    assert json.load(functions.invoke(FunctionName=name)["Payload"]) == "calm"
    functions.delete_function(FunctionName=name)


def test_code_that_is_no_base64_is_refused(functions: Any, name: str, server: Any) -> None:
    role = "arn:aws:iam::123456789012:role/any"
    for code in ("A", "====", "\\u0000", "x\\ny"):
        body = (
            f'{{"FunctionName":"{name}","Runtime":"python3.12","Handler":"app.handler",'
            f'"Role":"{role}","Code":{{"ZipFile":"{code}"}}}}'
        )
        signature = "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0"
        headers = {"Authorization": signature, "X-Amz-Date": "20260101T000000Z"}
        with (
            pytest.raises(HTTPError) as caught,
            urlopen(Request(f"{server.url}/2015-03-31/functions", body.encode(), headers)),
        ):
            pass
        with caught.value as refused:
            assert refused.code == 400


def test_others_go_on_while_archives_are_read(functions: Any, name: str) -> None:
    create(functions, name, CODE)
    content = archive(("zeros", bytes(240 * MB)))
    uploads = [
        threading.Thread(target=create, args=(functions, f"{name}-{number}", ""),
                         kwargs={"Code": {"ZipFile": content}})
        for number in range(4)
    ]  # fmt: skip
    slowest = 0.0
    functions.invoke(FunctionName=name)
    for upload in uploads:
        upload.start()
    while any(upload.is_alive() for upload in uploads):
        began = time.monotonic()
        assert functions.invoke(FunctionName=name)["StatusCode"] == 200
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 0.5, "each archive takes more than half a second to read"


def test_no_more_code_is_taken_than_an_account_may_have(
    serve: Callable[..., Server], name: str
) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    functions, tables = server.client("lambda"), server.client()
    create(functions, name, CODE)
    key = {"pk": {"S": "functions"}, "sk": {"S": name}}
    item = tables.get_item(TableName="partita-functions", Key=key)["Item"]
    record = json.loads(item["record"]["S"])
    record["configuration"]["CodeSize"] = 80_530_636_800
    item["record"]["S"] = json.dumps(record)
    tables.put_item(TableName="partita-functions", Item=item)
    with pytest.raises(ClientError) as caught:
        create(functions, f"{name}-2", CODE)
    assert caught.value.response["Error"]["Code"] == "CodeStorageExceededException"
