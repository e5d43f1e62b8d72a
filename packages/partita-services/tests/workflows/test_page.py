"""Every example of docs/how-to/run-workflows.md does what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from partita.foundation.server_settings import FunctionSettings
from partita_services.workflows.api.step_functions_registry import OPERATIONS
from testkit import ROOT
from testkit.servers import processes

PAGE = (ROOT / "docs" / "how-to" / "run-workflows.md").read_text()


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page."""
    (tmp_path / "shop.py").write_text(examples("python")[0])
    (tmp_path / "partita.toml").write_text(examples("toml")[0])
    (tmp_path / "orders.asl.json").write_text(examples("json")[0])
    return tmp_path


def test_the_programs_print_what_the_page_says(serve: Any, folder: Path) -> None:
    options = ("--port", "0", "--in-memory", "--config", folder / "partita.toml")
    server = serve("serve", *options)
    for example, status in zip(examples("python")[1:], ("SUCCEEDED", "CAUGHT_ERROR"), strict=True):
        program = example.replace("http://127.0.0.1:8000", server.url)
        said = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
        )
        assert said.stdout.strip() in PAGE
        assert said.stdout.startswith(status)


def test_the_commands_say_what_the_page_says(folder: Path) -> None:
    blocks = examples("console")
    for command, expected in re.findall(r"\$ (.*)\n((?:[^$].*\n)*)", blocks[1]):
        if " graph " in command:
            expected = examples("text")[0]
        done = processes.run(*shlex.split(command)[1:], cwd=folder)
        said = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        assert said == expected.rstrip(), done.stderr


def test_the_page_names_every_setting_and_every_operation() -> None:
    for name in FunctionSettings.__struct_fields__:
        assert f"`{name}`" in PAGE, f"{name} is not on the page"
    for name in OPERATIONS:
        assert re.search(rf"\b{name}\b", PAGE), f"{name} is not on the page"
