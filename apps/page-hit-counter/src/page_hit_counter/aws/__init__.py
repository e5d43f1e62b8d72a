"""The service on AWS: Kinesis, Lambda, DynamoDB and Managed Service for Apache Flink.

`pagehits_cloudformation` makes a template from pagehits.toml. The processor, the API and the
consumer run as Lambda functions (`lambda_functions`), the counter as a Flink job (`flink_job`).
`aws_costs` computes what designs cost on AWS.
"""

from __future__ import annotations

from pathlib import Path


def flink_application_path() -> Path:
    """Returns the path of the file that runs the job. The file cannot be imported without
    PyFlink."""
    return Path(__file__).with_name("flink_application.py")
