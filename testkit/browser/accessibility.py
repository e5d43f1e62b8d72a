"""Accessibility checks with axe, of the page that a browser shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testkit.browser.chromium import Browser
from testkit.browser.person import STILL, Person

AXE = Path(__file__).parent / "vendor" / "axe.min.js"


def audit(person: Person, place: str = "html") -> None:
    """Asserts that axe has no serious finding; in dark mode it checks only the colors again."""
    person.browser.prefer("dark")
    assert serious_findings(person.browser, "color-contrast", place=place) == []
    person.browser.prefer("light")
    assert serious_findings(person.browser, place=place) == []


def serious_findings(browser: Browser, *rules: str, place: str = "html") -> list[Any]:
    """Returns axe's findings by these rules, or by all, once all animations have ended."""
    browser.evaluate(STILL)
    if not browser.evaluate("'axe' in window"):
        browser.evaluate(AXE.read_text() + "; 0")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    script = f"""axe.run({json.dumps(place)}, {json.dumps(options)}).then((found) =>
        found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
            .map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))]))"""
    return list(browser.evaluate(script))
