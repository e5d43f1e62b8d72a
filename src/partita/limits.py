"""Every limit of the service that its model does not state, in one place, with its source.

Sources: "guide" is the DynamoDB developer guide (Service, account and table quotas; Constraints),
"model" is botocore's service description, "recorded" is an answer of the real service kept by a
public conformance suite. `tests/wire/test_limits.py` has one test per limit.
"""

from __future__ import annotations

KB = 1024
MB = 1024 * KB
GB = 1024 * MB

# Values and items (guide, "Constraints").
ITEM_BYTES_MAX = 400 * KB
NESTING_LEVELS_MAX = 32
ATTRIBUTE_NAME_BYTES_MAX = 65_535
PARTITION_KEY_BYTES_MAX = 2048
SORT_KEY_BYTES_MAX = 1024
NUMBER_DIGITS_MAX = 38
NUMBER_EXPONENT_MAX = 125
NUMBER_EXPONENT_MIN = -130
# Ours: how much of a wrong number an error repeats.
NUMBER_TEXT_CHARS_MAX = 1000

# Expressions (guide, "Expression parameters").
EXPRESSION_BYTES_MAX = 4 * KB
EXPRESSION_VALUES_BYTES_MAX = 2 * MB
EXPRESSION_PLACEHOLDER_BYTES_MAX = 255
EXPRESSION_OPERATORS_MAX = 300
IN_OPERANDS_MAX = 100
DOCUMENT_PATH_ELEMENTS_MAX = 32
LIST_INDEX_MAX = 2**31 - 1

# Tables and indexes (guide; recorded).
TABLE_NAME_CHARS_MIN = 3
TABLE_NAME_CHARS_MAX = 255
LOCAL_INDEXES_PER_TABLE_MAX = 5
GLOBAL_INDEXES_PER_TABLE_MAX = 20
INDEX_KEY_ATTRIBUTES_MAX = 4
PROJECTED_ATTRIBUTES_MAX = 100
TAGS_PER_RESOURCE_MAX = 50
TAG_KEY_CHARS_MAX = 128
TAG_VALUE_CHARS_MAX = 256
EXPIRED_SECONDS_MAX = 5 * 365 * 24 * 3600
ITEM_COLLECTION_BYTES_MAX = 10 * GB
PROVISIONED_UNITS_MAX = 1_000_000_000_000
ACCOUNT_CAPACITY_UNITS_MAX = 80_000
TABLE_CAPACITY_UNITS_MAX = 40_000
LIST_TABLES_PAGE_MAX = 100
ON_DEMAND_READ_UNITS = 12_000
ON_DEMAND_WRITE_UNITS = 4_000

# Requests (guide; model).
PAGE_BYTES_MAX = 1 * MB
BATCH_GET_KEYS_MAX = 100
BATCH_GET_BYTES_MAX = 16 * MB
BATCH_WRITE_REQUESTS_MAX = 25
TRANSACTION_BYTES_MAX = 4 * MB
CLIENT_TOKEN_SECONDS = 600
REQUEST_BODY_BYTES_MAX = 16 * MB

# The listener (ours).
REQUEST_HEADER_BYTES_MAX = 16 * KB
