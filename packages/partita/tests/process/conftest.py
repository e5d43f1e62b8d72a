"""What the tests of commands are given."""

from testkit.commands import *  # noqa: F403
