"""Reads access logs of an Application Load Balancer, with the columns of Athena's guide.

Fields are separated by blanks, and some are in quotes. The client, the target and the request are
split into columns; `year`, `month` and `day`, which Athena has as partitions, come from the time.
(Athena guide, "Create the table for ALB access logs"; ELB guide, "Access log entries")
"""

from __future__ import annotations

import re

FIELD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
FIELDS = (
    "type",
    "time",
    "elb",
    "client",
    "target",
    "request_processing_time",
    "target_processing_time",
    "response_processing_time",
    "elb_status_code",
    "target_status_code",
    "received_bytes",
    "sent_bytes",
    "request",
    "user_agent",
    "ssl_cipher",
    "ssl_protocol",
    "target_group_arn",
    "trace_id",
    "domain_name",
    "chosen_cert_arn",
    "matched_rule_priority",
    "request_creation_time",
    "actions_executed",
    "redirect_url",
    "error_reason",
)
FIELDS_MIN = 13
"""The fields up to the request. Older logs have fewer fields than today's."""
NUMBERS = (
    "request_processing_time",
    "target_processing_time",
    "response_processing_time",
    "received_bytes",
    "sent_bytes",
)
COLUMNS = (
    *("type", "time", "elb", "client_ip", "client_port", "target_ip", "target_port"),
    *FIELDS[5:12],
    *("request_verb", "request_url", "request_proto"),
    *FIELDS[13:],
    *("year", "month", "day"),
)
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T")
Row = dict[str, str | float | None]


def read_line(line: str) -> Row | None:
    """Returns the row of a line, or None when it is not a line of such a log."""
    values = [quoted or plain for quoted, plain in FIELD.findall(line)]
    named = dict(zip(FIELDS, values, strict=False))
    if len(values) < FIELDS_MIN or (date := TIME.match(named["time"])) is None:
        return None
    row: Row = {name: None if value == "-" else value for name, value in named.items()}
    for name in ("client", "target"):
        address, _, port = str(row.pop(name) or "").rpartition(":")
        row[f"{name}_ip"], row[f"{name}_port"] = address or None, port or None
    verb, url, protocol = (*str(row.pop("request") or "").split(" "), "", "")[:3]
    row |= {"request_verb": verb, "request_url": url, "request_proto": protocol}
    row |= dict(zip(("year", "month", "day"), date.groups(), strict=True))
    for name in NUMBERS:
        row[name] = _number(row.get(name))
    return row


def _number(value: str | float | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
