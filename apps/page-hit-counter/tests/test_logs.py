"""Queries over logs as the thesis uses them: figure 4.3 on a load balancer, table 4.1, visits."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from testkit.servers import processes

FIGURE_4_3 = """
SELECT request_url, COUNT(1) as total_requests
FROM prod
WHERE YEAR = '2020'
      AND elb_status_code = '200'
      AND request_verb = 'GET'
      AND domain_name LIKE 'ucs-prod.com'
      AND request_url LIKE 'https://ucs-prod.com%'
GROUP BY request_url
"""
ARN = "arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067"


def line(target: str, status: int = 200, verb: str = "GET", year: int = 2020) -> str:
    """Makes a line as in the guide of Elastic Load Balancing."""
    return (
        f"https {year}-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 "
        "192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 "
        f'{status} {status} 0 57 "{verb} https://ucs-prod.com:443{target} HTTP/1.1" '
        f'"curl/7.46 \\"quoted\\"" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 {ARN} '
        '"Root=1-58337281-1d84f3d73c47ec4e58577259" "ucs-prod.com" "arn:aws:acm:any" '
        f'1 {year}-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200"'
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = [
        *[line("/hits?period=day&section=1&section=2")] * 6,
        *[line("/hits?section=3&period=week")] * 3,
        *[line("/hits?period=day")] * 10,
        line("/hits"),
        line("/other?x=1"),
        line("/hits?period=day", status=500),
        line("/hits?period=day", verb="POST"),
        line("/hits?period=day", year=2019, status=304),
        "no line of a log",
    ]
    path = tmp_path_factory.mktemp("logs") / "alb.log.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def test_figure_4_3_runs_on_logs_of_a_load_balancer(log: Path) -> None:
    done = processes.run("pagehits", "logs", "query", log, "--sql", FIGURE_4_3, "--json")
    assert done.returncode == 0, done.stderr
    found = {row["request_url"]: row["total_requests"] for row in json.loads(done.stdout)}
    server = "https://ucs-prod.com:443"
    assert found[f"{server}/hits?period=day"] == 10
    assert found[f"{server}/hits?period=day&section=1&section=2"] == 6
    assert "could not be read: 1" in done.stderr


def test_table_4_1_has_the_shares_of_parameter_combinations(log: Path) -> None:
    done = processes.run("pagehits", "logs", "shares", log, "--path", "/hits", "--json")
    assert json.loads(done.stdout) == [
        {"parameters": "(none)", "requests": 1, "share": 0.05},
        {"parameters": "period&section", "requests": 9, "share": 0.45},
        {"parameters": "period", "requests": 10, "share": 0.5},
    ]
    shown = processes.run("pagehits", "logs", "shares", log, "--path", "/hits").stdout
    assert "period&section" in shown and "45.0%" in shown


def test_visits_in_delivered_files_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "visits.gz"
    visits = [{"assetId": number % 3, "sectionId": 1} for number in range(9)]
    path.write_bytes(gzip.compress(json.dumps({"id": "a", "visits": visits}).encode()))
    sql = "SELECT assetId, COUNT(*) AS hits FROM logs GROUP BY assetId ORDER BY assetId"
    done = processes.run("pagehits", "logs", "query", path, "--sql", sql)
    assert done.stdout.split() == ["assetId", "hits", "0", "3", "1", "3", "2", "3"]


@pytest.mark.parametrize(
    "sql", ["SELEC 1", "SELECT * FROM nothing", "DROP TABLE logs", "ATTACH '/tmp/x' AS x"]
)
def test_a_query_that_cannot_or_may_not_run_is_refused_in_a_sentence(log: Path, sql: str) -> None:
    done = processes.run("pagehits", "logs", "query", log, "--sql", sql)
    assert done.returncode == 1
    assert "The query cannot be run" in done.stderr and "Traceback" not in done.stderr
