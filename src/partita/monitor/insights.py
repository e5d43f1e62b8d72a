"""`partita insights`: the keys of a table that are accessed or throttled most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partita.monitor.pages import fetch_json

TITLES = {
    "PKC": "Most accessed partition keys",
    "SKC": "Most accessed items",
    "PKT": "Most throttled partition keys",
    "SKT": "Most throttled items",
}


def listed(endpoint: str, table: str) -> Iterator[str]:
    resources = fetch_json(endpoint, "/insights", table=table)["Resources"]
    if not resources:
        yield (
            f"Contributor Insights are not enabled for {table}; "
            f"`aws dynamodb update-contributor-insights --table-name {table} "
            "--contributor-insights-action ENABLE` does so."
        )
    for resource in resources:
        name = "/".join(filter(None, (resource["TableName"], resource.get("IndexName"))))
        for rule in resource["Rules"]:
            yield from _rule(name, rule)


def _rule(name: str, rule: dict[str, Any]) -> Iterator[str]:
    kind = rule["RuleName"].split("-")[1]
    error = f", each at most {rule['ErrorMax']:g} too low" if rule["ErrorMax"] else ""
    yield f"{name}: {TITLES[kind]} ({rule['Counts']}, {rule['Total']:g} in all{error})"
    for contributor in rule["Contributors"]:
        share = contributor["Value"] / rule["Total"]
        yield f"  {contributor['Value']:>12g} {share:>5.0%}  {' / '.join(contributor['Keys'])}"
