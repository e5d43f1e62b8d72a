"""Fetches the peers into `.peers/`, each with the tool of its own registry.

Versions are pinned, so that two runs compare the same things. If a peer cannot be fetched,
`Unavailable` is raised with the reason, and the benchmark goes on without it.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.dynamodb_local import PACKAGE as DYNAMODB_LOCAL_PACKAGE
from scripts.dynamodb_local import PEERS, Unavailable, finish, java
from scripts.dynamodb_local import fetch as dynamodb_local

__all__ = ["PEERS", "Unavailable", "dynalite", "dynamodb_local", "dynoxide", "java", "moto", "node"]

DYNOXIDE_VERSION = "1.2.1"
DYNALITE_VERSION = "4.0.0"
MOTO_VERSION = "5.2.5"
FETCH_SECONDS_MAX = 600

VERSIONS = {
    "dynamodb-local": DYNAMODB_LOCAL_PACKAGE,
    "dynoxide": DYNOXIDE_VERSION,
    "dynalite": DYNALITE_VERSION,
    "moto": MOTO_VERSION,
}
ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def dynoxide() -> Path:
    """Returns the program of Dynoxide."""
    architecture = ARCHITECTURES.get(platform.machine().lower(), platform.machine())
    package = f"@dynoxide/{sys.platform}-{architecture}"

    def unpack(folder: Path) -> None:
        _run([node("npm"), "pack", f"{package}@{DYNOXIDE_VERSION}"], folder)
        archive = next(folder.glob("*.tgz"))
        with tarfile.open(archive) as files:
            # Python before 3.11.4 has no extraction filters.
            files.extraction_filter = getattr(tarfile, "data_filter", None)
            files.extractall(folder)
        archive.unlink()

    program = _fetched(f"dynoxide-{DYNOXIDE_VERSION}", unpack) / "package" / "dynoxide"
    program.chmod(0o755)
    return program


def dynalite() -> Path:
    """Returns the script of dynalite, for node."""

    def install(folder: Path) -> None:
        package = f"dynalite@{DYNALITE_VERSION}"
        _run([node("npm"), "install", "--no-audit", "--no-fund", "--prefix", ".", package], folder)

    folder = _fetched(f"dynalite-{DYNALITE_VERSION}", install)
    return folder / "node_modules" / "dynalite" / "cli.js"


def moto() -> Path:
    """Returns the program of moto's server, in its own virtual environment."""
    folder = PEERS / f"moto-{MOTO_VERSION}"
    program = folder / "bin" / "moto_server"
    if not program.exists():
        # Created in place: a virtual environment cannot be moved. pip writes the program last.
        _ignored_folder()
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], PEERS)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _run([*pip, "--disable-pip-version-check", f"moto[server]=={MOTO_VERSION}"], PEERS)
    return program


def node(program: str = "node") -> str:
    found = shutil.which(program)
    if found is None:
        raise Unavailable(f"{program} is not installed")
    return found


def _fetched(name: str, fill: Callable[[Path], None]) -> Path:
    """Returns the folder of that name, and fills it first if it does not exist."""
    target = PEERS / name
    if not target.exists():
        _ignored_folder()
        with tempfile.TemporaryDirectory(dir=PEERS) as folder:
            unfinished = Path(folder) / name
            unfinished.mkdir()
            fill(unfinished)
            finish(unfinished, target)
    return target


def _ignored_folder() -> None:
    PEERS.mkdir(exist_ok=True)
    (PEERS / ".gitignore").write_text("*\n")


def _run(command: list[str], folder: Path) -> None:
    shown = " ".join([Path(command[0]).name, *command[1:]])
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`{shown}` took too long") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise Unavailable(f"`{shown}` failed and said: {said[-1]}")
