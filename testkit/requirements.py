"""Skips tests whose requirements beyond their own package are missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_services = pytest.mark.skipif(
    find_spec("partita_services") is None, reason="needs the package partita-services"
)
needs_page_hit_counter = pytest.mark.skipif(
    find_spec("page_hit_counter") is None, reason="needs the application page-hit-counter"
)
