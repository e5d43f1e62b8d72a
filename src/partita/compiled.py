"""The compiled form of the hot rooms: used when it is there and made from this very source.

`scripts/compile` translates the modules of `MODULES` to C with mypyc. The same source runs with and
without it. A build names the digest of the source that it was made from, so an edited module is
never shadowed by an old build: then, or with PARTITA_PURE=1, Python's own modules are imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).parent
BUILD = PACKAGE / ".compiled"
DIGEST = BUILD / "source.digest"
SHARED_LIBRARY = "partita__mypyc"

MODULES = (
    "limits.py",
    "database/item/bounds.py",
    "database/item/keys.py",
    "database/item/numbers.py",
    "database/item/page_bytes.py",
    "database/item/sizes.py",
    "database/item/values.py",
    "database/capacity/accounts.py",
    "database/capacity/buckets.py",
    "database/capacity/contributors.py",
    "database/capacity/insights.py",
    "database/capacity/ledger.py",
    "database/capacity/partitions.py",
    "database/capacity/peaks.py",
    "database/capacity/units.py",
    "database/expressions/comparison.py",
    "database/expressions/condition.py",
    "database/expressions/key_condition.py",
    "database/expressions/parse.py",
    "database/expressions/paths.py",
    "database/expressions/projection.py",
    "database/expressions/resolution.py",
    "database/expressions/statement_size.py",
    "database/expressions/tokens.py",
    "database/expressions/update.py",
    "server/protocol/codec.py",
    "server/protocol/constraints.py",
    "server/protocol/serialization.py",
    "server/protocol/validation.py",
    "database/storage/group_commit.py",
    "database/storage/write_ahead_log.py",
    "database/storage/embedded.py",
    "database/storage/lmdb.py",
    "database/storage/overlay.py",
    "database/changes/layout.py",
    "database/changes/log.py",
    "database/events/layout.py",
    "database/events/log.py",
    "database/tables/catalog.py",
    "database/tables/expiry.py",
    "database/tables/indexes.py",
    "database/tables/keys.py",
    "database/tables/layout.py",
    "database/tables/read.py",
    "database/tables/statistics.py",
    "database/tables/stored.py",
    "database/tables/write.py",
    "database/operations/data_plane/actions.py",
    "database/operations/answers.py",
    "database/operations/data_plane/batches.py",
    "database/operations/charges.py",
    "database/operations/context.py",
    "database/database.py",
    "database/operations/data_plane/expression_parameters.py",
    "database/operations/data_plane/items.py",
    "streams/kinesis/records.py",
    "database/response_cache.py",
    "database/operations/data_plane/pages.py",
    "database/operations/data_plane/queries.py",
    "database/operations/data_plane/scans.py",
    "database/operations/partiql/statements.py",
    "database/operations/data_plane/transactions.py",
    "server/dispatch.py",
    "server/http/listener.py",
    "server/http/messages.py",
    "server/metrics.py",
)


def source_digest() -> str:
    digest = blake2b(sys.implementation.cache_tag.encode(), digest_size=16)
    for module in MODULES:
        digest.update((PACKAGE / module).read_bytes())
    return digest.hexdigest()


def use() -> bool:
    """Import the compiled modules from now on, if they fit; says whether they do."""
    if os.environ.get("PARTITA_PURE") or not DIGEST.exists():
        return False
    if DIGEST.read_text() != source_digest():
        return False
    # Without its abstract class, whose module takes 20 ms to import.
    sys.meta_path.insert(0, _Finder())
    return True


def is_used() -> bool:
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


class _Finder:
    def __init__(self) -> None:
        names = [f"partita.{module.removesuffix('.py').replace('/', '.')}" for module in MODULES]
        self._files = {
            name: BUILD / f"{name.replace('.', '/')}{EXTENSION_SUFFIXES[0]}"
            for name in [*names, SHARED_LIBRARY]
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        if file is None:
            return None
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
