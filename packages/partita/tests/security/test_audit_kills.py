"""A kill at any moment, a disk that takes no more files, rubbish: the audit log goes on, and only
what somebody has done to it looks like that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from partita.server.security.audit.audit_log import AuditLog, verify
from partita.server.security.audit.audit_reading import latest
from testkit.servers.processes import ENVIRONMENT

KILLED_EVERYWHERE = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from partita.server.security.audit.audit_log import AuditLog, verify

CALLS = ("open", "write", "pwrite", "fsync", "rename", "close", "ftruncate", "unlink", "mkdir")

def serve(folder, count):
    log = AuditLog(folder, file_bytes_max=400, files_max=2)
    for number in range(count):
        log.append({"eventName": "x" * 60})
    log.close()

def killed_at(stop_at, folder):
    calls = itertools.count(1)
    def counted(real):
        def call(*arguments, **more):
            if next(calls) == stop_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **more)
        return call
    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    serve(folder, 12)
    os._exit(0)

for before in (0, 30):
    for stop_at in itertools.count(1):
        folder = Path(sys.argv[1]) / f"{before}-{stop_at}"
        if before:
            serve(folder, before)
        child = os.fork()
        if not child:
            killed_at(stop_at, folder)
        status = os.waitpid(child, 0)[1]
        found = [one for one in verify(folder) if "has no audit log" not in one]
        log = AuditLog(folder, 400, 2)
        found += log.damages
        log.append({"eventName": "next"})
        log.close()
        found += verify(folder)
        assert not found, (before, stop_at, found)
        shutil.rmtree(folder)
        if not status:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
    print(stop_at - 1)
"""


def test_a_kill_at_any_step_looks_like_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED_EVERYWHERE, tmp_path],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert min(map(int, done.stdout.split())) > 50


def test_a_log_that_cannot_be_rotated_goes_on(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, file_bytes_max=400, files_max=2)
    # Where the next file would be.
    (tmp_path / "audit.next").mkdir()
    for _ in range(12):
        log.append({"eventName": "x" * 60})
    assert [path.name for path in tmp_path.glob("audit*.jsonl")] == ["audit.jsonl"]
    (tmp_path / "audit.next").rmdir()
    for _ in range(12):
        log.append({"eventName": "x" * 60})
    log.close()
    assert len(list(tmp_path.glob("audit-*.jsonl"))) == 2
    assert list(verify(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("audit.jsonl", b"[" * 100_000 + b"\n"),
        ("audit.jsonl", b'{"sequence":Infinity,"previousDigest":"x"}\n'),
        ("audit.jsonl", b'{"sequence":%b,"previousDigest":"x"}\n' % (b"9" * 4000)),
        ("head", b'["a","b","c",false]'),
        ("head", b'[1,null,"c",false]'),
        ("head", b'{"first":1,"last":2,"digest":3}'),
        ("head", b"[" * 100_000),
        ("head", bytes(256)),
    ],
)
def test_rubbish_is_told_and_stops_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    log = AuditLog(tmp_path)
    log.append({"eventName": "first"})
    log.close()
    (tmp_path / name).write_bytes(content)
    assert list(verify(tmp_path))
    assert latest(tmp_path, 10).before is None
    log = AuditLog(tmp_path)
    assert log.damages and log.position.last == 1
    log.append({"eventName": "second"})
    log.close()
