"""A small client for AWS services over the wire: DynamoDB and its streams, Kinesis, Lambda, Step
Functions. It signs requests, so the same code also works with Amazon's endpoints."""

from __future__ import annotations

from partita.client.aws_client import Client
from partita.client.client_errors import ClientError, Unreachable
from partita.client.request_signing import Credentials

__all__ = ["Client", "ClientError", "Credentials", "Unreachable"]
