"""UpdateContinuousBackups, DescribeContinuousBackups: point-in-time recovery of tables."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil, floor
from typing import Any

from msgspec.structs import replace

from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.recovery.recovery_resources import existing_table, recovery_context
from partita.database.operations.response_members import encode
from partita.database.storage.recovery_log import MICROSECONDS
from partita.database.tables.definition.table_schema import CREATING, DAY, RecoverySetting, Table
from partita.errors import (
    INVALID_REQUEST,
    ContinuousBackupsUnavailableException,
    ValidationException,
)
from partita.foundation.service_limits import RECOVERY_DAYS_MAX

ENABLED, DISABLED = "ENABLED", "DISABLED"
MILLISECONDS = 1000


def update_continuous_backups(context: WriteContext, request: Request) -> bytes:
    service = context.service
    new_table = service.catalog.find(table_name(request["TableName"]))
    # While a table is being restored, it is not found instead (recorded).
    if new_table and not new_table.origin and new_table.status(service.clock()) == CREATING:
        raise ContinuousBackupsUnavailableException(
            f"Backups are being enabled for the table: {new_table.name}. Please retry later"
        )
    table = existing_table(service, request["TableName"])
    specification = request["PointInTimeRecoverySpecification"]
    is_enabled, days = (
        specification["PointInTimeRecoveryEnabled"],
        specification.get("RecoveryPeriodInDays"),
    )
    if not is_enabled and days is not None:
        raise ValidationException(
            f"{INVALID_REQUEST}Cannot specify RecoveryPeriodInDays when disabling point-in-time "
            "recovery."
        )
    changed = replace(table, recovery=_setting(service, table, days) if is_enabled else None)
    if not is_enabled:
        # The log now has a gap. If recovery is enabled again, the log after the gap must not be
        # applied to a base from before it.
        for base in recovery_context(service).bases(table.table_id):
            recovery_context(service).records.remove(context.write_batch, base)
    service.catalog.save(context.write_batch, changed)
    return encode({"ContinuousBackupsDescription": _description(service, changed)})


def describe_continuous_backups(context: ReadContext, request: Request) -> bytes:
    table = existing_table(context.service, request["TableName"])
    return encode({"ContinuousBackupsDescription": _description(context.service, table)})


def restorable(service: DatabaseService, table: Table) -> tuple[int, int] | None:
    """Returns the first and last commit that a table can be restored to, or None without any."""
    context = recovery_context(service)
    bases = context.bases(table.table_id)
    if table.recovery is None or not bases:
        return None
    latest = context.log.latest()
    oldest = latest - table.recovery.period_days * DAY * MICROSECONDS
    return max(bases[0].stamp, oldest), latest


def iso_second(moment: float) -> str:
    """Returns a time as messages of the service show it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _setting(service: DatabaseService, table: Table, days: int | None) -> RecoverySetting:
    if table.recovery is not None:
        return replace(table.recovery, period_days=days or table.recovery.period_days)
    return RecoverySetting(days or RECOVERY_DAYS_MAX, service.clock())


def _description(service: DatabaseService, table: Table) -> dict[str, Any]:
    recovery: dict[str, Any] = {"PointInTimeRecoveryStatus": DISABLED}
    if table.recovery is not None:
        recovery = {
            "PointInTimeRecoveryStatus": ENABLED,
            "RecoveryPeriodInDays": table.recovery.period_days,
        }
        moments = restorable(service, table)
        if moments is not None:
            earliest, latest = moments
            # Both are rounded inwards, so that a client can restore to the times that it was shown.
            scale = MICROSECONDS // MILLISECONDS
            recovery["EarliestRestorableDateTime"] = ceil(earliest / scale) / MILLISECONDS
            recovery["LatestRestorableDateTime"] = floor(latest / scale) / MILLISECONDS
    return {
        "ContinuousBackupsStatus": ENABLED,
        "PointInTimeRecoveryDescription": recovery,
    }
