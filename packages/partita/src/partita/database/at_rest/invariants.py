"""All invariants of the stored data, one function for each.

The expected data is computed by the same functions that write it. Keys are read in order and looked
up one by one, so a folder of any size is checked with little memory. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from partita.database.at_rest.captures_check import (
    captured_changes_are_in_order,
    captures_belong_to_destinations,
)
from partita.database.at_rest.catalog_check import (
    leftovers_are_well_formed,
    nothing_is_unknown,
    numbers_are_given_once,
    tables_are_readable,
    token_times_have_their_tokens,
    tokens_have_their_times,
)
from partita.database.at_rest.change_log_check import (
    changes_are_in_order,
    changes_lead_to_the_items,
    open_streams_belong_to_tables,
    streams_are_readable,
)
from partita.database.at_rest.check_findings import CheckedFolder, CheckFinding
from partita.database.at_rest.event_log_check import (
    event_streams_are_readable,
    open_shards_share_all_hash_keys,
    records_are_in_order,
)
from partita.database.at_rest.items_check import (
    collections_have_their_sizes,
    entries_belong_to_items,
    expiries_belong_to_items,
    items_are_right,
)
from partita.database.tables.definition.table_catalog import has_format

# The first three collect tables and streams, which all others need.
FOLDER_INVARIANTS = (
    tables_are_readable,
    streams_are_readable,
    event_streams_are_readable,
    numbers_are_given_once,
    leftovers_are_well_formed,
    nothing_is_unknown,
    tokens_have_their_times,
    token_times_have_their_tokens,
    open_streams_belong_to_tables,
    changes_are_in_order,
    changes_lead_to_the_items,
    captures_belong_to_destinations,
    captured_changes_are_in_order,
    open_shards_share_all_hash_keys,
    records_are_in_order,
)
TABLE_INVARIANTS = (
    items_are_right,
    entries_belong_to_items,
    collections_have_their_sizes,
    expiries_belong_to_items,
)


def check(folder: CheckedFolder) -> Iterator[CheckFinding]:
    """Yields everything that is wrong; raises StorageError for a folder in another format."""
    has_format(folder.snapshot)
    for invariant in FOLDER_INVARIANTS:
        yield from invariant(folder)
    for table in folder.tables:
        for table_invariant in TABLE_INVARIANTS:
            yield from table_invariant(folder, table)
