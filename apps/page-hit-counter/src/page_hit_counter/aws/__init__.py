"""The service on AWS: Kinesis, Lambda, DynamoDB and Managed Service for Apache Flink.

`cloudformation` makes a template of pagehits.toml. Processor, API and consumer run as functions of
Lambda (`lambda_functions`), the counter as a job of Flink (`flink_job`). `costs` says what designs
cost there.
"""

from __future__ import annotations

from pathlib import Path


def flink_application_path() -> Path:
    """The file that runs the job; it cannot be imported without PyFlink."""
    return Path(__file__).with_name("flink_application.py")
