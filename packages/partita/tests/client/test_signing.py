"""Our signatures are the same as botocore's, which AWS accepts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from partita.client.aws_services import SERVICES
from partita.client.request_signing import Credentials, find_credentials, signed_headers

NOW = datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("token", [None, "a/token=="])
@pytest.mark.parametrize("body", [b"{}", '{"name":"é"}'.encode()])
def test_a_signature_is_botocores(service: str, token: str | None, body: bytes) -> None:
    described = SERVICES[service]
    headers = {
        "Host": "example.amazonaws.com",
        "Content-Type": described.content_type,
        "X-Amz-Target": f"{described.target}.Anything",
    }
    ours = signed_headers(
        described, "eu-west-1", Credentials("AKID", "secret", token), headers, body, NOW.timestamp()
    )
    assert ours["Authorization"] == botocores(described.signing_name, token, headers, body)


def botocores(name: str, token: str | None, headers: dict[str, str], body: bytes) -> Any:
    request = AWSRequest("POST", "https://example.amazonaws.com/", data=body, headers=headers)
    with patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None)):
        SigV4Auth(BotocoreCredentials("AKID", "secret", token), name, "eu-west-1").add_auth(request)
    return request.headers["Authorization"]


def test_credentials_come_from_the_environment() -> None:
    environment = {
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
    }
    provide = find_credentials(is_local=True, environment=environment)
    assert provide is not None
    assert provide() == ("AKID", "secret", "token")


def test_a_server_of_ones_own_needs_none() -> None:
    assert find_credentials(is_local=True, environment={}) is None
