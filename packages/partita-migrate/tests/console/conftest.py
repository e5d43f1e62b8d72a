"""One server and one browser for all tests of the console."""

from testkit.browser.console import *  # noqa: F403
