"""Code is unpacked into a folder of the server's own, in memory where data is encrypted, and
removed at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.database.storage.sealing.master_keys import new_printed_key
from partita_services.functions.runtime import code_folder
from partita_services.functions.runtime.code_folder import CodeFolder, CodeFolderUnavailable
from testkit.packaging.function_packages import create, wait_for, zipped
from testkit.servers.processes import ENVIRONMENT, Server

MARK = "neverondisk"
SOURCE = f"""
import tempfile

def handler(event, context):
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("{MARK}")
    return [__file__, file.name]
"""


def places(client: Any, name: str = "shows") -> list[Path]:
    return list(map(Path, json.load(client.invoke(FunctionName=name)["Payload"])))


@pytest.fixture
def start(serve: Callable[..., Server], tmp_path: Path) -> Callable[..., Server]:
    """Servers with a temporary folder of their own, on a disk."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "key").write_text(new_printed_key())
    (tmp_path / "key").chmod(0o600)

    def start(*more: str | Path) -> Server:
        environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path / "tmp")}
        arguments = ("serve", "--port", "0", "--data", tmp_path / "data", *more)
        return serve(*arguments, env=environment)

    return start


def files_with_the_mark(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and MARK.encode() in path.read_bytes():
            yield path


def test_code_of_an_encrypted_server_is_in_memory_only(
    start: Callable[..., Server], tmp_path: Path
) -> None:
    server = start("--encryption-key", f"file:{tmp_path / 'key'}")
    client = server.client("lambda")
    create(client, "shows", SOURCE)
    unpacked = places(client)
    assert MARK in unpacked[0].read_text()
    assert [path.is_relative_to("/dev/shm") for path in unpacked] == [True, True]
    assert not list(files_with_the_mark(tmp_path))
    server.terminate()
    assert [path.exists() for path in unpacked] == [False, False]


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_code_that_a_killed_server_left_behind_is_removed_by_the_next(
    start: Callable[..., Server], tmp_path: Path, *, is_encrypted: bool
) -> None:
    options = ("--encryption-key", f"file:{tmp_path / 'key'}") if is_encrypted else ()
    server = start(*options)
    client = server.client("lambda")
    create(client, "shows", SOURCE)
    unpacked, _ = places(client)
    own = unpacked.parents[3]
    assert own.name.startswith("partita-code-")
    assert own.stat().st_mode & 0o777 == 0o700
    server.kill()
    assert unpacked.exists()
    client = start(*options).client("lambda")
    again, _ = places(client)
    wait_for(own.exists, lambda is_there: not is_there)
    assert again.exists(), "what somebody uses stays"


def test_code_that_nobody_runs_any_more_is_removed(start: Callable[..., Server]) -> None:
    client = start().client("lambda")
    create(client, "shows", SOURCE)
    old, _ = places(client)
    client.update_function_code(FunctionName="shows", ZipFile=zipped(app=f"{SOURCE}\n# new"))
    new, _ = places(client)
    assert new.exists()
    wait_for(old.parent.exists, lambda is_there: not is_there)
    client.delete_function(FunctionName="shows")
    wait_for(new.parent.exists, lambda is_there: not is_there)


def test_without_a_tmpfs_an_encrypted_server_takes_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\n")
    monkeypatch.setattr(code_folder, "MOUNTS", mounts)
    with pytest.raises(CodeFolderUnavailable, match="no tmpfs"):
        _ = CodeFolder(is_in_memory=True).path
