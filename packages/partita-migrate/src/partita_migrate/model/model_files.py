"""Model files: TOML for people to read, with a block for each table and a line for each attribute.

Models of NoSQL Workbench (JSON) are read too.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from partita.errors import PartitaError
from partita_migrate.model.design import Design
from partita_migrate.model.nosql_workbench import from_workbench
from partita_migrate.workspace.migration_folder import Folder

CHOSEN = "model.toml"
"""The chosen design, which the later stages read."""

BLOCKS = ("tables", "indexes", "entities", "access", "references", "techniques")
"""Lists whose members get a `[[block]]` each. Other lists have a line for each member."""


def file_name(kind: str) -> str:
    """Returns the name of the file with the proposal of one kind."""
    return f"model.{kind}.toml"


def read_design(folder: Folder, name: str = CHOSEN) -> Design:
    if not folder.has(name):
        raise PartitaError(f"{folder.path / name} is not there; run `partita migrate model` first.")
    if name.endswith(".json"):
        return from_workbench((folder.path / name).read_bytes())
    return folder.read_toml(name, Design)


def to_toml(design: Design, comment: str = "") -> str:
    above = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    lines = _block(msgspec.to_builtins(design), "")
    return "\n".join([above, *lines] if above else lines) + "\n"


def _block(content: dict[str, Any], path: str) -> list[str]:
    blocks = {name: value for name, value in content.items() if _is_block(name, value)}
    lines = [
        f"{_key(name)} = {_value(value)}"
        for name, value in content.items()
        if name not in blocks and value is not None
    ]
    # In TOML, plain values must come before the first [[block]]; after it they would belong to the
    # block.
    for name, members in blocks.items():
        inner = f"{path}.{name}" if path else name
        for member in members:
            lines += ["", f"[[{inner}]]", *_block(member, inner)]
    return lines


def _is_block(name: str, value: Any) -> bool:
    return name in BLOCKS and isinstance(value, list)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return _inline(value)
    if isinstance(value, list):
        if not value:
            return "[]"
        # A long list gets one line per member, so that a diff in git shows the member that changed.
        if all(isinstance(member, str) for member in value) and len(str(value)) < 80:
            return f"[{', '.join(map(_scalar, value))}]"
        return "[\n" + "".join(f"    {_value(member)},\n" for member in value) + "]"
    return _scalar(value)


def _inline(content: dict[str, Any]) -> str:
    members = (
        f"{_key(name)} = {_one_line(value)}" for name, value in content.items() if value is not None
    )
    return "{ " + ", ".join(members) + " }"


def _one_line(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_one_line, value))}]"
    return _inline(value) if isinstance(value, dict) else _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        # TOML escapes like JSON, except that it also forbids DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else _scalar(name)
