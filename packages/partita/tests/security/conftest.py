"""One server that asks everybody who they are."""

from testkit.servers.protected_server import *  # noqa: F403
