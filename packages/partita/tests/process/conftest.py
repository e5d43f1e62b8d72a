"""What the tests of commands are given."""

from testkit.servers.commands import *  # noqa: F403
