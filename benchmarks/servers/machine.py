"""The circumstances of a run: machine, versions, commit, date."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.servers import peers
from benchmarks.servers.measured_servers import ROOT
from benchmarks.servers.peers import Unavailable
from partita import __version__

LIBRARIES = ("uvloop", "httptools", "orjson", "lmdb", "msgspec")


def describe() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.release()}",
        "load_at_start": os.getloadavg()[0],
        "versions": {
            "partita": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in LIBRARIES},
            **peers.VERSIONS,
            "java": _version(peers.java, "-version"),
            "node": _version(peers.node, "--version"),
        },
    }


def commit() -> str:
    """Reads the commit from git's files, because a benchmark must work without git."""
    git = ROOT / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:12]
        name = head.removeprefix("ref: ")
        if (git / name).exists():
            return (git / name).read_text().strip()[:12]
        packed = (git / "packed-refs").read_text()
    except OSError:
        return "unknown"
    found = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.MULTILINE)
    return found[1][:12] if found else "unknown"


def _processor() -> str:
    try:
        names = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = None
    return names[1] if names else platform.machine()


def _memory_gb() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30))


def _version(find: Any, option: str) -> str:
    try:
        done = subprocess.run([find(), option], capture_output=True, text=True)
    except Unavailable:
        return "not installed"
    found = re.search(r"\d+(\.\d+)*", done.stdout + done.stderr)
    return found[0] if found else "unknown"
