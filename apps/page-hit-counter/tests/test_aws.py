"""The template for AWS, the function between a stream and the consumer, the job for Flink."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.applications.visits import MadeVisit, visits
from page_hit_counter.aws import lambda_functions
from page_hit_counter.aws.flink_job import file_options, flink_job, interval, kinesis_options
from page_hit_counter.aws.pagehits_cloudformation import template
from page_hit_counter.counting.tumbling_windows import recount
from page_hit_counter.pagehits_settings import DAY, PageHitSettings, Period
from page_hit_counter.spam.adjustments import Adjustment, AdjustmentRow
from partita_services.cloudformation_resources import logical_id
from testkit import ROOT
from testkit.servers import processes

FLINK_APPLICATION = Path(lambda_functions.__file__).with_name("flink_application.py")
FLINK = "apache-flink==2.3.0"
FLINK_VENV = ROOT / ".peers" / FLINK.replace("==", "-")
INSTALL_SECONDS_MAX = 900
JOB_SECONDS_MAX = 600
REGIONS = ["us-east-1", "eu-west-1"]


# CloudFormation


def test_the_template_passes_cfn_lint() -> None:
    lint = pytest.importorskip("cfnlint.api", reason="cfn-lint is not installed").lint
    printed = processes.run("pagehits", "cloudformation")
    assert printed.returncode == 0, printed.stderr
    found = lint(printed.stdout, regions=REGIONS)
    assert [match for match in found if match.rule.id[0] in "EW"] == []


def test_the_template_follows_the_settings(tmp_path: Path) -> None:
    config = tmp_path / "pagehits.toml"
    config.write_text('stream = "visits"\nshards = 5\ntable = "hits.v2"\n')
    printed = processes.run("pagehits", "cloudformation", "--config", config)
    resources = json.loads(printed.stdout)["Resources"]
    assert resources["Visits"]["Properties"]["Name"] == "visits"
    assert resources["Visits"]["Properties"]["ShardCount"] == 5
    assert resources["Counts"]["Properties"]["Name"] == "visits-counts"
    assert logical_id("hits.v2") == "HitsV2Table"
    assert resources["HitsV2Table"]["Properties"]["TableName"] == "hits.v2"


def test_tables_that_cannot_be_counted_again_have_point_in_time_recovery() -> None:
    settings = PageHitSettings()
    tables = {
        resource["Properties"]["TableName"]: resource["Properties"][
            "PointInTimeRecoverySpecification"
        ]
        for resource in template(settings)["Resources"].values()
        if resource["Type"] == "AWS::DynamoDB::Table"
    }
    recovered = {name for name, setting in tables.items() if setting["PointInTimeRecoveryEnabled"]}
    assert recovered == {settings.assets_table, settings.spam.quarantine_table}


def test_the_functions_of_the_template_exist() -> None:
    resources = template(PageHitSettings())["Resources"].values()
    handlers = [
        resource["Properties"]["Handler"]
        for resource in resources
        if resource["Type"] == "AWS::Lambda::Function"
    ]
    assert len(handlers) == 3
    for handler in handlers:
        module, _, name = handler.rpartition(".")
        assert callable(getattr(import_module(module), name))


def test_records_of_a_stream_reach_the_consumer_and_failures_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[dict[str, Any]] = []

    def consumer(event: dict[str, Any], context: object = None) -> dict[str, Any]:
        seen.append(event)
        results = ["Ok", "DeliveryFailed", "Ok"]
        return {
            "records": [
                {"recordId": record["recordId"], "result": result}
                for record, result in zip(event["records"], results, strict=True)
            ]
        }

    monkeypatch.setattr(lambda_functions, "consumer", consumer)
    records = [{"kinesis": {"sequenceNumber": str(n), "data": f"data{n}"}} for n in range(3)]
    answer = lambda_functions.stream_consumer({"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    assert seen == [{"records": [{"recordId": str(n), "data": f"data{n}"} for n in range(3)]}]


# Flink


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "'1' SECOND"),
        (90, "'90' SECOND"),
        (150, "'150' SECOND(3)"),
        (300, "'5' MINUTE"),
        (3_600, "'1' HOUR"),
        (86_400, "'1' DAY"),
        (6_060, "'101' MINUTE(3)"),
    ],
)
def test_lengths_are_written_as_sql_writes_them(seconds: int, text: str) -> None:
    assert interval(seconds) == text


def test_each_period_of_the_settings_is_a_statement_of_the_job() -> None:
    short = Period(name="minute", code="M", seconds=60, count=5, max_age_seconds=10)
    settings = PageHitSettings(periods=(short, DAY), lateness_seconds=7)
    arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/visits"
    options = kinesis_options(arn, "eu-west-1")
    text = flink_job(settings, options, options).text()
    assert text.count("INSERT INTO pagehit_counts") == 2
    assert "'M'" in text and "INTERVAL '1' MINUTE))" in text and "'H'" in text
    assert "`rowtime` - INTERVAL '7' SECOND" in text
    assert text.count(f"'stream.arn' = '{arn}'") == 2


def test_the_command_prints_sql_or_the_job(tmp_path: Path) -> None:
    printed = processes.run("pagehits", "flink-sql", "--region", "eu-north-1")
    assert printed.stdout.startswith("SET 'table.local-time-zone' = 'UTC';")
    assert "arn:aws:kinesis:eu-north-1:123456789012:stream/pagehits'" in printed.stdout
    job = json.loads(processes.run("pagehits", "flink-sql", "--json").stdout)
    assert len(job["counts"]) == 3


@pytest.fixture(scope="module")
def flink() -> Path:
    """Returns a Python with Flink: PARTITA_FLINK_PYTHON, or one that is installed and kept."""
    named = os.environ.get("PARTITA_FLINK_PYTHON")
    if named:
        return Path(named)
    python = FLINK_VENV / "bin" / "python"
    if not python.exists():
        venv.create(FLINK_VENV, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", FLINK]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{FLINK} (842 MB) could not be fetched in {INSTALL_SECONDS_MAX} seconds")
    if done.returncode:
        pytest.skip(f"{FLINK} (842 MB) cannot be had: {done.stderr.strip().splitlines()[-1]}")
    return python


def records(made: list[MadeVisit]) -> list[dict[str, Any]]:
    """Makes records of the stream with seventy visits each; some span the end of a window."""
    return [
        {"id": f"record-{first}", "visits": [_event(visit) for visit in made[first : first + 70]]}
        for first in range(0, len(made), 70)
    ]


def _event(visit: MadeVisit) -> dict[str, Any]:
    event = {
        "brand": visit.brand,
        "assetId": visit.asset_id,
        "sectionId": visit.section_id,
        "paidType": visit.paid_type,
        "resourceType": visit.resource_type,
        "time": visit.time,
    }
    return {name: value for name, value in event.items() if value is not None}


@pytest.mark.soak
def test_flink_counts_what_the_built_in_counter_counts(flink: Path, tmp_path: Path) -> None:
    made = visits(minutes=130, per_second=10, assets=400)
    made = [v._replace(resource_type=None) if n % 97 == 5 else v for n, v in enumerate(made)]
    brand, asset, section, paid, kind = made[0][:5]
    taken = AdjustmentRow(brand, asset, section, paid, kind or "", int(made[0].time), -1)
    source = tmp_path / "records"
    source.mkdir()
    with (source / "records.json").open("w") as file:
        for number, record in enumerate(records(made)):
            # Some are repeated, as by a sender that got no answer.
            file.write((json.dumps(record) + "\n") * (2 if number % 10 == 0 else 1))
            if number == 0:
                file.write(Adjustment("withdraw:1", (taken,)).encode().decode() + "\n")
    sink = tmp_path / "counts"
    job = flink_job(PageHitSettings(), file_options(str(source)), file_options(str(sink)))
    job.options["parallelism.default"] = "1"
    (tmp_path / "job.json").write_text(json.dumps(job._asdict()))
    done = subprocess.run(
        [str(flink), str(FLINK_APPLICATION), str(tmp_path / "job.json")],
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    assert counted_by_flink(sink) == expected(made, taken)


def counted_by_flink(sink: Path) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for path in sink.rglob("part-*"):
        for line in path.read_bytes().splitlines():
            row = msgspec.json.decode(line)
            names = ("period", "timestamp", "brand", "assetId", "sectionId", "paidType")
            key = (*(row[name] for name in names), row["resourceType"])
            found[key] += row["hitCount"]
    return found


def expected(made: list[MadeVisit], taken: AdjustmentRow) -> Counter[tuple[Any, ...]]:
    periods = {period.code: period for period in PageHitSettings().periods}
    found: Counter[tuple[Any, ...]] = Counter()
    for (code, start), rows in recount(made, PageHitSettings().periods).items():
        for row, hits in rows.items():
            found[code, periods[code].stamp(start), *row] = hits
    for code, period in periods.items():
        found[code, period.stamp(period.start(taken.time)), *taken[:5]] += taken.hits
    return +found
