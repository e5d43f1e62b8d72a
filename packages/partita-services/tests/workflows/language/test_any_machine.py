"""Machines and data made at random: each ends, or fails with a name that is documented."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from partita_services.workflows.language import Happening, StartTask, TaskFailed, TaskSucceeded
from partita_services.workflows.language.language_limits import HISTORY_EVENTS_MAX

from .machines import PREDEFINED, NoEnd, Player, Story, task

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["", "a", "E", "2026-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=6,
)
fitting = ["$", "$", "$", "$.a", "$.b", "$..a", "$.a[*]"]
paths = st.sampled_from(
    [
        *fitting,
        "$.b[0]",
        "$$.Execution.Name",
        "$$.Map.Item.Value",
        "$$.Map.Item.Value.a",
        "$v",
        "$v.a",
    ]
)
inputs = values | st.fixed_dictionaries({"a": st.lists(values, max_size=3), "b": st.lists(values)})
references = st.sampled_from(["$", "$.a", "$.a.b", "$.b[0]", None])
calls = st.sampled_from(
    [
        "States.ArrayLength($.a)",
        "States.Format('{}', $.b)",
        "States.StringToJson($.a)",
        "States.ArrayGetItem($.a, $.b)",
        "States.MathAdd($.a, 1)",
    ]
)
templates = st.dictionaries(st.sampled_from(["a.$", "b.$"]), paths | calls, max_size=2)
errors = st.sampled_from(["E", "States.ALL", "States.TaskFailed", "States.BranchFailed"])


def fields_of(**optional: Any) -> Any:
    return st.fixed_dictionaries({}, optional=optional)


shaping = {"InputPath": paths, "OutputPath": paths, "Assign": st.just({"v.$": "$.a"})}
resulting = {**shaping, "ResultPath": references, "ResultSelector": templates}


@st.composite
def machines(draw: Any, depth: int = 2) -> dict[str, Any]:
    """Machines that are valid, with paths that may or may not fit the data."""
    prefix = draw(st.uuids()).hex[:12] if depth < 2 else ""
    names = [f"{prefix}{letter}" for letter in "ABC"[: draw(st.integers(1, 3))]]
    states = {}
    for number, name in enumerate(names):
        following = {"Next": names[number + 1]} if number + 1 < len(names) else {"End": True}
        states[name] = draw(state(names, depth)) | following
    return {"StartAt": names[0], "States": states}


@st.composite
def state(draw: Any, names: list[str], depth: int) -> dict[str, Any]:
    kinds = ["Pass", "Task", "Wait", *(["Map", "Parallel"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "Pass":
        extra = {name: shaping[name] for name in ("InputPath", "OutputPath")}
        fields = draw(fields_of(**extra, Parameters=templates, ResultPath=references))
        return {"Type": kind, **fields}
    if kind == "Wait":
        fields = draw(
            st.fixed_dictionaries({"SecondsPath": paths})
            | st.just({"Seconds": 1})
            | st.just({"Seconds": 0})
        )
        return {"Type": kind, **fields}
    found: dict[str, Any] = {"Type": kind} | draw(
        fields_of(**{name: resulting[name] for name in resulting if name != "Assign"})
    )
    if kind == "Task":
        found |= task() | draw(fields_of(Parameters=templates))
    elif kind == "Parallel":
        found["Branches"] = draw(st.lists(machines(depth - 1), min_size=1, max_size=2))
    else:
        found["ItemProcessor"] = draw(machines(depth - 1))
        found |= draw(
            fields_of(
                ItemsPath=paths,
                ItemSelector=templates,
                MaxConcurrency=st.integers(0, 2),
                ToleratedFailureCount=st.integers(0, 2),
                ItemBatcher=st.just({"MaxItemsPerBatch": 2}),
            )
        )
    if draw(st.booleans()):
        found["Retry"] = [{"ErrorEquals": [draw(errors)], "MaxAttempts": 1}]
    if draw(st.booleans()):
        found["Catch"] = [{"ErrorEquals": [draw(errors)], "Next": names[-1], "ResultPath": "$.a"}]
    return found


@settings(max_examples=60)
@given(machines(), inputs, st.lists(inputs | st.just("fail"), min_size=1, max_size=4))
def test_any_machine_ends_or_fails_with_a_documented_error(
    definition: dict[str, Any], input: Any, results: list[Any]
) -> None:
    """Every step goes through the stored form, and nothing is left waiting: see the player."""
    turn = iter(range(10_000))

    def answer(started: StartTask) -> Happening:
        result = results[next(turn) % len(results)]
        if result == "fail":
            return TaskFailed(started.id, "E", "because")
        return TaskSucceeded(started.id, result)

    player = Player(definition, {})
    player.answer_all(answer)
    try:
        story = player.play(input, steps_max=400)
    except NoEnd:
        return
    assert story.status == "SUCCEEDED" or story.progress.error in PREDEFINED | {"E"}
    if story.status == "SUCCEEDED" or len(story.events) == HISTORY_EVENTS_MAX:
        return
    left_before = Counter(left(story))
    try:
        player.redrive(story, steps_max=400)
    except NoEnd:
        return
    assert story.status == "SUCCEEDED" or story.progress.error in PREDEFINED | {"E"}
    assert [event["id"] for event in story.events] == [*range(1, len(story.events) + 1)]
    assert left_before <= Counter(left(story))


def left(story: Story) -> list[str]:
    return [
        event["stateExitedEventDetails"]["name"]
        for event in story.events
        if event["type"].endswith("StateExited")
    ]
