"""UpdateContributorInsights, DescribeContributorInsights, ListContributorInsights.

Insights are enabled separately for a table and for each global index. The counts themselves are
served at /insights (`server/monitoring/monitoring_pages.py`). Error messages, ordering and statuses
were recorded in October 2026.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from msgspec.structs import replace

from partita.database.capacity.insights_rules import (
    ACCESSED_AND_THROTTLED_KEYS,
    InsightsSetting,
    rule_kinds,
)
from partita.database.operations.operation_context import (
    DatabaseService,
    ReadContext,
    Request,
    WriteContext,
    table_name,
)
from partita.database.operations.response_members import encode
from partita.database.tables.definition.table_schema import ACTIVE, CREATING, Index, Table
from partita.errors import ResourceNotFoundException, ValidationException
from partita.foundation.service_limits import LIST_INSIGHTS_PAGE_MAX

ENABLED, ENABLING, DISABLED, DISABLING = "ENABLED", "ENABLING", "DISABLED", "DISABLING"
WRONG_STATE = "Table or Index is not in a valid state to update Key Access Insights: "

Summary = dict[str, Any]


def update_contributor_insights(context: WriteContext, request: Request) -> bytes:
    service = context.service
    table, owner = _find(service, request)
    enables = request["ContributorInsightsAction"] == "ENABLE"
    mode = request.get("ContributorInsightsMode", ACCESSED_AND_THROTTLED_KEYS)
    current = owner.insights
    if enables:
        _refuse_unless_active(service, table, owner)
        if current and current.is_enabled and current.mode == mode:
            return encode(_summary(service, table, owner))
    elif current is None or not current.is_enabled:
        return encode(_summary(service, table, owner))
    owner = replace(owner, insights=_changed(current, enables, mode, service.clock()))
    changed = table.with_index(owner) if isinstance(owner, Index) else owner
    service.catalog.save(context.write_batch, changed)
    status = ENABLING if enables else DISABLING
    return encode(_summary(service, changed, owner) | {"ContributorInsightsStatus": status})


def describe_contributor_insights(context: ReadContext, request: Request) -> bytes:
    service = context.service
    table, owner = _find(service, request)
    description = _summary(service, table, owner)
    if owner.insights:
        if owner.insights.is_enabled:
            description["ContributorInsightsRuleList"] = rule_names(table, owner, owner.insights)
        description["LastUpdateDateTime"] = round(owner.insights.changed_at, 3)
    return encode(description)


def list_contributor_insights(context: ReadContext, request: Request) -> bytes:
    """List all tables and indexes whose insights are not DISABLED, a table before its indexes."""
    service = context.service
    if "TableName" in request:
        tables = [service.catalog.described(table_name(request["TableName"]))]
    else:
        tables = [service.catalog.described(name) for name in service.catalog.names()]
    summaries = [
        summary
        for table in tables
        for owner in table.capacity_owners
        for summary in [_summary(service, table, owner)]
        if summary["ContributorInsightsStatus"] != DISABLED
    ]
    summaries.sort(key=_place)
    after = _position(request.get("NextToken"))
    following = [summary for summary in summaries if _place(summary) > after]
    limit = max(1, request.get("MaxResults", LIST_INSIGHTS_PAGE_MAX))
    page: dict[str, Any] = {"ContributorInsightsSummaries": following[:limit]}
    if len(following) > limit:
        page["NextToken"] = _token(following[limit - 1])
    return encode(page)


def rule_names(table: Table, owner: Table | Index, insights: InsightsSetting) -> list[str]:
    target = f"{table.name}-{owner.name}" if isinstance(owner, Index) else table.name
    kinds = rule_kinds(insights.mode, has_sort_key=bool(owner.sort))
    made_ms = int(insights.since * 1000)
    return [f"DynamoDBContributorInsights-{kind}-{target}-{made_ms}" for kind in kinds]


def _find(service: DatabaseService, request: Request) -> tuple[Table, Table | Index]:
    table = service.catalog.described(table_name(request["TableName"]))
    if "IndexName" not in request:
        return table, table
    index = table.index(request["IndexName"])
    if index is None or index.is_local:
        raise ResourceNotFoundException(
            f"Requested resource not found: Index: {request['IndexName']} not found for table: "
            f"{table.name}"
        )
    return table, index


def _refuse_unless_active(service: DatabaseService, table: Table, owner: Table | Index) -> None:
    if table.status(service.clock()) == CREATING:
        wrong = "TableStatus"
    elif isinstance(owner, Index) and owner.status != ACTIVE:
        wrong = "IndexStatus"
    else:
        return
    raise ValidationException(f"{WRONG_STATE}{wrong} must be ACTIVE to enable ContributorInsights.")


def _changed(
    current: InsightsSetting | None, enables: bool, mode: str, now: float
) -> InsightsSetting:
    """Returns the changed setting.

    A change of mode keeps the rules that both modes have; enabling again starts new rules.
    """
    if current is None or (enables and not current.is_enabled):
        return InsightsSetting(is_enabled=enables, mode=mode, since=now, changed_at=now)
    mode = mode if enables else current.mode
    return replace(current, is_enabled=enables, mode=mode, changed_at=now)


def _summary(service: DatabaseService, table: Table, owner: Table | Index) -> Summary:
    summary: Summary = {"TableName": table.name}
    if isinstance(owner, Index):
        summary["IndexName"] = owner.name
    summary["ContributorInsightsStatus"] = _status(service, owner.insights)
    if owner.insights:
        summary["ContributorInsightsMode"] = owner.insights.mode
    return summary


def _status(service: DatabaseService, insights: InsightsSetting | None) -> str:
    if insights is None:
        return DISABLED
    is_settled = service.clock() >= insights.changed_at + service.transient_seconds
    if insights.is_enabled:
        return ENABLED if is_settled else ENABLING
    return DISABLED if is_settled else DISABLING


def _place(summary: Summary) -> tuple[str, str]:
    return summary["TableName"], summary.get("IndexName", "")


def _token(summary: Summary) -> str:
    return urlsafe_b64encode("/".join(_place(summary)).encode()).decode()


def _position(token: str | None) -> tuple[str, str]:
    """Returns the table and index in a token, after which the page begins."""
    if token is None:
        return "", ""
    try:
        table, slash, index = urlsafe_b64decode(token.encode()).decode().partition("/")
    except ValueError:
        slash = ""
    if not slash:
        raise ValidationException("Invalid NextToken")
    return table, index
