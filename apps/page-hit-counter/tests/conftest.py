"""A service whose windows are short, so that a test can wait for one to close."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.data.page_hit_pipeline import ONE_PROCESS, Pipeline, put_assets, running
from testkit.session import pytest_collection_modifyitems  # noqa: F401

ASSETS = 50
SHORT_PERIODS = """
lateness_seconds = 1
spread = 0.2
write_units = 1000
expiration_grace_seconds = 3600

[[brands]]
name = "abc"
hosts = ["www.abc.example"]

[[brands]]
name = "def"

[[periods]]
name = "justnow"
code = "F"
seconds = 1
count = 1
max_age_seconds = 30

[[periods]]
name = "day"
code = "H"
seconds = 2
count = 60
max_age_seconds = 120

[[periods]]
name = "week"
code = "D"
seconds = 4
count = 60
max_age_seconds = 300

[spam]
mode = "off"
"""


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    folder: Path = tmp_path_factory.mktemp("pagehits")
    with running(folder, SHORT_PERIODS, parts=ONE_PROCESS) as pipeline:
        put_assets(pipeline.client(), ASSETS)
        yield pipeline
