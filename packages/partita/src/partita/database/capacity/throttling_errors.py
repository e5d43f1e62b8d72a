"""The errors of throttled requests, with AWS's texts and reasons.

The texts are from the API reference (TransactionCanceledException lists them) and from recorded
responses. The reasons, and which request gets which error, are in the guide, "Diagnosing
throttling".
"""

from __future__ import annotations

from typing import NamedTuple

from partita.errors import (
    DynamoDBError,
    ProvisionedThroughputExceededException,
    ThrottlingException,
)

PROVISIONED = "ProvisionedThroughputExceeded"
KEY_RANGE = "KeyRangeThroughputExceeded"
ON_DEMAND_MAXIMUM = "MaxOnDemandThroughputExceeded"

TABLE_EXCEEDED = (
    "The level of configured provisioned throughput for the table was exceeded. "
    "Consider increasing your provisioning level with the UpdateTable API."
)
INDEX_EXCEEDED = (
    "The level of configured provisioned throughput for one or more global secondary indexes of "
    "the table was exceeded. Consider increasing your provisioning level for the "
    "under-provisioned global secondary indexes with the UpdateTable API."
)
SCALING = (
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically "
    "scaling your table or index so please try again shortly. If exceptions persist, check if you "
    "have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
    "bp-partition-key-design.html"
)
INDEX_SCALING = (
    "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is "
    "automatically scaling your index so please try again shortly."
)
MAXIMUM_EXCEEDED = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"


class ThrottlingReason(NamedTuple):
    """The reason why a request was throttled: the limit, and the table or index."""

    limit: str
    arn: str
    is_index: bool
    is_write: bool
    is_on_demand: bool

    @property
    def reason(self) -> str:
        """Resource type, operation type and limit, as in `TableReadKeyRangeThroughputExceeded`."""
        resource = "Index" if self.is_index else "Table"
        return f"{resource}{'Write' if self.is_write else 'Read'}{self.limit}"

    @property
    def text(self) -> str:
        if self.limit == ON_DEMAND_MAXIMUM:
            return MAXIMUM_EXCEEDED
        if self.is_on_demand:
            return INDEX_SCALING if self.is_index and self.is_write else SCALING
        return INDEX_EXCEEDED if self.is_index else TABLE_EXCEEDED

    def error(self) -> DynamoDBError:
        reasons = [{"reason": self.reason, "resource": self.arn}]
        if self.is_on_demand:
            # In AWS's model, the member of this error begins with a small letter.
            return ThrottlingException(self.text, throttlingReasons=reasons)
        return ProvisionedThroughputExceededException(self.text, ThrottlingReasons=reasons)

    def cancellation_reason(self) -> dict[str, str]:
        """Returns the cancellation reason of a transaction with a throttled action."""
        code = "ThrottlingError" if self.is_on_demand else PROVISIONED
        return {"Code": code, "Message": self.text}
