"""The counter as an Apache Flink SQL job, for traffic beyond one machine.

It reads the same stream and counts the same windows as `counting.counter`; settings become SQL. A
record of the stream holds many visits. Flink takes the time of a record from its first visit, and
emits a window when records have passed its end. A record that spans the end of a window adds a
second, small row to the counts of the next window, and lists add up both rows.

Two things differ from the built-in counter: lateness is decided by the time of a record's first
visit instead of its arrival, and hits that are released after their window was emitted are not
counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from page_hit_counter.pagehits_settings import PageHitSettings, Period

DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS = 86_400, 3_600, 60
UNITS = (("DAY", DAY_SECONDS), ("HOUR", HOUR_SECONDS), ("MINUTE", MINUTE_SECONDS), ("SECOND", 1))
Options = Mapping[str, str]
"""The options of a connector, which go into WITH (...)."""

SOURCE = """\
CREATE TABLE pagehit_records (
    `id` STRING,
    `visits` ARRAY<ROW<
        `brand` STRING, `assetId` BIGINT, `sectionId` INT, `paidType` STRING,
        `resourceType` STRING, `time` DOUBLE>>,
    `adjustment` STRING,
    `rows` ARRAY<ARRAY<STRING>>,
    `first` AS COALESCE(`visits`[1].`time`, CAST(`rows`[1][6] AS DOUBLE)),
    `rowtime` AS TO_TIMESTAMP_LTZ(CAST(
        COALESCE(`visits`[1].`time`, CAST(`rows`[1][6] AS DOUBLE)) * 1000 AS BIGINT), 3),
    WATERMARK FOR `rowtime` AS `rowtime` - INTERVAL {lateness}
) WITH (
    {options}
)"""

SINK = """\
CREATE TABLE pagehit_counts (
    `brand` STRING,
    `period` STRING,
    `assetId` BIGINT,
    `sectionId` INT,
    `paidType` STRING,
    `resourceType` STRING,
    `hitCount` BIGINT,
    `timestamp` STRING
) WITH (
    {options}
)"""

# A record that its sender repeated counts once. Flink keeps `rowtime` a time attribute only if the
# first of the repeated rows is kept.
RECORDS_ONCE = """\
CREATE TEMPORARY VIEW records_once AS
SELECT `visits`, `rows`, `first`, `rowtime`
FROM (
    SELECT *, ROW_NUMBER() OVER (
        PARTITION BY COALESCE(`id`, `adjustment`) ORDER BY `rowtime` ASC) AS `repeated`
    FROM pagehit_records
)
WHERE `repeated` = 1"""

HITS = """\
CREATE TEMPORARY VIEW hits AS
SELECT v.`brand`, v.`assetId`, v.`sectionId`, v.`paidType`, v.`resourceType`,
    v.`time`, CAST(1 AS BIGINT) AS `hits`, r.`first`, r.`rowtime`
FROM records_once AS r
CROSS JOIN UNNEST(r.`visits`)
    AS v (`brand`, `assetId`, `sectionId`, `paidType`, `resourceType`, `time`)
WHERE v.`resourceType` IS NOT NULL
UNION ALL
SELECT a.`row`[1], CAST(a.`row`[2] AS BIGINT), CAST(a.`row`[3] AS INT), a.`row`[4], a.`row`[5],
    CAST(a.`row`[6] AS DOUBLE), CAST(a.`row`[7] AS BIGINT), r.`first`, r.`rowtime`
FROM records_once AS r
CROSS JOIN UNNEST(r.`rows`) AS a (`row`)"""

COUNT = """\
INSERT INTO pagehit_counts
SELECT `brand`, '{code}', `assetId`, `sectionId`, `paidType`, `resourceType`, SUM(`hits`),
    DATE_FORMAT(TO_TIMESTAMP_LTZ(CAST(FLOOR(`time` / {seconds}) AS BIGINT) * {seconds}, 0),
        '{stamp}')
FROM TABLE(TUMBLE(TABLE hits, DESCRIPTOR(`rowtime`), INTERVAL {length}))
WHERE (FLOOR(`time` / {seconds}) + 1) * {seconds} + {lateness} > `first`
GROUP BY window_start, window_end, FLOOR(`time` / {seconds}),
    `brand`, `assetId`, `sectionId`, `paidType`, `resourceType`
HAVING SUM(`hits`) > 0"""


class FlinkJob(NamedTuple):
    options: dict[str, str]
    definitions: list[str]
    """The statements that create tables and views."""
    counts: list[str]
    """One statement for each period. Run as a statement set, they read the stream once."""

    def text(self) -> str:
        """Returns the job as a file for Flink's SQL client."""
        options = [f"SET '{name}' = '{value}';" for name, value in self.options.items()]
        counting = ["EXECUTE STATEMENT SET\nBEGIN", *(f"{count};" for count in self.counts), "END;"]
        definitions = [f"{definition};" for definition in self.definitions]
        return "\n\n".join(["\n".join(options), *definitions, *counting]) + "\n"


def flink_job(settings: PageHitSettings, source: Options, sink: Options) -> FlinkJob:
    longest = max(period.seconds for period in settings.periods)
    return FlinkJob(
        options={
            "table.local-time-zone": "UTC",
            # Without it a shard without records would hold the watermark back.
            "table.exec.source.idle-timeout": "10 s",
            # How long repeated records are recognised, which is longer than any window.
            "table.exec.state.ttl": f"{2 * -(-longest // HOUR_SECONDS)} h",
        },
        definitions=[
            SOURCE.format(
                lateness=interval(max(1, round(settings.lateness_seconds))), options=_with(source)
            ),
            SINK.format(options=_with(sink)),
            RECORDS_ONCE,
            HITS,
        ],
        counts=[
            COUNT.format(
                code=period.code,
                stamp=_stamp_format(period),
                seconds=period.seconds,
                length=interval(period.seconds),
                lateness=settings.lateness_seconds,
            )
            for period in settings.periods
        ],
    )


def kinesis_options(stream_arn: str, region: str) -> dict[str, str]:
    return {
        "connector": "kinesis",
        "stream.arn": stream_arn,
        "aws.region": region,
        "format": "json",
    }


def kinesis_source_options(stream_arn: str, region: str) -> dict[str, str]:
    return {**kinesis_options(stream_arn, region), "source.init.position": "TRIM_HORIZON"}


def file_options(path: str) -> dict[str, str]:
    """Returns the options for a folder of JSON lines, with which the job runs without Kinesis."""
    return {"connector": "filesystem", "path": path, "format": "json"}


def interval(seconds: int) -> str:
    """Returns an SQL interval in the largest unit that divides it, such as '5' MINUTE."""
    unit, length = next((unit, length) for unit, length in UNITS if seconds % length == 0)
    number = str(seconds // length)
    # By default an interval has two digits; more need an explicit precision.
    return f"'{number}' {unit}" + (f"({len(number)})" if len(number) > 2 else "")


def _stamp_format(period: Period) -> str:
    """Returns the format that times have in hash keys."""
    return "yyyy-MM-dd''T''HH:mm" + ("" if period.seconds % MINUTE_SECONDS == 0 else ":ss")


def _with(options: Options) -> str:
    return ",\n    ".join(f"'{name}' = '{_quoted(value)}'" for name, value in options.items())


def _quoted(text: str) -> str:
    return text.replace("'", "''")
