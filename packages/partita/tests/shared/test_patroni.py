"""Patroni replaces a leader that is killed under load; nothing acknowledged is lost."""

from __future__ import annotations

import time

import pytest

from testkit.data.item_tables import create, item, number
from testkit.servers import processes

from .patroni import STATE_SECONDS_MAX, Cluster
from .test_failover import ACCOUNTS, Transfers
from .test_faults import Writers

ROUNDS = 2


@pytest.mark.soak
def test_leaders_of_a_patroni_cluster_are_killed_under_load() -> None:
    with Cluster() as cluster, processes.starting() as start:
        url = cluster.create("led")
        assert processes.run("storage", "init", url).returncode == 0
        clients = [start("serve", "--port", "0", "--storage", url).client() for _ in range(3)]
        table = create(clients[0])
        for name in ACCOUNTS:
            clients[0].put_item(TableName=table, Item=item(name, euros=100))
        with Writers(clients, table) as writers, Transfers(clients, table):
            for _ in range(ROUNDS):
                cluster.wait_for_standby()
                writers.wait_for(20)
                leader = cluster.wait_for_leader()
                cluster.kill(leader)
                before = list(writers.acknowledged)
                deadline = time.monotonic() + STATE_SECONDS_MAX
                while any(a < b + 10 for a, b in zip(writers.acknowledged, before, strict=True)):
                    assert time.monotonic() < deadline, "no other leads"
                    time.sleep(0.1)
                assert cluster.wait_for_leader() is not leader
                cluster.start(leader)
        for place, acknowledged in enumerate(writers.acknowledged):
            assert number(clients[1], table, f"w{place}", "n") >= acknowledged
        assert sum(number(clients[2], table, name, "euros") for name in ACCOUNTS) == 400
        checked = processes.run("storage", "check", url)
        assert checked.returncode == 0, checked.stdout + checked.stderr
