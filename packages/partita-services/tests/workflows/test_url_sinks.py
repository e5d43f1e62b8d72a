"""Messages of workflows for a topic whose sink is a URL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from testkit.servers import processes

from .conftest import finished, states_client

TOPIC = "arn:aws:sns:us-east-1:123456789012:"
received: list[tuple[str, dict[str, Any]]] = []


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        received.append((self.path, json.loads(content)))
        self.send_response(500 if self.path == "/broken" else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=receiver.serve_forever, daemon=True).start()
    folder: Path = tmp_path_factory.mktemp("sinks")
    sinks = [
        f'[[sinks]]\narn = "{TOPIC}{name}"\nurl = "http://127.0.0.1:{receiver.server_port}/{name}"\n'
        for name in ("news", "broken")
    ]
    (folder / "partita.toml").write_text("\n".join(sinks))
    with processes.starting() as start:
        config = folder / "partita.toml"
        server = start("serve", "--port", "0", "--in-memory", "--config", config)
        yield states_client(server.url)
    receiver.shutdown()
    receiver.server_close()


def publish(states: Any, topic: str) -> dict[str, Any]:
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Parameters": {"TopicArn": f"{TOPIC}{topic}", "Message.$": "$.text"},
        "End": True,
    }
    machine = states.create_state_machine(
        name=topic,
        definition=json.dumps({"StartAt": "Publish", "States": {"Publish": task}}),
        roleArn="arn:aws:iam::123456789012:role/any",
    )
    started = states.start_execution(
        stateMachineArn=machine["stateMachineArn"], input=json.dumps({"text": "hello"})
    )
    found: dict[str, Any] = finished(states, started["executionArn"])
    return found


def test_a_message_is_posted_to_the_url(states: Any) -> None:
    execution = publish(states, "news")
    assert execution["status"] == "SUCCEEDED", execution
    path, message = received[-1]
    assert path == "/news"
    assert message["TopicArn"] == f"{TOPIC}news" and message["Message"] == "hello"
    assert json.loads(execution["output"])["MessageId"] == message["MessageId"]


def test_a_url_that_fails_fails_the_task(states: Any) -> None:
    execution = publish(states, "broken")
    assert execution["status"] == "FAILED"
    assert "500" in execution["cause"]
