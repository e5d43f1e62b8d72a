"""Archives with random damage, uploaded to a server. Each one is accepted or refused within bounds
of time and memory, never with a 500, and nothing is written outside of the folder for code. The
long hunt takes PARTITA_FUZZ_SECONDS, beginning with PARTITA_FUZZ_SEED or a random seed, which is in
the name of the function that a failure reports."""

from __future__ import annotations

import io
import os
import random
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from testkit.packaging.function_packages import companion, create
from testkit.servers.processes import ENVIRONMENT, Server, starting

from .test_zips import CASES, CODE, archive

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")
MARKS = (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07")
EXTREMES = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
NAMES = ("app.py", "a/b.py", "../a", "/a", "a\\b", "a//b", "./a", "a\0b", "ü", "n" * 250, "a/", "a")
BYTES_MAX = 64 * 1024 * 1024
"""The memory that the companion may have gained after all archives."""
SECONDS_MAX, SOAK_SECONDS = 10.0, 300.0
Fuzz = Callable[[random.Random, bytes], bytes]


def some_archive(chance: random.Random) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for _ in range(chance.randrange(1, 6)):
            info = zipfile.ZipInfo(chance.choice(NAMES))
            info.external_attr = chance.getrandbits(32) if chance.random() < 0.2 else 0
            method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
            data = chance.choice((CODE.encode(), b"", bytes(100_000), chance.randbytes(50)))
            made.writestr(info, data, method)
    return content.getvalue()


def flip(chance: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randrange(1, 8)):
        changed[chance.randrange(len(changed))] = chance.getrandbits(8)
    return bytes(changed)


def cut(chance: random.Random, content: bytes) -> bytes:
    start, end = sorted(chance.sample(range(len(content) + 1), 2))
    return content[:start] + content[end:]


def repeat(chance: random.Random, content: bytes) -> bytes:
    start, end = sorted(chance.sample(range(len(content) + 1), 2))
    return content[:end] + content[start:]


def change_a_field(chance: random.Random, content: bytes) -> bytes:
    """Changes a field of one of the headers in the archive, to an extreme value."""
    changed = bytearray(content)
    found = content.find(chance.choice(MARKS), chance.randrange(len(content)))
    place = max(found, 0) + 4 + 2 * chance.randrange(21)
    form, value = chance.choice((("<H", 0xFFFF), ("<I", 0xFFFFFFFF)))
    field = struct.pack(form, chance.choice(EXTREMES) & value)
    changed[place : place + len(field)] = field
    return bytes(changed)


def join(chance: random.Random, content: bytes) -> bytes:
    return content + some_archive(chance)


MISTAKES: tuple[Fuzz, ...] = (flip, cut, repeat, change_a_field, change_a_field, join)


def with_mistakes(chance: random.Random) -> bytes:
    content = some_archive(chance) if chance.random() < 0.8 else archive()
    for _ in range(chance.randrange(1, 4)):
        content = chance.choice(MISTAKES)(chance, content) or b"\0"
    return content


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server, and the folder that has all its files."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "tmp").mkdir()
    environment = {**ENVIRONMENT, "TMPDIR": str(folder / "tmp")}
    with starting() as start:
        yield start("serve", "--port", "0", "--in-memory", env=environment, cwd=folder), folder


def memory_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def upload(client: Any, name: str, content: bytes) -> bool:
    """True when the archive was accepted."""
    began = time.monotonic()
    try:
        client.update_function_code(FunctionName=name, ZipFile=content)
        return True
    except ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 400, error
        return False
    finally:
        assert time.monotonic() - began < SECONDS_MAX


def fuzz(own: tuple[Server, Path], seed: int, is_over: Callable[[int], bool]) -> None:
    server, folder = own
    client, name = server.client("lambda"), f"fuzzed-{seed}"
    create(client, name, CODE)
    client.invoke(FunctionName=name)
    for make, _ in CASES.values():
        upload(client, name, make())
    before = memory_bytes(companion(server))
    chance, count, taken = random.Random(seed), 0, 0
    while not is_over(count):
        count += 1
        if upload(client, name, with_mistakes(chance)):
            taken += 1
            answer = client.invoke(FunctionName=name)
            assert answer["StatusCode"] == 200
            assert_inside(folder)
    assert 0 < taken < count, "some of them are harmless"
    assert memory_bytes(companion(server)) - before < BYTES_MAX
    client.update_function_code(FunctionName=name, ZipFile=archive())
    assert client.invoke(FunctionName=name)["Payload"].read() == b'"calm"'


def assert_inside(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"tmp"}
    (code,) = (folder / "tmp").glob("partita-code-*")
    inside = {path.name.partition("-")[0] for path in code.iterdir()}
    assert inside <= {"code", "tmp"}


@pytest.mark.parametrize("seed", [1, 2])
def test_archives_with_mistakes_are_taken_or_refused(own: tuple[Server, Path], seed: int) -> None:
    fuzz(own, seed, lambda count: count >= 150)


@pytest.mark.soak
def test_archives_with_mistakes_for_hours(own: tuple[Server, Path]) -> None:
    seconds = float(os.environ.get("PARTITA_FUZZ_SECONDS") or SOAK_SECONDS)
    seed = int(os.environ.get("PARTITA_FUZZ_SEED") or time.time())
    deadline = time.monotonic() + seconds
    fuzz(own, seed, lambda _: time.monotonic() > deadline)
