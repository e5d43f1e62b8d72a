"""Each access pattern as requests that can be run as they stand, with values of example rows.

values      what a condition compares with, taken from items that example rows become
api         the requests in the words of DynamoDB's API
boto3_text, javascript_text, partiql_text   the same as texts, two of them over `layout`
written     all patterns of a design, and `requests.md`
"""

from partita_migrate.handover.requests.requests_page import (
    REQUESTS,
    PatternRequests,
    requests_of,
    to_page,
)

__all__ = ["REQUESTS", "PatternRequests", "requests_of", "to_page"]
