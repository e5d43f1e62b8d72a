"""Pages about spam, comparison and AWS are right about commands, settings and features."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from page_hit_counter.commands import pagehits
from page_hit_counter.spam.detection.features import FEATURES
from page_hit_counter.spam.spam_settings import SpamSettings
from testkit import ROOT

DOCS = ROOT / "docs"
SPAM_PAGE = "reference/page-hits/spam-filter.md"
PAGES = (SPAM_PAGE, "explanation/page-hits-compared.md", "reference/page-hits/on-aws.md")
COMMAND = re.compile(r"^partita pagehits ([^\n>]+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_are_understood(page: str, tmp_path: Path) -> None:
    commands = COMMAND.findall((DOCS / page).read_text())
    assert commands
    config = tmp_path / "pagehits.toml"
    config.touch()
    for command in commands:
        words = command.replace("pagehits.toml", str(config)).split()
        found: click.Command = pagehits
        while isinstance(found, click.Group):
            found = found.commands[words.pop(0)]
        found.make_context("partita", words)


def test_all_features_and_rules_have_their_words() -> None:
    text = (DOCS / SPAM_PAGE).read_text()
    for name in (*FEATURES, "bot", "reload", "rate", "source", "confirmed"):
        assert f"`{name}`" in text
    for name in re.findall(r"`([a-z]+_[a-z_]+)`", text):
        assert name in SpamSettings.__struct_fields__
    assert SpamSettings().reload_hits == 3
    assert SpamSettings().visitor_hits_per_minute == 60
    assert SpamSettings().source_hits_per_minute == 600
    assert SpamSettings().learning_points == 256
    assert SpamSettings().retention_days == 7
    assert SpamSettings().mode == "observe"
