"""One server and one browser for all tests of the console."""

from testkit.console import *  # noqa: F403
