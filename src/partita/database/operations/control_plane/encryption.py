"""SSESpecification: checked and described as the service does; nothing is encrypted."""

from __future__ import annotations

import uuid
from typing import Any

from partita.database.operations.context import Service
from partita.errors import INVALID, ValidationException


def sse_description(
    service: Service, specification: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The SSEDescription; without a customer managed key, AWS shows the account's default key."""
    if specification is None or not specification.get("Enabled"):
        return None
    key = specification.get("KMSMasterKeyId") or str(uuid.uuid5(uuid.NAMESPACE_DNS, "partita"))
    if not key.startswith("arn:"):
        resource = key if key.startswith("alias/") else f"key/{key}"
        key = f"arn:aws:kms:{service.region}:{service.account_id}:{resource}"
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}


def check_sse(specification: dict[str, Any] | None) -> None:
    if specification is None:
        return
    is_enabled = specification.get("Enabled", False)
    for name in ("SSEType", "KMSMasterKeyId"):
        if name in specification and not is_enabled:
            raise ValidationException(f"{INVALID}{name} can not be specified if Enabled is false")
    if "KMSMasterKeyId" in specification and "SSEType" not in specification:
        raise ValidationException(
            f"{INVALID}SSEType KMS is required if KMSMasterKeyId is specified"
        )
    if specification.get("SSEType") == "AES256":
        raise ValidationException(f"{INVALID}SSEType AES256 is not supported")
