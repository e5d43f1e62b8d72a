"""Everything that Partita needs is pinned, once, where the command that needs it installs it."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
# Served on the database's own port, or shown in the README's first example.
SERVED = ("workflows", "monitor", "testing")


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _pins(*files: str) -> dict[str, set[str]]:
    pins = defaultdict(set)
    for file in files:
        for name, version in PIN.findall((ROOT / file).read_text()):
            pins[_name(name)].add(version)
    return pins


def _project() -> tuple[list[str], dict[str, list[str]]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project["dependencies"], project["optional-dependencies"]


def test_what_serving_needs_is_what_make_run_installs() -> None:
    needed, extras = _project()
    for extra in SERVED:
        needed = needed + extras[extra]
    assert {_name(requirement) for requirement in needed} <= set(_pins("requirements.txt"))


def test_what_the_rest_needs_is_what_make_install_installs() -> None:
    files = [path.name for path in ROOT.glob("requirements*.txt")]
    needed = [requirement for extra in _project()[1].values() for requirement in extra]
    assert {_name(requirement) for requirement in needed} <= set(_pins(*files))


def test_one_package_has_one_version() -> None:
    files = [path.name for path in ROOT.glob("requirements*.txt")]
    assert len(files) == 4
    assert {name: found for name, found in _pins(*files).items() if len(found) > 1} == {}


def test_the_light_install_has_no_tools_of_tests_and_checks() -> None:
    tools = {"awscli", "mypy", "pytest", "ruff", "setuptools"}
    assert tools.isdisjoint(_pins("requirements.txt"))
