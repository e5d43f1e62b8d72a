"""The same parts on AWS: Kinesis, Lambda, DynamoDB and Managed Service for Apache Flink.

`template.py` makes a CloudFormation template of pagehits.toml. The processor, the API and the
consumer run as Lambda functions, the counter as the Flink job of `flink.py`.
"""

from __future__ import annotations

from pathlib import Path


def flink_application_path() -> Path:
    """Of the file that runs the job; it cannot be imported where there is no PyFlink."""
    return Path(__file__).with_name("flink_application.py")
