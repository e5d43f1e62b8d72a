"""`partita pagehits cost`, `flink-sql` and `cloudformation`: the service on AWS."""

from __future__ import annotations

import json
from pathlib import Path

import click

from page_hit_counter.commands.command_options import config_option, json_option, print_json

REGION = "us-east-1"


@click.command()
@click.option(
    "--prices",
    "price_name",
    default=None,
    help="`document` (the thesis), `today`, or the path of a file. By default both documents.",
)
@json_option
def cost(price_name: str | None, as_json: bool) -> None:
    """Compare what designs cost on AWS: Lambda with Fargate, DynamoDB with Aurora."""
    from page_hit_counter.aws.aws_costs import PRICES, read_prices
    from page_hit_counter.aws.aws_costs import compare as compared

    names = [price_name] if price_name else list(PRICES)
    price_lists = [read_prices(name) for name in names]
    if as_json:
        print_json(
            [
                {"prices": prices, "tables": [c._asdict() for c in compared(prices)]}
                for prices in price_lists
            ]
        )
        return
    for prices in price_lists:
        click.echo(f"Prices: {prices.name}, {prices.date} ({prices.note})")
        for source in prices.sources:
            click.echo(f"  {', '.join(source.figures)}: {source.source}")
        click.echo()
        for comparison in compared(prices):
            click.echo(comparison.title)
            for row in (comparison.columns, *comparison.rows):
                click.echo(f"  {row[0]:<50}" + "".join(f"{cell:>18}" for cell in row[1:]))
            click.echo()


@click.command("flink-sql")
@config_option
@click.option("--source-arn", help="The Kinesis stream of visits.")
@click.option("--sink-arn", help="The Kinesis stream that counts are written to.")
@click.option("--region", default=REGION, show_default=True)
@click.option("--source-files", help="Read records from a folder of JSON lines instead.")
@click.option("--sink-files", help="Write counts to a folder instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the job for flink_application.py.")
def flink_sql(
    config: Path | None,
    source_arn: str | None,
    sink_arn: str | None,
    region: str,
    source_files: str | None,
    sink_files: str | None,
    as_json: bool,
) -> None:
    """Print the counter as a job for Apache Flink."""
    from page_hit_counter import pagehits_settings
    from page_hit_counter.aws.flink_job import (
        file_options,
        flink_job,
        kinesis_options,
        kinesis_source_options,
    )

    loaded = pagehits_settings.load(config)
    account = f"arn:aws:kinesis:{region}:123456789012:stream/"
    source = kinesis_source_options(source_arn or f"{account}{loaded.stream}", region)
    sink = kinesis_options(sink_arn or f"{account}{loaded.stream}-counts", region)
    job = flink_job(
        loaded,
        file_options(source_files) if source_files else source,
        file_options(sink_files) if sink_files else sink,
    )
    click.echo(json.dumps(job._asdict(), indent=2) if as_json else job.text(), nl=as_json)


@click.command()
@config_option
def cloudformation(config: Path | None) -> None:
    """Print a CloudFormation template of the service as JSON."""
    from page_hit_counter import pagehits_settings
    from page_hit_counter.aws.pagehits_cloudformation import template

    click.echo(json.dumps(template(pagehits_settings.load(config)), indent=2))
