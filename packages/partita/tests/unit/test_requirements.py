"""Every dependency is pinned once, in the file that the command which needs it installs."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import partita
from testkit import ROOT

FILES = sorted(path.name for path in ROOT.glob("requirements*.txt"))
LOCKED = re.compile(r"[\w.-]+==[\w.]+(?: ; [^-]+?)? +(?: *--hash=sha256:[0-9a-f]{64})+ *")
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
PACKAGES = sorted(ROOT.glob("packages/*/pyproject.toml")) + sorted(
    ROOT.glob("apps/*/pyproject.toml")
)
SERVED = ("partita", "partita-services")
# What the README's first example and `partita top` need.
EXTRAS = ("monitor", "testing")


def _name(requirement: str) -> str:
    """Returns the name in the normalized form of package indexes."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower())


def _pins(*files: str) -> dict[str, set[str]]:
    pins = defaultdict(set)
    for file in files:
        for name, version in PIN.findall((ROOT / file).read_text()):
            pins[_name(name)].add(version)
    return pins


def _project(path: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(path.read_text())["project"]
    return project


def _foreign(requirements: list[str]) -> set[str]:
    """Returns the requirements that are not packages of this repository."""
    names = {_name(requirement) for requirement in requirements}
    return {name for name in names if not re.match(r"partita\b", name)}


def test_what_serving_needs_is_what_make_run_installs() -> None:
    needed: list[str] = []
    for project in map(_project, PACKAGES):
        if project["name"] in SERVED:
            extras = project.get("optional-dependencies", {})
            needed += [
                *project["dependencies"],
                *(one for name in EXTRAS for one in extras.get(name, [])),
            ]
    assert _foreign(needed) <= set(_pins("requirements.txt"))


def test_what_the_rest_needs_is_what_make_install_installs() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    needed = [one for group in groups.values() for one in group if isinstance(one, str)]
    for project in map(_project, PACKAGES):
        extras = project.get("optional-dependencies", {})
        needed += [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    assert _foreign(needed) <= set(_pins("requirements-dev.txt"))


def test_all_packages_have_one_version_and_need_it_of_each_other() -> None:
    own = [
        one
        for project in map(_project, PACKAGES)
        for one in project["dependencies"]
        if one.startswith("partita")
    ]
    assert len(PACKAGES) == 5 and len(own) == 8
    assert {one.partition("==")[2] for one in own} == {partita.__version__}


def test_one_package_has_one_version() -> None:
    assert len(FILES) == 4
    assert {name: found for name, found in _pins(*FILES).items() if len(found) > 1} == {}


@pytest.mark.parametrize("file", FILES)
def test_every_pin_has_the_hashes_of_its_files(file: str) -> None:
    """Without hashes, pip installs whatever an index has under that name."""
    joined = (ROOT / file).read_text().replace("\\\n", "").splitlines()
    lines = [line for line in joined if not line.lstrip().startswith("#")]
    assert [line for line in lines if not LOCKED.fullmatch(line)] == []
    assert len(lines) == len(_pins(file)) > 0


def test_the_light_install_has_no_tools_of_tests_and_checks() -> None:
    tools = {"awscli", "mypy", "pytest", "ruff", "setuptools"}
    assert tools.isdisjoint(_pins("requirements.txt"))
