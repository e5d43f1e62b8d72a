"""Debian's Chromium, controlled over a pipe with the DevTools protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium-headless-shell", "chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

ANSWER_SECONDS_MAX = 120.0
"""A browser that has not responded for this long is stuck."""


def program() -> str | None:
    return next((name for name in PROGRAMS if shutil.which(name)), None)


class Browser:
    """A browser with one tab. Errors and warnings of the page are in `complaints`."""

    def __init__(self, profile: Path) -> None:
        found = program()
        assert found is not None
        # Chromium reads from descriptor 3 and writes to descriptor 4.
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, found, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._received = b""
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self.held: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = self._send(method, parameters)
        for answer in self._messages():
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])
        raise AssertionError("the browser has gone")

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        return self._number

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            while b"\0" in self._received:
                text, _, self._received = self._received.partition(b"\0")
                message = json.loads(text)
                self._note(message)
                yield message
            readable, _, _ = select.select([self._in], [], [], ANSWER_SECONDS_MAX)
            assert readable, f"the browser is silent; it has complained of {self.complaints}"
            chunk = os.read(self._in, 1 << 16)
            if not chunk:
                return
            self._received += chunk

    def _note(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(parameters["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(str(parameters["entry"]["text"]))
        elif method == "Page.javascriptDialogOpening" and parameters["type"] == "beforeunload":
            # A test that leaves a page does not care about unsaved input.
            self._send("Page.handleJavaScriptDialog", {"accept": True})
        elif method == "Page.javascriptDialogOpening":
            # While a dialog of the browser is open, the page responds to nothing else.
            self.complaints.append(f"dialog: {parameters['message']}")
            self._send("Page.handleJavaScriptDialog", {"accept": False})
        elif method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Fetch.requestPaused":
            self.held.append(parameters["requestId"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(self, page: Path | str, *, width: int = 1280, height: int = 900) -> None:
        self.resize(width, height)
        self._loaded = False
        self.call("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        messages = self._messages()
        while not self._loaded:
            next(messages)

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Sets the preferred color scheme: light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, script: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @contextmanager
    def holding(self, pattern: str) -> Iterator[None]:
        """Holds requests to matching URLs until `let_go`, or until the end of the block."""
        self.held.clear()
        self.call("Fetch.enable", patterns=[{"urlPattern": pattern}])
        try:
            yield
        finally:
            self.call("Fetch.disable")

    def let_go(self) -> None:
        """Releases the oldest held request; it does not matter if the page has aborted it."""
        self._send("Fetch.continueRequest", {"requestId": self.held.pop(0)})

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    browser = Browser(profile)
    try:
        yield browser
    finally:
        browser.close()
