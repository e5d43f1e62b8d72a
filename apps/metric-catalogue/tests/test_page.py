"""docs/tutorials/move-a-metric-catalogue.md: its example does what it shows, and its words are
those of the program.
"""

from __future__ import annotations

import re
import subprocess
import sys

from metric_catalogue.metrics_commands import metrics
from metric_catalogue.stores.catalogue_modes import Mode
from metric_catalogue.stores.dynamodb.metric_items import ATTRIBUTES
from testkit import ROOT

from .conftest import Catalogue, Serve

PAGE = (ROOT / "docs" / "tutorials" / "move-a-metric-catalogue.md").read_text()


def test_the_example_runs(catalogue: Catalogue, serve: Serve) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    program = example.replace("http://127.0.0.1:8080", serve("legacy").url)
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout == "['all', 'late']\n{'consumers': ['late_share']}\n2\n"


def test_the_page_names_every_command_mode_and_attribute() -> None:
    for name in metrics.commands:
        assert f"partita metrics {name}" in PAGE or f"`{name}`" in PAGE, name
    for mode in Mode:
        assert f"| `{mode}` |" in PAGE
    for attribute, *_ in ATTRIBUTES.values():
        assert f"`{attribute}`" in PAGE, attribute
