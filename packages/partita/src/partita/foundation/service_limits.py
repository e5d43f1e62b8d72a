"""Every limit of the service that its model does not contain, in one place, with its source.

Sources: "guide" is the DynamoDB developer guide (Service, account and table quotas; Constraints),
"model" is botocore's service description, "recorded" is a response of the real service in a public
conformance suite, "ours" is Partita's own choice. `tests/wire/test_limits.py` has a test for each
limit, or says where it is.
"""

from __future__ import annotations

from typing import Final

KB: Final = 1024
MB: Final = 1024 * KB
GB: Final = 1024 * MB

# Values and items (guide, "Constraints").
ITEM_BYTES_MAX: Final = 400 * KB
NESTING_LEVELS_MAX: Final = 32
NEWER_NESTING_LEVELS_MAX: Final = 62
"""Deeper values are checked by the service's older generation of checks (recorded)."""
ATTRIBUTE_NAME_BYTES_MAX: Final = 65_535
PARTITION_KEY_BYTES_MAX: Final = 2048
SORT_KEY_BYTES_MAX: Final = 1024
NUMBER_DIGITS_MAX: Final = 38
NUMBER_EXPONENT_MAX: Final = 125
NUMBER_EXPONENT_MIN: Final = -130
# Ours: an error repeats this much of an invalid number.
NUMBER_TEXT_CHARS_MAX: Final = 1000

# Expressions (guide, "Expression parameters").
EXPRESSION_BYTES_MAX: Final = 4 * KB
EXPRESSION_VALUES_BYTES_MAX: Final = 2 * MB
EXPRESSION_PLACEHOLDER_BYTES_MAX: Final = 255
EXPRESSION_OPERATORS_MAX: Final = 300
IN_OPERANDS_MAX: Final = 100
DOCUMENT_PATH_ELEMENTS_MAX: Final = 32
LIST_INDEX_MAX: Final = 2**31 - 1
STATEMENT_NESTING_MAX: Final = 60
"""Ours: the depth to which brackets and operators of a PartiQL statement may nest."""
STATEMENT_READS_MAX: Final = 50

# Tables and indexes (guide; recorded).
TABLE_NAME_CHARS_MIN: Final = 3
TABLE_NAME_CHARS_MAX: Final = 255
LOCAL_INDEXES_PER_TABLE_MAX: Final = 5
GLOBAL_INDEXES_PER_TABLE_MAX: Final = 20
INDEX_KEY_ATTRIBUTES_MAX: Final = 4
PROJECTED_ATTRIBUTES_MAX: Final = 100
PROJECTED_ATTRIBUTES_PER_INDEX_MAX: Final = 20
TAGS_PER_RESOURCE_MAX: Final = 50
TAG_KEY_CHARS_MAX: Final = 128
TAG_VALUE_CHARS_MAX: Final = 256
EXPIRED_SECONDS_MAX: Final = 5 * 365 * 24 * 3600
ITEM_COLLECTION_BYTES_MAX = 10 * GB
PROVISIONED_UNITS_MAX: Final = 1_000_000_000_000
ACCOUNT_CAPACITY_UNITS_MAX: Final = 80_000
TABLE_CAPACITY_UNITS_MAX: Final = 40_000
LIST_TABLES_PAGE_MAX: Final = 100
LIST_BACKUPS_PAGE_MAX: Final = 100
RECOVERY_DAYS_MAX: Final = 35
SYSTEM_BACKUP_SECONDS: Final = 35 * 24 * 3600
"""The time for which the backup of a deleted table is kept."""
RESTORES_MAX: Final = 50
IMPORTS_MAX: Final = 50
"""Imports in progress at the same time."""
LIST_JOBS_PAGE: Final = 10
"""The default page size of lists of exports and imports (recorded)."""
IMPORT_TOKEN_SECONDS: Final = 8 * 3600
BULK_OPERATIONS_MAX: Final = 50
BULK_TABLE_OPERATIONS_MAX: Final = 1
"""Bulk operations in progress on a table. The guide mentions such quotas without their values."""
LIST_BULK_PAGE: Final = 10
LISTED_SECONDS: Final = 90 * 24 * 3600
"""The time for which exports, imports and bulk operations are listed (model)."""
LIST_INSIGHTS_PAGE_MAX: Final = 100
ON_DEMAND_READ_UNITS: Final = 12_000
ON_DEMAND_WRITE_UNITS: Final = 4_000
DECREASES_PER_DAY: Final = 4
DECREASE_SECONDS: Final = 3600

