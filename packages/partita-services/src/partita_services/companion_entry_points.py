"""The entry points `partita.companions`: what a server learns about these services without loading
them.

They say which processes answer, which rights the operations need, and what the processes may do
themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partita.client.aws_services import FUNCTIONS_TABLE, WORKFLOWS_TABLE
from partita.foundation.clock import system_clock
from partita.foundation.server_settings import ServerSettings
from partita.server.companions.companion_services import AnsweredService, CompanionService
from partita.server.protocol.service_model import LAMBDA, SCHEDULER
from partita_services import functions, workflows

if TYPE_CHECKING:
    from partita.server.security.rights.requested_rights import Rights

READ_STREAMS = (
    *("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"),
    *("dynamodb:ListStreams", "kinesis:DescribeStream", "kinesis:DescribeStreamSummary"),
    *("kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:ListShards"),
)
"""The rights to read the streams of triggers and event source mappings."""
SEND = ("kinesis:PutRecord", "lambda:InvokeFunction")
"""The rights to call what sinks and schedules name."""


# Rights are imported on first use: a server without policies does not need them.


def _rights_of_states() -> Mapping[str, Rights]:
    from partita_services.rights.step_functions_rights import RIGHTS

    return RIGHTS


def _rights_of_functions() -> Mapping[str, Rights]:
    from partita_services.rights.lambda_rights import RIGHTS

    return RIGHTS


def _rights_of_schedules() -> Mapping[str, Rights]:
    from partita_services.rights.scheduler_rights import RIGHTS

    return RIGHTS


def _check_functions(settings: ServerSettings) -> None:
    if settings.triggers:
        # The server calls this when it starts, so that a mistake in the settings is found before
        # the companion is.
        from partita_services.functions.mappings.event_filters import compile_filters

        for trigger in settings.triggers:
            compile_filters(trigger.filter_patterns)
    if settings.schedules:
        from partita_services.functions.schedules.schedule_expressions import parse

        for schedule in settings.schedules:
            parse(schedule.expression, schedule.timezone, system_clock())


STATES = CompanionService(
    name="states",
    module=workflows.__name__,
    services=[
        AnsweredService(
            name="states",
            title="Step Functions",
            target="AWSStepFunctions",
            rights=_rights_of_states,
            tables=(WORKFLOWS_TABLE,),
            actions=SEND,
        )
    ],
    table=WORKFLOWS_TABLE,
    seals_objects=True,
)
FUNCTIONS = CompanionService(
    name=LAMBDA,
    module=functions.__name__,
    services=[
        AnsweredService(
            name=LAMBDA,
            title="Lambda",
            target=LAMBDA,
            rights=_rights_of_functions,
            tables=(FUNCTIONS_TABLE,),
            actions=(*READ_STREAMS, *SEND),
        ),
        AnsweredService(
            name=SCHEDULER,
            title="EventBridge Scheduler",
            target=SCHEDULER,
            rights=_rights_of_schedules,
            tables=(),
            actions=("states:StartExecution", *SEND),
        ),
    ],
    is_rest=True,
    table=FUNCTIONS_TABLE,
    is_called=lambda settings: bool(settings.triggers or settings.schedules),
    check_settings=_check_functions,
)
