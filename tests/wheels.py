"""Partita's wheels: built, and unpacked or installed away from this tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLAIN, COMPILED = "plain", "compiled"


def build(folder: Path, form: str = PLAIN) -> Path:
    """The wheel, as `make wheel` builds it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run(
        [*command, "--directory", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PARTITA_WHEEL": form},
        capture_output=True,
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpacked(wheel: Path) -> Path:
    """A folder that PYTHONPATH can name, without what Partita needs."""
    folder = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def installed(wheel: Path, folder: Path) -> Path:
    """The `partita` of a new virtual environment that holds this wheel and what it needs."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    versions = ROOT / "requirements.txt"
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "install", "--constraint", versions, wheel],
        capture_output=True,
        check=True,
    )
    return folder / "bin/partita"


def outside() -> dict[str, str]:
    """The environment, without what leads to the source of this tree."""
    inside = ("PYTHONPATH", "PARTITA_PURE", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in inside}
