"""The machine of figure 5.11, as it stands once its comments are stripped."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita_services.workflows.language import InvalidDefinition, parse, strip_comments, substitute

from .machines import Answer, Story, echoes, fails, gives, play

FIGURE = (Path(__file__).parent / "figure_5_11.jsonc").read_text()
METRIC = {"name": "page_views", "version": 3}
TOO_MANY = fails("Lambda.TooManyRequestsException", "Rate Exceeded.")


def migrate(*first: Answer, clean_up: Answer = echoes) -> Story:
    return play(
        strip_comments(FIGURE),
        METRIC,
        {"MigrateOneMetric": first, "CleanUpDynamoDbFromMigratedMetricMetadata": clean_up},
    )


def test_comments_must_be_stripped_first() -> None:
    with pytest.raises(InvalidDefinition, match="INVALID_JSON_DESCRIPTION"):
        parse(FIGURE)


def test_a_metric_that_migrates_succeeds() -> None:
    story = migrate(gives({"migrated": 3}))
    assert story.output == {"migrated": 3}
    assert [task.resource for task in story.tasks] == ["${MigrateOneMetricLambdaArn}"]


def test_too_many_requests_are_retried_with_doubled_waits() -> None:
    story = migrate(TOO_MANY, TOO_MANY, TOO_MANY, gives("done"))
    assert story.output == "done"
    assert story.waits == [5, 10, 20]


def test_after_ten_retries_the_metric_is_cleaned_up() -> None:
    story = migrate(*[TOO_MANY] * 11)
    assert story.error is None
    assert story.waits == [5 * 2**attempt for attempt in range(10)]
    assert story.tasks[-1].state == "CleanUpDynamoDbFromMigratedMetricMetadata"
    assert story.tasks[-1].input == METRIC


def test_another_error_is_not_retried_and_the_clean_up_gets_the_same_input() -> None:
    story = migrate(fails("ValueError", "no such metric"))
    assert story.status == "FAILED"
    assert story.waits == []
    assert [task.input for task in story.tasks] == [METRIC, METRIC]


def test_a_clean_up_that_fails_fails_the_execution_with_its_error() -> None:
    story = migrate(fails("ValueError"), clean_up=fails("KeyError", "gone"))
    assert (story.error, story.cause) == ("KeyError", "gone")


def test_placeholders_are_replaced_as_cloudformation_does_it() -> None:
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:migrate"
    machine = parse(substitute(strip_comments(FIGURE), {"MigrateOneMetricLambdaArn": arn}))
    assert next(machine.tasks())[1] == arn
