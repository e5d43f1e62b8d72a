"""The files of an audit log, and reading their lines from the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partita.foundation.service_limits import KB

CURRENT, HEAD, RESERVE = "audit.jsonl", "head", "reserve"
NEXT: Final = "audit.next"
"""The new file that replaces the current one when that is full."""
BLOCK_BYTES: Final = 256 * KB


def rotated(folder: Path) -> list[tuple[int, int, Path]]:
    """Returns the full files, oldest first, with the numbers of their first and last lines."""
    files = []
    for path in folder.glob("audit-*-*.jsonl"):
        parts = path.stem.split("-")
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            files.append((int(parts[1]), int(parts[2]), path))
    return sorted(files)


def all_files(folder: Path) -> list[Path]:
    """Returns the existing files, oldest first."""
    paths = (*(path for _, _, path in rotated(folder)), folder / CURRENT)
    return [path for path in paths if path.exists()]


def lines_from_end(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file without line ends, last first."""
    with path.open("rb") as file:
        end, rest = file.seek(0, 2), b""
        while end > 0:
            begin = max(0, end - BLOCK_BYTES)
            file.seek(begin)
            lines = (file.read(end - begin) + rest).split(b"\n")
            rest = lines[0]
            yield from (line for line in reversed(lines[1:]) if line)
            end = begin
        if rest:
            yield rest