# Units and partitions (guide, "Read and write operations" and "Burst and adaptive capacity"; the
# cost of transactions from "Transactions").
READ_UNIT_BYTES: Final = 4 * KB
WRITE_UNIT_BYTES: Final = 1 * KB
TRANSACTION_FACTOR: Final = 2
PARTITION_READ_UNITS: Final = 3_000
PARTITION_WRITE_UNITS: Final = 1_000
PARTITION_BYTES_MAX: Final = 10 * GB
# Ours, so that a number in a request cannot fill the memory: enough for a million write units.
PARTITIONS_MAX: Final = 1024

# Requests (guide; model).
PAGE_BYTES_MAX: Final = 1 * MB
BATCH_GET_KEYS_MAX: Final = 100
BATCH_GET_BYTES_MAX: Final = 16 * MB
BATCH_WRITE_REQUESTS_MAX: Final = 25
TRANSACTION_BYTES_MAX: Final = 4 * MB
CLIENT_TOKEN_SECONDS: Final = 600
REQUEST_BODY_BYTES_MAX: Final = 16 * MB

# Streams (guide, "Change data capture for DynamoDB Streams"; model). The limits at which shards
# split are ours.
STREAM_RETENTION_SECONDS: Final = 24 * 3600
SHARD_ITERATOR_SECONDS: Final = 15 * 60
STREAM_RECORDS_MAX: Final = 1000
STREAM_RECORDS_BYTES_MAX: Final = 1 * MB
LIST_STREAMS_PAGE_MAX: Final = 100
DESCRIBE_STREAM_PAGE_MAX: Final = 100
SHARDS_BY_LOAD_MAX: Final = 16
SHARD_SECONDS_MAX: Final = 4 * 3600
SHARD_CHANGES_MAX: Final = 250_000

# Event streams (Kinesis guide, "Quotas and limits"; model). Two are ours: the number of shards,
# which is higher in the service, and how many fit into one description.
EVENT_RETENTION_HOURS_MIN: Final = 24
EVENT_RETENTION_HOURS_MAX: Final = 8760
EVENT_ITERATOR_SECONDS: Final = 300
EVENT_TOKEN_SECONDS: Final = 300
EVENT_RECORD_KIB_MAX: Final = 1024
EVENT_RECORD_BYTES_MAX: Final = 10 * MB
PUT_RECORDS_BYTES_MAX: Final = 10 * MB
GET_RECORDS_MAX: Final = 10_000
GET_RECORDS_BYTES_MAX: Final = 10 * MB
SHARD_WRITE_BYTES: Final = 1 * MB
SHARD_WRITE_RECORDS: Final = 1000
SHARD_READ_BYTES: Final = 2 * MB
SHARD_READS: Final = 5
EVENT_SHARDS_MAX: Final = 1000
EVENT_SHARDS_ON_DEMAND: Final = 4
ON_DEMAND_STREAMS_MAX: Final = 50
EVENT_STREAM_TAGS_MAX: Final = 50
LIST_EVENT_STREAMS_PAGE_MAX: Final = 100
DESCRIBE_EVENT_SHARDS_PAGE_MAX: Final = 100
LIST_EVENT_SHARDS_PAGE_MAX: Final = 1000

# The listener (ours).
REQUEST_HEADER_BYTES_MAX: Final = 16 * KB
