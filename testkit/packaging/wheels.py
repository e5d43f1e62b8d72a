"""Copies of the source tree, and wheels, unpacked or installed outside of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from testkit import ROOT

PLAIN, COMPILED = "plain", "compiled"


def copied(folder: Path, is_wanted: Callable[[str], bool] = lambda name: True) -> Path:
    """Copies the files that git tracks or would add, including uncommitted edits."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this tree is not a clone")
    for name in listed.stdout.splitlines():
        if is_wanted(name) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def build(folder: Path, form: str = PLAIN, package: str = "packages/partita") -> Path:
    """Builds the wheel of a package like `make wheel`, and returns its path."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    built = set(folder.glob("*.whl"))
    subprocess.run(
        [*command, "--directory", str(folder)],
        cwd=ROOT / package,
        env={**os.environ, "PARTITA_WHEEL": form},
        capture_output=True,
        check=True,
    )
    (wheel,) = set(folder.glob("*.whl")) - built
    return wheel


def unpacked(wheel: Path) -> Path:
    """Unpacks a wheel without its dependencies; the folder can be put on PYTHONPATH."""
    folder = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def installed(folder: Path, *wheels: Path | str) -> Path:
    """Installs wheels in a new virtual environment and returns the path of its `partita`."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # Hashes are left out: with them, pip would require hashes for the local wheels too.
    pins = re.findall(r"^\S+==\S+", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    versions = folder / "versions.txt"
    versions.write_text("\n".join(pins))
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "install", "--constraint", versions, *wheels],
        capture_output=True,
        check=True,
    )
    return folder / "bin/partita"


def outside() -> dict[str, str]:
    """Returns the environment without variables that point to this source tree or to make."""
    inside = ("PYTHONPATH", "PARTITA_PURE", "VIRTUAL_ENV", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    return {name: value for name, value in os.environ.items() if name not in inside}
