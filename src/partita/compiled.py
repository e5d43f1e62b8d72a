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
    "item/bounds.py",
    "item/keys.py",
    "item/numbers.py",
    "item/page_bytes.py",
    "item/sizes.py",
    "item/values.py",
    "capacity/accounts.py",
    "capacity/buckets.py",
    "capacity/contributors.py",
    "capacity/insights.py",
    "capacity/ledger.py",
    "capacity/partitions.py",
    "capacity/peaks.py",
    "capacity/units.py",
    "expressions/comparison.py",
    "expressions/condition.py",
    "expressions/key_condition.py",
    "expressions/parse.py",
    "expressions/paths.py",
    "expressions/projection.py",
    "expressions/resolution.py",
    "expressions/statement_size.py",
    "expressions/tokens.py",
    "expressions/update.py",
    "protocol/codec.py",
    "protocol/constraints.py",
    "protocol/serialization.py",
    "protocol/validation.py",
    "storage/commits.py",
    "storage/journal.py",
    "storage/journaled.py",
    "storage/lmdb.py",
    "storage/overlay.py",
    "changes/layout.py",
    "changes/log.py",
    "events/layout.py",
    "events/log.py",
    "tables/catalog.py",
    "tables/expiry.py",
    "tables/indexes.py",
    "tables/keys.py",
    "tables/layout.py",
    "tables/read.py",
    "tables/statistics.py",
    "tables/stored.py",
    "tables/write.py",
    "operations/actions.py",
    "operations/answers.py",
    "operations/batches.py",
    "operations/charges.py",
    "operations/context.py",
    "operations/database.py",
    "operations/expression_parameters.py",
    "operations/items.py",
    "operations/kinesis_records.py",
    "operations/known_answers.py",
    "operations/pages.py",
    "operations/queries.py",
    "operations/scans.py",
    "operations/statements.py",
    "operations/transactions.py",
    "server/dispatch.py",
    "server/http.py",
    "server/messages.py",
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
