"""The style sheet that the pages of all packages share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

SHEET = Path(__file__).with_name("stylesheet.css")


@cache
def read_stylesheet() -> str:
    return SHEET.read_text()
