"""The example at the top of the README does what it shows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from testkit import ROOT

README = ROOT / "README.md"


def test_the_first_example_puts_and_queries(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    program = found.group(1).replace("http://127.0.0.1:8000", endpoint)
    names: dict[str, Any] = {}
    exec(compile(program, str(README), "exec"), names)
    names["music"].delete()
    assert "Partita No. 2" in capsys.readouterr().out
