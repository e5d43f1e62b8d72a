"""TestState: tests one state, with the services that it calls or with a mock."""

from __future__ import annotations

from hashlib import blake2b
from secrets import token_bytes

import msgspec

from partita.errors import ValidationException
from partita_services.workflows.api.step_functions_service import (
    Answer,
    Request,
    StepFunctionsService,
)
from partita_services.workflows.evaluation.evaluation_messages import (
    StateTested,
    TestState,
    decode_task,
    encode_json,
)
from partita_services.workflows.language.interpreting.engine_interface import (
    TaskHappening,
    TimerFired,
)
from partita_services.workflows.language.language_errors import StateError

SEED_BYTES = 32


async def test_state(service: StepFunctionsService, request: Request) -> Answer:
    job = TestState(encode_json(request), service.clock(), token_bytes(SEED_BYTES))
    # With the definition as the key, a slow test does not hold up tests of other definitions.
    key = blake2b(request["definition"].encode(), digest_size=16).hexdigest()
    tested = await _tested(service, job, key)
    happening: TaskHappening | TimerFired | None = None
    if tested.timer is not None:
        happening = await service.trials.wait(*tested.timer)
    elif tested.task is not None:
        task = decode_task(tested.task)
        happening = await service.trials.outcome(task, tested.execution_arn, tested.role_arn)
    if happening is not None:
        job.happening = encode_json(happening)
        tested = await _tested(service, job, key)
    assert tested.answer is not None
    answer: Answer = msgspec.json.decode(tested.answer)
    return answer


async def _tested(service: StepFunctionsService, job: TestState, key: str) -> StateTested:
    try:
        return await service.pool.run(job, key, StateTested)
    except StateError as error:
        raise ValidationException(f"The state cannot be tested: {error.cause}") from error
