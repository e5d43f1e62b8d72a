"""Shared by the tests of several packages: processes, servers, browsers, data and wheels."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The folder of the Makefile, docs, examples and scripts."""
