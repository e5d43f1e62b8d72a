"""An event source mapping, whether a client created it or it is a trigger in the settings."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partita.client.consumer.kinesis_source import AT_TIMESTAMP, TRIM_HORIZON
from partita.errors import InvalidParameterValueException
from partita.foundation.server_settings import FOR_EVER, TriggerSettings
from partita_services.functions import function_arns

TRIGGERS = uuid.UUID("3c9e6d0e-7f0b-4f0c-9a53-6f3ad6c5a7d1")
"""The namespace of the UUIDs of triggers, which follow from their names."""
KINESIS, DYNAMODB = "kinesis", "dynamodb"
REPORT_FAILURES = "ReportBatchItemFailures"


@dataclass(frozen=True, slots=True)
class EventSourceMapping:
    """The configuration of a mapping, in the units that delivery needs."""

    uuid: str
    name: str
    """The name in the log."""
    source: str
    """The ARN of a stream; for triggers of a table, its name."""
    starting_position: str = TRIM_HORIZON
    """TRIM_HORIZON, LATEST, or AT_TIMESTAMP and a time."""
    batch_size: int = 100
    window_seconds: float = 0.0
    parallelization_factor: int = 1
    maximum_retries: int = FOR_EVER
    maximum_age_seconds: int = FOR_EVER
    bisects: bool = False
    reports_failures: bool = False
    tumbling_seconds: int = 0
    on_failure: str | None = None
    filter_patterns: tuple[str, ...] = ()
    since: float | None = None
    """The time from which LATEST counts; None for now, as for mappings that clients create."""
    last_sequences: dict[str, str] | None = None
    """The last sequence number of each of the table's streams at that time."""

    @property
    def is_of_kinesis(self) -> bool:
        return service_of(self.source) == KINESIS


def service_of(arn: str) -> str:
    return arn.split(":")[2] if arn.startswith("arn:") and arn.count(":") >= 5 else ""


def mapping_of(configuration: dict[str, Any]) -> EventSourceMapping:
    """Reads an EventSourceMappingConfiguration."""
    get: Callable[..., Any] = configuration.get
    position = get("StartingPosition", TRIM_HORIZON)
    if position == AT_TIMESTAMP:
        position = f"{AT_TIMESTAMP} {get('StartingPositionTimestamp'):.3f}"
    filters = get("FilterCriteria", {}).get("Filters", ())
    return EventSourceMapping(
        uuid=configuration["UUID"],
        name=f"event source mapping {configuration['UUID']}",
        source=configuration["EventSourceArn"],
        starting_position=position,
        batch_size=get("BatchSize"),
        window_seconds=get("MaximumBatchingWindowInSeconds"),
        parallelization_factor=get("ParallelizationFactor"),
        maximum_retries=get("MaximumRetryAttempts"),
        maximum_age_seconds=get("MaximumRecordAgeInSeconds"),
        bisects=get("BisectBatchOnFunctionError"),
        reports_failures=REPORT_FAILURES in get("FunctionResponseTypes", ()),
        tumbling_seconds=get("TumblingWindowInSeconds"),
        on_failure=get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"),
        filter_patterns=tuple(filter["Pattern"] for filter in filters),
    )


def configuration_of(trigger: TriggerSettings, function_arn: str) -> dict[str, Any]:
    """Describes a trigger as EventSourceMappingConfiguration."""
    table = f"arn:aws:dynamodb:{function_arns.REGION}:{function_arns.ACCOUNT}:table/{trigger.table}"
    identity = str(uuid.uuid5(TRIGGERS, trigger.name))
    configuration: dict[str, Any] = {
        "UUID": identity,
        "EventSourceArn": table if trigger.table else stream_arn(trigger.stream or ""),
        "FunctionArn": function_arn,
        "StartingPosition": trigger.starting_position,
        "BatchSize": trigger.batch_size,
        "MaximumBatchingWindowInSeconds": int(trigger.batching_window_seconds),
        "ParallelizationFactor": trigger.parallelization_factor,
        "MaximumRecordAgeInSeconds": trigger.maximum_record_age_seconds,
        "MaximumRetryAttempts": trigger.maximum_retries,
        "BisectBatchOnFunctionError": trigger.bisect_on_error,
        "TumblingWindowInSeconds": trigger.tumbling_window_seconds,
        "FunctionResponseTypes": ([REPORT_FAILURES] if trigger.report_batch_item_failures else []),
        "State": "Enabled",
        "StateTransitionReason": f"The trigger {trigger.name} of the settings",
        "EventSourceMappingArn": function_arns.mapping_arn(identity),
    }
    if trigger.filter_patterns:
        filters = [{"Pattern": pattern} for pattern in trigger.filter_patterns]
        configuration["FilterCriteria"] = {"Filters": filters}
    return configuration


def mapping_of_trigger(
    trigger: TriggerSettings, since: float, last_sequences: dict[str, str]
) -> EventSourceMapping:
    return EventSourceMapping(
        uuid=str(uuid.uuid5(TRIGGERS, trigger.name)),
        name=f"trigger {trigger.name}",
        source=trigger.table or stream_arn(trigger.stream or ""),
        starting_position=trigger.starting_position,
        batch_size=trigger.batch_size,
        window_seconds=trigger.batching_window_seconds,
        parallelization_factor=trigger.parallelization_factor,
        maximum_retries=trigger.maximum_retries,
        maximum_age_seconds=trigger.maximum_record_age_seconds,
        bisects=trigger.bisect_on_error,
        reports_failures=trigger.report_batch_item_failures,
        tumbling_seconds=trigger.tumbling_window_seconds,
        on_failure=trigger.on_failure,
        filter_patterns=trigger.filter_patterns,
        since=since,
        last_sequences=last_sequences,
    )


def stream_arn(name: str) -> str:
    """The ARN of a Kinesis stream."""
    return f"arn:aws:kinesis:{function_arns.REGION}:{function_arns.ACCOUNT}:stream/{name}"


def stream_name(arn: str) -> str:
    """The name in the ARN of a Kinesis stream."""
    name = arn.partition(":stream/")[2]
    if not name:
        raise InvalidParameterValueException(f"Unrecognized event source: {arn}")
    return name
