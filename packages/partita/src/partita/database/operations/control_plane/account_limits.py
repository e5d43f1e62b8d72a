"""DescribeLimits and DescribeEndpoints: the operations that describe the account."""

from __future__ import annotations

from partita.database.operations.operation_context import ReadContext, Request
from partita.database.operations.response_members import encode
from partita.foundation.service_limits import ACCOUNT_CAPACITY_UNITS_MAX, TABLE_CAPACITY_UNITS_MAX

ENDPOINT_CACHE_MINUTES = 1440


def describe_limits(context: ReadContext, request: Request) -> bytes:
    return encode(
        {
            "AccountMaxReadCapacityUnits": ACCOUNT_CAPACITY_UNITS_MAX,
            "AccountMaxWriteCapacityUnits": ACCOUNT_CAPACITY_UNITS_MAX,
            "TableMaxReadCapacityUnits": TABLE_CAPACITY_UNITS_MAX,
            "TableMaxWriteCapacityUnits": TABLE_CAPACITY_UNITS_MAX,
        }
    )


def describe_endpoints(context: ReadContext, request: Request) -> bytes:
    """Returns this server's own address, to clients that use endpoint discovery."""
    return encode(
        {
            "Endpoints": [
                {
                    "Address": context.service.address,
                    "CachePeriodInMinutes": ENDPOINT_CACHE_MINUTES,
                }
            ]
        }
    )
