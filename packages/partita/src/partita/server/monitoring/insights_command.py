"""`partita insights`: the keys of a table that are accessed or throttled most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from partita.server.monitoring.display_format import shown_key, shown_number
from partita.server.monitoring.page_fetching import fetch_json

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
            f"Contributor Insights are not enabled for {table}. To enable them: "
            f"`aws dynamodb update-contributor-insights --table-name {table} "
            "--contributor-insights-action ENABLE`."
        )
    for resource in resources:
        name = "/".join(filter(None, (resource["TableName"], resource.get("IndexName"))))
        for rule in resource["Rules"]:
            yield from _rule(name, rule)


def _rule(name: str, rule: dict[str, Any]) -> Iterator[str]:
    kind = rule["RuleName"].split("-")[1]
    total, error = shown_number(rule["Total"]), shown_number(rule["ErrorMax"])
    bound = f", each at most {error} too low" if rule["ErrorMax"] else ""
    yield f"{name}: {TITLES[kind]} ({rule['Counts']}, {total} in all{bound})"
    for contributor in rule["Contributors"]:
        share = contributor["Value"] / rule["Total"]
        keys = " / ".join(map(shown_key, contributor["Keys"]))
        yield f"  {shown_number(contributor['Value']):>12} {share:>5.0%}  {keys}"
