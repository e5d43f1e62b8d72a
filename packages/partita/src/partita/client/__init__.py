"""A small client for everything that speaks AWS JSON: DynamoDB and its streams, Kinesis, Step
Functions. Signed, so that the same code runs against Amazon."""

from __future__ import annotations

from partita.client.aws_client import Client
from partita.client.client_errors import ClientError, Unreachable
from partita.client.request_signing import Credentials

__all__ = ["Client", "ClientError", "Credentials", "Unreachable"]
