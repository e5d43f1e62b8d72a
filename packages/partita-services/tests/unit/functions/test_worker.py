"""The process of a function whose companion is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from partita_services.functions.runtime import function_supervisor
from partita_services.functions.runtime.function_worker import LOADED, STARTED


def test_a_process_whose_caller_is_gone_ends_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def echo(event, context): return event")
    with subprocess.Popen(
        [sys.executable, "-P", function_supervisor.__file__],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        start = {"parent": os.getpid(), "handler": "shop:echo", "variables": {}}
        start |= {"memory_mb": None, "storage_mb": None, "scratch": None}
        process.stdin.write(json.dumps(start).encode() + b"\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == [STARTED, LOADED]
        process.stdout.close()
        call = {"request_id": "1", "seconds": 1, "event": {}, "function": "echo", "arn": "arn"}
        call |= {"version": "$LATEST", "memory_mb": 128}
        process.stdin.write(json.dumps(call).encode() + b"\n")
        process.stdin.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(timeout=60) == 0
