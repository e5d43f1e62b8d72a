"""The migration as functions of Lambda's API, called by Step Functions and by a schedule."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...functions.test_kills import children, companion
from .conftest import Catalogue, Serve
from .population import dynamodb_contents, legacy_contents, populate

EXAMPLE = Path(__file__).parents[3] / "examples" / "metrics-functions"
METRICS = 20


def invoke(functions: Any) -> int:
    answer = functions.invoke(FunctionName="MetricMigrationInvoker")
    content = json.load(answer["Payload"])
    assert "FunctionError" not in answer, content
    return int(content["metrics"])


def test_functions_migrate_every_metric_although_they_are_killed(
    catalogue: Catalogue, serve: Serve
) -> None:
    serve("legacy")
    populate(catalogue, METRICS)
    surroundings = {
        **catalogue.environment,
        "AWS_ENDPOINT_URL": catalogue.partita.url,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "PARTITA_METRICS_MYSQL": catalogue.options["--mysql"],
        "PARTITA_METRICS_TABLE": catalogue.name,
    }
    subprocess.run([sys.executable, EXAMPLE / "create.py"], check=True, env=surroundings)
    functions = catalogue.partita.client("lambda")
    assert invoke(functions) == METRICS
    for child in children(companion(catalogue.partita)):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while catalogue.count("MIGRATED") < METRICS:
        assert time.monotonic() < deadline, f"{catalogue.count('MIGRATED')} are migrated"
        time.sleep(0.5)
        invoke(functions)
    assert dynamodb_contents(catalogue) == legacy_contents(catalogue)
