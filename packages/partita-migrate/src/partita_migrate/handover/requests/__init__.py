"""Writes each access pattern as requests that can be run as they are, with values of example rows.

example_values     the values of conditions, taken from the items of example rows request_writer
the requests in the form of DynamoDB's API boto3_text, javascript_text, partiql_text     the same
requests as texts; `literal_layout` formats values requests_page      all patterns of a design, and
the page `requests.md`
"""

from partita_migrate.handover.requests.requests_page import (
    REQUESTS,
    PatternRequests,
    requests_of,
    to_page,
)

__all__ = ["REQUESTS", "PatternRequests", "requests_of", "to_page"]
