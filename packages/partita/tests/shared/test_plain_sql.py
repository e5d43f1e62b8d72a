"""Statements are plain SQL, which poolers and engines with PostgreSQL's protocol can run.

ADR 7 lists what is avoided, and why.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import partita

SOURCE = Path(partita.__file__).parent / "database"
FILES = sorted((*SOURCE.glob("shared/**/*.py"), *SOURCE.glob("storage/postgresql/*.py")))
AVOIDED = re.compile(
    r"""\b(?:UN)?LISTEN\b | \bNOTIFY\b | advisory | txid_ | \bxm(?:in|ax)\b | pg_current_xact
    | pg_snapshot | CREATE\s+TEMP | WITH\s+HOLD | CREATE\s+EXTENSION | CREATE\s+FUNCTION
    | PREPARE\s+TRANSACTION | \bnextval\b | \bLOCK\s+TABLE\b | DEFERRABLE""",
    re.VERBOSE | re.IGNORECASE,
)
SESSION = re.compile(
    r"\bSET\s+(?!LOCAL\b|value\b|version\b)(?:SESSION\b|[a-z_]+\s*(?:=|TO)\s*'[^%])"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_statement_needs_what_poolers_forget_or_others_lack(path: Path) -> None:
    source = path.read_text()
    assert AVOIDED.findall(source) == []
    assert SESSION.findall(source) == []


@pytest.mark.parametrize(
    "statement",
    [
        *("SELECT pg_advisory_lock(1)", "LISTEN changes", "SELECT xmin FROM t", "LOCK TABLE t"),
        "SET statement_timeout = '5s'",
    ],
)
def test_what_is_avoided_would_be_found(statement: str) -> None:
    assert AVOIDED.search(statement) or SESSION.search(statement)
