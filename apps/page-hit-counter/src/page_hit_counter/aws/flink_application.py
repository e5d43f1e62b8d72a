"""Runs the counter in Flink: `python flink_application.py job.json`.

It needs a Python with PyFlink but not Partita: only this file, and the job that `partita pagehits
flink-sql --json` writes. In a zip for Managed Service for Apache Flink it is the entry point, with
job.json beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

JOB = Path(__file__).with_name("job.json")


def main(path: Path) -> None:
    job = json.loads(path.read_text())
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in job["options"].items():
        environment.get_config().set(name, value)
    for definition in job["definitions"]:
        environment.execute_sql(definition)
    counting = environment.create_statement_set()
    for count in job["counts"]:
        counting.add_insert_sql(count)
    counting.execute().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else JOB)
