"""One server with functions of its settings, sinks, and boto3's clients for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from testkit.servers import processes

MODULE = """
def handler(event, context):
    return {"got": event, "name": context.function_name}
"""

SETTINGS = """
[[functions]]
name = "of-settings"
handler = "beside:handler"

[[sinks]]
arn = "arn:aws:sqs:us-east-1:123456789012:dead-letters"
file = "dead-letters"

[[sinks]]
arn = "arn:aws:sns:us-east-1:123456789012:news"
file = "news"

[[sinks]]
arn = "arn:aws:events:us-east-1:123456789012:event-bus/default"
file = "bus"
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "beside.py").write_text(MODULE)
    (folder / "partita.toml").write_text(SETTINGS)
    return folder


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[processes.Server]:
    with processes.starting() as start:
        yield start(
            *("serve", "--port", "0", "--in-memory", "--time-scale", "60"),
            *("--config", folder / "partita.toml"),
        )


@pytest.fixture(scope="session")
def functions(server: processes.Server) -> Any:
    return server.client("lambda")


@pytest.fixture
def name() -> str:
    return f"f-{uuid4().hex[:12]}"


@pytest.fixture
def serve() -> Iterator[Callable[..., processes.Server]]:
    with processes.starting() as start:
        yield start
