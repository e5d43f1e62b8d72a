"""The driver wrk, with one thread, and a Lua script that Python writes for each operation."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import orjson

from benchmarks.drivers.load import Load, Measurement
from benchmarks.drivers.single_request import HOST, headers

NAME = "wrk"
INSTALL_SECONDS_MAX = 300
WRK_EXTRA_SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 30

# Requests are formatted before the clock starts; `request` only hands out the next one.
SCRIPT = """\
local requests = {}
local at = 0

function init(arguments)
  local headers = {
%(headers)s
  }
  for body in io.lines(%(bodies)s) do
    requests[#requests + 1] = wrk.format("POST", "/", headers, body)
  end
end

function request()
  at = at %% #requests + 1
  return requests[at]
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%%d,"seconds":%%f,"p50_us":%%f,"p99_us":%%f,"refused":%%d,"broken":%%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
"""


def find() -> str | None:
    """Returns the path of wrk; as root with apt-get, installs it first if necessary."""
    if shutil.which("wrk") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _apt_get("update")
        _apt_get("install", "--yes", "--no-install-recommends", "wrk")
    return shutil.which("wrk")


def _apt_get(*arguments: str) -> None:
    subprocess.run(
        ["apt-get", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )


class Wrk:
    name = NAME

    def __init__(self, path: str, folder: Path) -> None:
        self._path = path
        self._folder = folder

    def drive(self, port: int, load: Load, connections: int, seconds: int) -> Measurement:
        script = self._write_script(load)
        said = subprocess.run(
            [
                self._path,
                "--threads=1",
                f"--connections={connections}",
                f"--duration={seconds}s",
                f"--timeout={ANSWER_SECONDS_MAX}s",
                f"--script={script}",
                f"http://{HOST}:{port}/",
            ],
            capture_output=True,
            text=True,
            timeout=seconds + WRK_EXTRA_SECONDS_MAX,
            check=True,
        ).stdout
        result = orjson.loads(said.strip().splitlines()[-1])
        return Measurement(
            requests=result["requests"],
            requests_per_second=result["requests"] / result["seconds"],
            p50_ms=result["p50_us"] / 1000,
            p99_ms=result["p99_us"] / 1000,
            refused=result["refused"],
            broken=result["broken"],
        )

    def _write_script(self, load: Load) -> Path:
        bodies = self._folder / f"{load.name}.jsonl"
        bodies.write_bytes(b"\n".join(load.bodies) + b"\n")
        script = self._folder / f"{load.name}.lua"
        lines = (
            f"    [{_quoted(name)}] = {_quoted(value)},"
            for name, value in headers(load.target).items()
        )
        script.write_text(SCRIPT % {"headers": "\n".join(lines), "bodies": _quoted(str(bodies))})
        return script


def _quoted(text: str) -> str:
    """Returns a Lua string; for plain ASCII, JSON's escapes are valid in Lua."""
    return orjson.dumps(text).decode()
