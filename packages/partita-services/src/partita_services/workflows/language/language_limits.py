"""Limits of Step Functions, with their sources.

"guide" is the Step Functions developer guide (Service quotas), "model" is botocore's service
description, "ours" is a limit of Partita.
"""

from __future__ import annotations

from partita.foundation.service_limits import KB, MB

DEFINITION_BYTES_MAX = 1 * MB  # guide
DATA_BYTES_MAX = 256 * KB  # guide: input or output of a task, state or execution
HISTORY_EVENTS_MAX = 25_000  # guide
ERROR_CHARS_MAX = 256  # model
CAUSE_CHARS_MAX = 32_768  # model
STATE_NAME_CHARS_MAX = 80  # guide
VARIABLE_NAME_CHARS_MAX = 80  # guide
VARIABLE_BYTES_MAX = 256 * KB  # guide: one variable, and all variables of one Assign
INLINE_MAP_CONCURRENCY_MAX = 40  # guide
RETRY_ATTEMPTS_MAX = 99_999_999  # guide
SECONDS_MAX = 99_999_999  # guide: waits, timeouts and heartbeats
RETRY_DELAY_SECONDS_MAX = 31_622_400  # guide: MaxDelaySeconds must be lower
ARRAY_ITEMS_MAX = 1000  # guide: the result of States.ArrayRange
HASHED_CHARS_MAX = 10_000  # guide; applies to the arguments of Base64 functions, too

DATA_LEVELS_MAX = 500  # ours: how deep the input of an execution may be nested
DEFINITION_LEVELS_MAX = 100  # ours: how deep a definition may be nested
INTRINSIC_LEVELS_MAX = 10  # guide
PATH_NODES_MAX = 100_000  # ours: how much of its input a path may look at
QUERY_MILLISECONDS_MAX = 1000  # ours: how long a JSONata expression may take
STATE_QUERY_MILLISECONDS_MAX = 2000  # ours: all expressions of a state, in processor time
QUERY_LEVELS_MAX = 300  # ours: call depth of the functions of a JSONata expression
STATES_PER_TURN = 200  # ours: an execution yields to others after this many states
EVENT_CHARS_PER_TURN = 1 * MB  # ours: an execution yields after writing this much history
RUN_BYTES_MAX = 16 * MB  # ours: the data of all running states of an execution
