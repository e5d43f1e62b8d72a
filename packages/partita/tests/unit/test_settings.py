"""The settings file: valid settings, and the errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import PartitaError
from partita.foundation.server_settings import load


def test_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "partita.toml"
    path.write_text(
        """
        [serve]
        port = 9000

        [[triggers]]
        name = "totals"
        table = "orders"
        function = "shop.totals:handle"
        batch_size = 10
        starting_position = "LATEST"
        filter_patterns = ['{"eventName": ["INSERT"]}']

        [[triggers]]
        name = "audit"
        table = "orders"
        endpoint = "http://localhost:9001/"

        [[functions]]
        name = "reserve"
        handler = "shop.orders:reserve"
        concurrency = 5

        [workflows]
        time_scale = 60
        """
    )
    settings = load(path)
    assert settings.serve == {"port": 9000}
    (reserve,) = settings.functions
    assert (reserve.handler, reserve.concurrency) == ("shop.orders:reserve", 5)
    assert settings.workflows.time_scale == 60
    totals, audit = settings.triggers
    assert (totals.function, totals.batch_size, totals.starting_position) == (
        "shop.totals:handle",
        10,
        "LATEST",
    )
    assert (audit.endpoint, audit.batch_size, audit.maximum_retries) == (
        "http://localhost:9001/",
        100,
        -1,
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[serve", "are invalid"),
        ("[server]\nport = 1", "server"),
        ('[[functions]]\nname = "a b"\nhandler = "m:f"', "name"),
        ('[[functions]]\nname = "a"\nhandler = "m"', "handler"),
        ('[[functions]]\nname = "a"\nhandler = "m:f"\n' * 2, "two functions with the name a"),
        ('[[functions]]\nname = "a"\nhandler = "m:f"\ntimeout_seconds = 901', "timeout_seconds"),
        ("[workflows]\ntime_scale = 0", "time_scale"),
        ('[[triggers]]\nname = "a"', "table"),
        ('[[triggers]]\nname = "a"\ntable = "t"', "needs a function or an endpoint"),
        (
            '[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m:f"\nendpoint = "http://x"',
            "and not both",
        ),
        ('[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m n"', "function"),
        ('[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m:f"\nbatch_size = 0', "batch_size"),
        ('[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m:f"\non_failure = ""', "on_failure"),
        ('[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m:f"\nbatch = 5', "batch"),
        (
            '[[triggers]]\nname = "a"\ntable = "t"\nfunction = "m:f"\n' * 2,
            "two triggers with the name a",
        ),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "partita.toml"
    path.write_text(text)
    with pytest.raises(PartitaError) as refused:
        load(path)
    assert reason in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PartitaError, match="Cannot read the settings"):
        load(tmp_path / "absent.toml")
