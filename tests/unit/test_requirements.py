"""Everything that Partita needs is pinned, once, where the command that needs it installs it."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path.name for path in ROOT.glob("requirements*.txt"))
LOCKED = re.compile(r"[\w.-]+==[\w.]+(?: ; [^-]+?)? +(?: *--hash=sha256:[0-9a-f]{64})+ *")
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
# Served on the database's own port, or shown in the README's first example.
SERVED = ("workflows", "monitor", "testing")


def _name(requirement: str) -> str:
    """As package indexes write it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower())


def _pins(*files: str) -> dict[str, set[str]]:
    pins = defaultdict(set)
    for file in files:
        for name, version in PIN.findall((ROOT / file).read_text()):
            pins[_name(name)].add(version)
    return pins


def _project() -> tuple[list[str], dict[str, list[str]], list[str]]:
    """What Partita needs, what its extras do, and what work on it does."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = tables["project"]
    groups = [one for group in tables["dependency-groups"].values() for one in group]
    tools = [one for one in groups if isinstance(one, str)]
    return project["dependencies"], project["optional-dependencies"], tools


def test_what_serving_needs_is_what_make_run_installs() -> None:
    needed, extras, _ = _project()
    for extra in SERVED:
        needed = needed + extras[extra]
    assert {_name(requirement) for requirement in needed} <= set(_pins("requirements.txt"))


def test_what_the_rest_needs_is_what_make_install_installs() -> None:
    _, extras, tools = _project()
    needed = [requirement for extra in extras.values() for requirement in extra]
    assert {_name(requirement) for requirement in needed + tools} <= set(
        _pins("requirements-dev.txt")
    )


def test_one_package_has_one_version() -> None:
    assert len(FILES) == 4
    assert {name: found for name, found in _pins(*FILES).items() if len(found) > 1} == {}


@pytest.mark.parametrize("file", FILES)
def test_every_pin_has_the_hashes_of_its_files(file: str) -> None:
    """Without them, pip takes whatever an index has under that name."""
    joined = (ROOT / file).read_text().replace("\\\n", "").splitlines()
    lines = [line for line in joined if not line.lstrip().startswith("#")]
    assert [line for line in lines if not LOCKED.fullmatch(line)] == []
    assert len(lines) == len(_pins(file)) > 0


def test_the_light_install_has_no_tools_of_tests_and_checks() -> None:
    tools = {"awscli", "mypy", "pytest", "ruff", "setuptools"}
    assert tools.isdisjoint(_pins("requirements.txt"))
