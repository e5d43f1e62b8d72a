"""Fixtures for the tests of commands."""

from testkit.servers.commands import *  # noqa: F403
