"""One server that asks everybody who they are."""

from testkit.protected_server import *  # noqa: F403
