"""DescribeEndpoints: clients that ask where to go are sent to where they are."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config


def test_the_endpoint_is_the_one_that_was_asked(raw: Any, endpoint: str) -> None:
    answer = raw("DescribeEndpoints", {})
    assert answer.status == 200
    (found,) = answer.body["Endpoints"]
    assert found == {"Address": urlsplit(endpoint).netloc, "CachePeriodInMinutes": 1440}


def test_a_client_with_endpoint_discovery_works(endpoint: str) -> None:
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(endpoint_discovery_enabled=True, retries={"total_max_attempts": 1}),
    )
    assert "TableNames" in client.list_tables()
    assert client.describe_endpoints()["Endpoints"][0]["CachePeriodInMinutes"] > 0
