"""A migration folder: `migration.toml`, which people write, and the files that the stages write
beside it.

Every file is written whole and in a stable order, so that two runs can be compared; a stage that
fails leaves the earlier files as they were.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from partita.errors import PartitaError

SETTINGS = "migration.toml"
INVENTORY = "inventory.json"
PLAN = "plan.json"
ANALYSIS = "analysis.json"

SECTIONS = ("source", "goals", "analyze", "expect", "model", "estimate", "create", "test")
"""The sections of `migration.toml`; each stage reads its own with `Folder.section`."""

WRITTEN_BY = {INVENTORY: "plan", PLAN: "plan", ANALYSIS: "analyze"}

Positive = Annotated[float, Meta(gt=0)]

Settings = TypeVar("Settings")
Content = TypeVar("Content")


class SourceSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[source]`: the database to read. Its password is never written here."""

    url: str = ""
    url_env: str | None = None
    password_env: str | None = None
    password_file: str | None = None
    schemas: list[str] = field(default_factory=list)
    """PostgreSQL only; empty for all but the system's schemas."""
    tables: list[str] = field(default_factory=list)
    """Names, or patterns with * and ?; empty for all tables."""
    exclude: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    """Foreign keys that the schema does not declare: "child.column = parent.column"."""
    foreign_keys: bool = False
    """SQLite only: true when the application's sessions run PRAGMA foreign_keys = ON."""
    connect_seconds_max: Positive = 10
    statement_seconds_max: Positive = 30


class Folder:
    """The files of one migration, with the settings as they were when it was opened."""

    def __init__(self, path: Path, sections: dict[str, Any]) -> None:
        self.path = path
        self._sections = sections

    @classmethod
    def open(cls, path: Path | str) -> Folder:
        path = Path(path)
        settings = path / SETTINGS
        if not path.is_dir():
            raise PartitaError(f"{path} is not a folder; a migration is a folder with {SETTINGS}.")
        if not settings.is_file():
            raise PartitaError(
                f"{path} has no {SETTINGS}; write one with [source] and its url, such as"
                ' url = "mysql://user@host/database".'
            )
        folder = cls(path, _read_toml(settings))
        unknown = sorted(folder._sections.keys() - set(SECTIONS))
        if unknown:
            raise PartitaError(
                f"{settings} has an unknown section [{unknown[0]}]; known are "
                + ", ".join(f"[{name}]" for name in SECTIONS)
                + "."
            )
        return folder

    def section(self, name: str, kind: type[Settings]) -> Settings:
        """Returns one section of `migration.toml`; a missing section has its defaults."""
        assert name in SECTIONS
        return _convert(self._sections.get(name, {}), kind, f"{self.path / SETTINGS}, [{name}]")

    @property
    def source(self) -> SourceSettings:
        """The section `[source]`; a password in it is refused."""
        section = self._sections.get("source")
        if isinstance(section, dict) and "password" in section:
            raise PartitaError(
                f"{self.path / SETTINGS}, [source] contains a password; keep it in an environment"
                " variable named by password_env, or in a file named by password_file."
            )
        return self.section("source", SourceSettings)

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def read_json(self, name: str, kind: type[Content]) -> Content:
        path = self._written(name)
        try:
            return msgspec.json.decode(_read_bytes(path), type=kind)
        except msgspec.DecodeError as error:
            raise PartitaError(f"{path} does not have the expected form: {error}.") from error

    def read_toml(self, name: str, kind: type[Content]) -> Content:
        path = self._written(name)
        return _convert(_read_toml(path), kind, str(path))

    def write_json(self, name: str, content: Any) -> Path:
        return self.write_bytes(name, to_json(content))

    def write_toml(self, name: str, content: Any, comment: str = "") -> Path:
        """Writes a TOML file without None values; each line of `comment` goes above it after a
        #."""
        import tomli_w

        above = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
        text = tomli_w.dumps(_without_none(msgspec.to_builtins(content)))
        return self.write_text(name, f"{above}\n{text}" if above else text)

    def write_text(self, name: str, text: str) -> Path:
        return self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> Path:
        """Writes a file whole or not at all: a reader never sees half of it."""
        path = self.path / name
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(content)
            unfinished.replace(path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise PartitaError(f"Cannot write {path}: {error.strerror}.") from error
        return path

    def _written(self, name: str) -> Path:
        path = self.path / name
        if not path.is_file():
            stage = WRITTEN_BY.get(name)
            advice = f"; run `partita migrate {stage}` first" if stage else ""
            raise PartitaError(f"{path} does not exist{advice}.")
        return path


def to_json(content: Any) -> bytes:
    """Encodes as every stage writes and as `--json` prints."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PartitaError(f"Cannot read {path}: {error.strerror}.") from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise PartitaError(f"{path} is not UTF-8 text.") from error
    except tomllib.TOMLDecodeError as error:
        raise PartitaError(f"{path} is not valid TOML: {error}.") from error


def _convert(content: Any, kind: type[Content], where: str) -> Content:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise PartitaError(f"{where} does not have the expected form: {error}.") from error


def _without_none(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_none(value) for name, value in content.items() if value is not None}
    if isinstance(content, list):
        return [_without_none(member) for member in content if member is not None]
    return content
