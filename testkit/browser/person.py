"""A person at the console: reads what is visible, and uses the mouse and the keyboard."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partita.server.security.identities.user_directory import AccessKey
from testkit.browser.chromium import Browser

SECONDS_MAX = 60.0
KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    "ArrowDown": (40, ""),
    "ArrowUp": (38, ""),
    "Space": (32, " "),
}
CONTROL = 2
SHIFT = 8
FIND = """
(kind, name) => {
  const isSeen = (e) => e.getClientRects().length > 0;
  const over = [...document.querySelectorAll("[role=dialog]")].pop() || document;
  const named = (e) => (e.getAttribute("aria-label") ||
    (e.labels && e.labels[0] && (e.labels[0].querySelector("span")?.innerText ||
      e.labels[0].innerText)) || e.innerText || "").trim();
  const all = [...document.querySelectorAll(".toasts button"), ...over.querySelectorAll(kind)];
  const found = all.filter((e) => isSeen(e) && named(e) === name)[0];
  if (!found) return null;
  found.scrollIntoView({ block: "center" });
  const box = found.getBoundingClientRect();
  window.found = found;
  return [box.x + box.width / 2, box.y + box.height / 2];
}
"""
STILL = "Promise.allSettled(document.getAnimations().map((one) => one.finished)).then(() => 0)"
"""Resolves when all animations have ended, so that a clicked element stays where it is."""
FIELDS = "input, textarea, select"
BUTTONS = "button, a, summary, [role=tab]"


def wait_for(condition: Callable[[], Any], what: str | Callable[[], str] = "") -> Any:
    """Waits for a condition; `what` describes it, or returns the actual state for the error."""
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := condition()):
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"not seen in {SECONDS_MAX} s: {told}")
        time.sleep(0.02)
    return found


class Person:
    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url

    def open(self, place: str = "", **size: int) -> None:
        self.browser.open("about:blank")
        self.browser.open(f"{self.url}/console{place}", **size)

    def text(self, selector: str = "body") -> str:
        found = f"document.querySelector({json.dumps(selector)})"
        return str(self.browser.evaluate(f"{found}?.innerText ?? ''"))

    def sees(self, text: str, where: str = "body") -> None:
        wait_for(
            lambda: text in self.text(where), lambda: f"{text!r} in {self.text(where)[:600]!r}"
        )

    def no_longer_sees(self, text: str, where: str = "body") -> None:
        wait_for(lambda: text not in self.text(where), f"{text!r} is still there")

    def cells(self, selector: str = "#items") -> list[list[str]]:
        rows = f"document.querySelectorAll({json.dumps(selector + ' tbody tr')})"
        script = f"[...{rows}].map((r) => [...r.cells].map((c) => c.innerText.trim()))"
        return list(self.browser.evaluate(script))

    def _place(self, kind: str, name: str) -> list[float]:
        script = f"({FIND})({json.dumps(kind)}, {json.dumps(name)})"
        return list(wait_for(lambda: self.browser.evaluate(script), f"{kind} {name!r}"))

    def clicks(self, name: str, kind: str = BUTTONS) -> None:
        enabled = "!window.found.disabled"
        self._place(kind, name)
        self.browser.evaluate(STILL)
        x, y = self._place(kind, name)
        wait_for(lambda: self.browser.evaluate(enabled), f"{name} is disabled")
        for action in ("mousePressed", "mouseReleased"):
            self.browser.call(
                "Input.dispatchMouseEvent", type=action, x=x, y=y, button="left", clickCount=1
            )

    def can(self, name: str) -> bool:
        """True when there is an enabled button of that name."""
        self._place(BUTTONS, name)
        return bool(self.browser.evaluate("!window.found.disabled"))

    def fills(self, name: str, text: str) -> None:
        self._place(FIELDS, name)
        self.browser.evaluate("window.found.focus(); window.found.select()")
        if text:
            self.browser.call("Input.insertText", text=text)
        else:
            self.presses("Delete", 46)

    def chooses(self, name: str, value: str) -> None:
        self._place(FIELDS, name)
        self.browser.evaluate(
            f"window.found.value = {json.dumps(value)};"
            "window.found.dispatchEvent(new Event('change', { bubbles: true }))"
        )

    def value(self, name: str) -> str:
        self._place(FIELDS, name)
        return str(self.browser.evaluate("window.found.value"))

    def types(self, text: str) -> None:
        self.browser.call("Input.insertText", text=text)

    def presses(self, key: str, code: int = 0, modifiers: int = 0) -> None:
        number, text = KEYS[key] if key in KEYS else (code or ord(key.upper()), "")
        name = " " if key == "Space" else key
        common = {"key": name, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        pressed = {**common, "text": text} if text else common
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", **pressed)
        self.browser.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def focus(self) -> str:
        return str(
            self.browser.evaluate(
                "document.activeElement.getAttribute('aria-label') || "
                "document.activeElement.innerText || document.activeElement.name || ''"
            )
        )

    def photographs(self, path: Path) -> None:
        self.browser.evaluate("scrollTo(0, 0)")
        self.browser.evaluate(STILL)
        shot = self.browser.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


def signs_in(person: Person, key: AccessKey) -> None:
    person.fills("Access key", key.id)
    person.fills("Secret", key.secret)
    person.clicks("Sign in", "button")
    wait_for(
        lambda: not person.browser.evaluate("!!document.querySelector('.sign-in')"), "signed in"
    )
