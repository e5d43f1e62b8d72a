"""Server-side encryption: checks SSESpecification as the service does, and describes the truth.

If the data folder is encrypted, then with the server's own key, and a request cannot ask for
another key. A server in memory stores nothing, so it describes a table as DynamoDB Local does.
"""

from __future__ import annotations

import uuid
from typing import Any

from partita.database.operations.operation_context import DatabaseService
from partita.errors import INVALID, ValidationException

DEFAULT_ALIAS = "alias/aws/dynamodb"


def sse_description(
    service: DatabaseService, specification: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Returns the SSEDescription of a specification, or None if it does not enable encryption.

    Without a customer managed key, it has the account's default key, as in AWS.
    """
    if specification is None or not specification.get("Enabled"):
        return None
    key = specification.get("KMSMasterKeyId") or _own_key_id(service)
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": _arn(service, key)}


def current_sse(service: DatabaseService, requested: dict[str, Any]) -> dict[str, Any]:
    """Returns the SSEDescription of a table for which encryption was requested.

    It is DISABLED if the server stores the table's data without encryption.
    """
    if service.encryption_key:
        return {**requested, "KMSMasterKeyArn": _arn(service, _own_key_id(service))}
    return {"Status": "DISABLED"} if service.is_kept else requested


def check_sse(service: DatabaseService, specification: dict[str, Any] | None) -> None:
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
    key = specification.get("KMSMasterKeyId")
    if key and service.encryption_key and not _is_own(service, key):
        raise ValidationException(f"{INVALID}KMS validation error: Invalid keyId {key}")


def _is_own(service: DatabaseService, key: str) -> bool:
    own_keys = {_own_key_id(service), DEFAULT_ALIAS}
    return key in own_keys or key in {_arn(service, own_key) for own_key in own_keys}


def _own_key_id(service: DatabaseService) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, service.encryption_key or "partita"))


def _arn(service: DatabaseService, key: str) -> str:
    if key.startswith("arn:"):
        return key
    resource = key if key.startswith("alias/") else f"key/{key}"
    return f"arn:aws:kms:{service.region}:{service.account_id}:{resource}"
