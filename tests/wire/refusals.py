"""What a refused request says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """The type and the text of the error that answers the request."""
    with pytest.raises(ClientError) as refused:
        call(**request)
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]
