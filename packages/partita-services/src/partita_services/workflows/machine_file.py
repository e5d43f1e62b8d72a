"""Machines in files: States Language in JSON, with comments."""

from __future__ import annotations

import re
from pathlib import Path

from partita.errors import PartitaError
from partita_services.workflows.language import (
    InvalidDefinition,
    StateMachine,
    parse,
    strip_comments,
)
from partita_services.workflows.running.tasks.integrations import ServerAbilities, check_resources

_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def read(path: Path) -> str:
    """The definition in a file, without its comments."""
    try:
        return strip_comments(path.read_text())
    except OSError as error:
        raise PartitaError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PartitaError(f"{path} is not UTF-8 text.") from error


def machine(path: Path, type: str) -> StateMachine:
    """The machine in a file. Raises InvalidDefinition."""
    parsed = parse(read(path))
    check_resources(parsed, type, ServerAbilities())
    return parsed


def name(path: Path) -> str:
    """The name of the machine in a file, which is that of the file."""
    return _NAME.sub("-", path.name.partition(".")[0])[:80] or "machine"


def findings(error: InvalidDefinition) -> list[str]:
    return [f"{diagnostic.severity.lower()}: {diagnostic}" for diagnostic in error.diagnostics]
