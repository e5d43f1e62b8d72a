"""Packages with code for functions under test, and helpers that wait for their effects."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from testkit.servers.processes import Server

ROLE = "arn:aws:iam::123456789012:role/any"
SECONDS_MAX = 60

Seen = TypeVar("Seen")


def zipped(**modules: str) -> bytes:
    """Returns a ZIP file with these modules."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, source in modules.items():
            archive.writestr(f"{name}.py", source)
    return content.getvalue()


def create(client: Any, name: str, source: str, **more: Any) -> Any:
    asked = {
        "FunctionName": name,
        "Runtime": "python3.12",
        "Handler": "app.handler",
        "Role": ROLE,
        "Timeout": 30,
        "Code": {"ZipFile": zipped(app=source)},
    }
    return client.create_function(**{**asked, **more})


def wait_for(
    look: Callable[[], Seen],
    is_right: Callable[[Seen], bool] = bool,
    seconds: float = SECONDS_MAX,
) -> Seen:
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if is_right(seen):
            return seen
        assert time.monotonic() < deadline, f"still {seen!r:.500}"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def companion(server: Server) -> int:
    """Returns the id of the process that runs functions."""
    for child in children(server.process.pid):
        if b"partita_services.functions" in Path(f"/proc/{child}/cmdline").read_bytes():
            return child
    raise LookupError("no function has run")
