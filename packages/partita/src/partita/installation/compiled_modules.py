"""Imports the compiled form of the hot modules, if there is one that fits this Python and source.

`scripts/compile` translates `MODULES` to C with mypyc, as well as the modules of every other
package that has a `CompiledPackage`. The same source runs compiled and as plain Python.

A build has a manifest: its ABI, its compiler, and a checksum of each library and of each source
file that went into it. Those are more files than `MODULES`, because constants and class layouts of
imported modules are compiled in. An edited file is therefore never shadowed by an old build: plain
Python runs then, with PARTITA_PURE=1, and, after a warning, when a build is damaged or made for
another Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from zlib import crc32

PACKAGE = Path(__file__).parents[1]
MANIFEST = "manifest"
ABI = EXTENSION_SUFFIXES[0]

MODULES = (
    "foundation/service_limits.py",
    "database/item/item_limits.py",
    "database/item/key_encoding.py",
    "database/item/numbers.py",
    "database/item/page_bytes.py",
    "database/item/dynamodb_json.py",
    "database/item/item_sizes.py",
    "database/item/attribute_values.py",
    "database/capacity/capacity_accounts.py",
    "database/capacity/token_buckets.py",
    "database/capacity/hot_key_counter.py",
    "database/capacity/insights_rules.py",
    "database/capacity/ledger.py",
    "database/capacity/partition_splits.py",
    "database/capacity/scaling/on_demand_peaks.py",
    "database/capacity/capacity_units.py",
    "database/expressions/value_comparison.py",
    "database/expressions/condition.py",
    "database/expressions/key_condition.py",
    "database/expressions/syntax/expression_parser.py",
    "database/expressions/document_paths.py",
    "database/expressions/projection.py",
    "database/expressions/name_resolution.py",
    "database/expressions/update_expression_size.py",
    "database/expressions/syntax/expression_tokens.py",
    "database/expressions/update.py",
    "server/protocol/json_codec.py",
    "server/protocol/model_constraints.py",
    "server/protocol/serialization.py",
    "server/protocol/request_validation.py",
    "database/storage/group_commit.py",
    "database/storage/write_batch.py",
    "database/storage/data_folder/write_ahead_log.py",
    "database/storage/data_folder/checkpoint.py",
    "database/storage/data_folder/embedded_engine.py",
    "database/storage/data_folder/lmdb_tree.py",
    "database/storage/data_folder/overlay.py",
    "database/storage/sealing/sealed_engine.py",
    "database/logs/change_log/change_log_layout.py",
    "database/logs/change_log/change_records.py",
    "database/logs/event_log/event_log_layout.py",
    "database/logs/event_log/event_records.py",
    "database/logs/event_log/shard_throughput.py",
    "database/tables/definition/table_catalog.py",
    "database/tables/expiry_time.py",
    "database/tables/index_entries.py",
    "database/tables/definition/key_rules.py",
    "database/tables/table_layout.py",
    "database/tables/read_path.py",
    "database/tables/rekeying.py",
    "database/tables/table_statistics.py",
    "database/tables/stored_item.py",
    "database/tables/write_path.py",
    "database/operations/data_plane/item_actions.py",
    "database/operations/response_members.py",
    "database/execution/optimistic/charged_once.py",
    "database/execution/optimistic/drafts.py",
    "database/operations/data_plane/batch_items.py",
    "database/operations/charges.py",
    "database/operations/operation_context.py",
    "database/execution/embedded_database.py",
    "database/operations/data_plane/expression_parameters.py",
    "database/operations/data_plane/item_operations.py",
    "database/operations/data_plane/fast_paths.py",
    "streams/kinesis_records.py",
    "database/execution/response_cache.py",
    "database/operations/data_plane/result_pages.py",
    "database/operations/data_plane/query.py",
    "database/operations/data_plane/scan.py",
    "database/operations/partiql/execute_statement.py",
    "database/operations/data_plane/transact_items.py",
    "server/admission.py",
    "server/dispatch.py",
    "server/large_requests/remote_state.py",
    "database/shared/rounds/round_drafts.py",
    "database/shared/rounds/shared_requests.py",
    "server/http/http_connection.py",
    "server/http/connection_limits.py",
    "server/http/listener.py",
    "server/http/http_messages.py",
    "server/http/request_reader.py",
    "server/monitoring/server_metrics.py",
    "server/monitoring/request_metrics.py",
    "server/monitoring/slow_requests.py",
    "server/protocol/aws_responses.py",
    "server/security/authentication/signature_verifier.py",
    "server/security/identities/callers.py",
    "server/security/policies/policy_patterns.py",
    "server/security/policies/condition_operators.py",
    "server/security/policies/policy_decision.py",
    "server/security/rights/requested_rights.py",
    "server/security/rights/item_rights.py",
    "server/security/resource_denials.py",
    "server/security/authorization_gate.py",
)


class CompiledPackage:
    """A package with compiled modules, which are kept in the folder `.compiled` inside it."""

    def __init__(self, name: str, folder: Path, modules: Sequence[str]) -> None:
        self.name = name
        self.folder = folder
        self.modules = modules
        """Paths relative to the folder."""
        self.build = folder / ".compiled"
        self.shared_library = f"{name}__mypyc"
        """The module that contains the code of all the others."""
        _SOURCES[name] = folder.parent


_SOURCES: dict[str, Path] = {}
"""Source folders by package. A build of one package may include sources of another."""
PARTITA = CompiledPackage("partita", PACKAGE, MODULES)


class BuildManifest:
    """The ABI and compiler of a build, and checksums of its sources and libraries."""

    def __init__(
        self, abi: str, compiler: str, sources: Mapping[str, str], libraries: Mapping[str, str]
    ) -> None:
        self.abi = abi
        self.compiler = compiler
        self.sources = sources
        """Checksums by path, such as `partita/errors.py`."""
        self.libraries = libraries
        """Checksums by path, relative to the folder of the build."""

    def __str__(self) -> str:
        files = {"source": self.sources, "library": self.libraries}
        lines = [f"abi {self.abi}", f"compiler {self.compiler}"]
        for kind, checksums in files.items():
            lines += [f"{kind} {checksum} {path}" for path, checksum in checksums.items()]
        return "\n".join([*lines, ""])

    @staticmethod
    def read(build: Path) -> BuildManifest:
        abi = compiler = ""
        files: dict[str, dict[str, str]] = {"source": {}, "library": {}}
        for line in (build / MANIFEST).read_text().splitlines():
            kind, _, value = line.partition(" ")
            if kind == "abi":
                abi = value
            elif kind == "compiler":
                compiler = value
            elif kind in files:
                checksum, _, path = value.partition(" ")
                files[kind][path] = checksum
            else:
                raise ValueError(f"its manifest has a line {line!r}")
        return BuildManifest(abi, compiler, files["source"], files["library"])

    def first_edited(self) -> str | None:
        """Returns a source file that has changed since the build, or None."""
        for path, expected in self.sources.items():
            try:
                if checksum(source_file(path)) != expected:
                    return path
            except FileNotFoundError:
                return path
        return None

    def check_libraries(self, build: Path) -> None:
        """Raises for a damaged library; loading it could crash the process."""
        if self.abi != ABI:
            raise ImportError(f"they are for {self.abi}, and this Python loads {ABI}")
        for path, expected in self.libraries.items():
            if checksum(f"{build}/{path}") != expected:
                raise ImportError(f"{path} is damaged")


def source_file(path: str) -> str:
    """Returns the file here that a path of a manifest names."""
    return f"{_SOURCES.get(path.partition('/')[0], PACKAGE.parent)}/{path}"


def checksum(path: str) -> str:
    """Returns a CRC-32, against accidents; an attacker could change the manifest as well."""
    with open(path, "rb") as file:
        return f"{crc32(file.read()):08x}"


def use(package: CompiledPackage = PARTITA, build: Path | None = None) -> bool:
    """Imports the compiled modules from now on, if they fit. Returns True when they do."""
    build = build or package.build
    if os.environ.get("PARTITA_PURE") or not (build / MANIFEST).exists():
        return False
    try:
        manifest = BuildManifest.read(build)
        if manifest.first_edited():
            return False
        manifest.check_libraries(build)
        _install(_CompiledFinder(build, manifest.libraries), package.shared_library)
    except (ImportError, OSError, ValueError) as error:
        _warn(f"the compiled modules in {build} cannot be used: {error}")
        return False
    return True


def is_used(package: CompiledPackage = PARTITA) -> bool:
    finders = [finder for finder in sys.meta_path if isinstance(finder, _CompiledFinder)]
    return any(finder.has(package.shared_library) for finder in finders)


def _install(finder: _CompiledFinder, shared_library: str) -> None:
    sys.meta_path.insert(0, finder)
    try:
        # This library contains all code. Importing it first makes sure that either all modules
        # are compiled or none is: a mixture would not fit together.
        import_module(shared_library)
    except ImportError:
        sys.meta_path.remove(finder)
        raise


def _warn(reason: str) -> None:
    import logging

    logging.getLogger(__name__).warning(
        "Partita runs as plain Python, at about half the speed: %s. "
        "Run `make compile`, or install it again.",
        reason,
    )


# Does not inherit from importlib.abc.MetaPathFinder, whose module takes 20 ms to import.
class _CompiledFinder:
    def __init__(self, build: Path, libraries: Mapping[str, str]) -> None:
        self._files = {
            path.removesuffix(ABI).replace("/", "."): f"{build}/{path}" for path in libraries
        }

    def has(self, name: str) -> bool:
        return name in self._files

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self._files.get(name)
        if file is None:
            return None
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))
