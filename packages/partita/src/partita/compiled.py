"""The compiled form of the hot modules: used when it is whole, fits this Python and this source.

`scripts/compile` translates `MODULES` to C with mypyc, and those of other packages that have a
`Compiled` of their own. The same source runs with and without it. A
build has a manifest: its ABI, its compiler, and a checksum of each library and of each source file
that went into it. That is more than `MODULES`: constants and class layouts of what these import are
compiled in. An edited file is therefore never shadowed by an old build: then, or with
PARTITA_PURE=1, Python's own modules are imported. So are they, with a warning, when a build is
damaged or made for another Python.
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

PACKAGE = Path(__file__).parent
MANIFEST = "manifest"
ABI = EXTENSION_SUFFIXES[0]

MODULES = (
    "limits.py",
    "database/item/bounds.py",
    "database/item/keys.py",
    "database/item/numbers.py",
    "database/item/page_bytes.py",
    "database/item/shapes.py",
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
    "database/storage/write_batch.py",
    "database/storage/write_ahead_log.py",
    "database/storage/embedded.py",
    "database/storage/lmdb.py",
    "database/storage/overlay.py",
    "database/storage/sealing/engine.py",
    "database/changes/layout.py",
    "database/changes/log.py",
    "database/events/layout.py",
    "database/events/log.py",
    "database/events/throughput.py",
    "database/tables/catalog.py",
    "database/tables/expiry_time.py",
    "database/tables/indexes.py",
    "database/tables/keys.py",
    "database/tables/layout.py",
    "database/tables/read.py",
    "database/tables/rekeying.py",
    "database/tables/statistics.py",
    "database/tables/stored.py",
    "database/tables/write_path.py",
    "database/operations/data_plane/actions.py",
    "database/operations/answers.py",
    "database/operations/charged_once.py",
    "database/operations/drafts.py",
    "database/operations/data_plane/batches.py",
    "database/operations/charges.py",
    "database/operations/context.py",
    "database/database.py",
    "database/operations/data_plane/expression_parameters.py",
    "database/operations/data_plane/items.py",
    "database/operations/data_plane/plain_reads.py",
    "streams/kinesis/records.py",
    "database/response_cache.py",
    "database/operations/data_plane/pages.py",
    "database/operations/data_plane/queries.py",
    "database/operations/data_plane/scans.py",
    "database/operations/partiql/statements.py",
    "database/operations/data_plane/transactions.py",
    "server/admission.py",
    "server/dispatch.py",
    "server/large_requests/remote_state.py",
    "database/shared/rounds/drafts.py",
    "database/shared/rounds/requests.py",
    "server/http/connection.py",
    "server/http/limits.py",
    "server/http/listener.py",
    "server/http/messages.py",
    "server/http/reading.py",
    "server/metrics.py",
    "server/request_metrics.py",
    "server/notable.py",
    "server/responses.py",
    "server/security/authentication/signatures.py",
    "server/security/identities/callers.py",
    "server/security/policies/patterns.py",
    "server/security/policies/conditions.py",
    "server/security/policies/decision.py",
    "server/security/rights/needs.py",
    "server/security/rights/items.py",
    "server/security/denials.py",
    "server/security/gate.py",
)


class Compiled:
    """A package some of whose modules are compiled, into a folder of its own."""

    def __init__(self, name: str, folder: Path, modules: Sequence[str]) -> None:
        self.name = name
        self.folder = folder
        self.modules = modules
        """Paths in the folder."""
        self.build = folder / ".compiled"
        self.shared_library = f"{name}__mypyc"
        """The module that has the code of all of them."""
        _SOURCES[name] = folder.parent


_SOURCES: dict[str, Path] = {}
"""Where the source of packages is, which builds of others may have been made from too."""
PARTITA = Compiled("partita", PACKAGE, MODULES)


class Manifest:
    """What a build was made for, by and from, and what it consists of."""

    def __init__(
        self, abi: str, compiler: str, sources: Mapping[str, str], libraries: Mapping[str, str]
    ) -> None:
        self.abi = abi
        self.compiler = compiler
        self.sources = sources
        """Checksums by path, from the folder that holds the package that a path begins with."""
        self.libraries = libraries
        """Checksums by path, from the folder of the build."""

    def __str__(self) -> str:
        files = {"source": self.sources, "library": self.libraries}
        lines = [f"abi {self.abi}", f"compiler {self.compiler}"]
        for kind, checksums in files.items():
            lines += [f"{kind} {checksum} {path}" for path, checksum in checksums.items()]
        return "\n".join([*lines, ""])

    @staticmethod
    def read(build: Path) -> Manifest:
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
        return Manifest(abi, compiler, files["source"], files["library"])

    def first_edited(self) -> str | None:
        """A source file that is not what the build was made from."""
        for path, expected in self.sources.items():
            try:
                if checksum(source_file(path)) != expected:
                    return path
            except FileNotFoundError:
                return path
        return None

    def check_libraries(self, build: Path) -> None:
        """Loading a library that is torn could end the process: its bytes are looked at first."""
        if self.abi != ABI:
            raise ImportError(f"they are for {self.abi}, and this Python loads {ABI}")
        for path, expected in self.libraries.items():
            if checksum(f"{build}/{path}") != expected:
                raise ImportError(f"{path} is damaged")


def source_file(path: str) -> str:
    """Where a path of a manifest is here."""
    return f"{_SOURCES.get(path.partition('/')[0], PACKAGE.parent)}/{path}"


def checksum(path: str) -> str:
    """A guard against accidents: who can change a library can change the manifest too."""
    with open(path, "rb") as file:
        return f"{crc32(file.read()):08x}"


def use(package: Compiled = PARTITA, build: Path | None = None) -> bool:
    """Import the compiled modules from now on, if they fit; says whether they do."""
    build = build or package.build
    if os.environ.get("PARTITA_PURE") or not (build / MANIFEST).exists():
        return False
    try:
        manifest = Manifest.read(build)
        if manifest.first_edited():
            return False
        manifest.check_libraries(build)
        _install(_Finder(build, manifest.libraries), package.shared_library)
    except (ImportError, OSError, ValueError) as error:
        _warn(f"the compiled modules in {build} cannot be used: {error}")
        return False
    return True


def is_used(package: Compiled = PARTITA) -> bool:
    finders = [finder for finder in sys.meta_path if isinstance(finder, _Finder)]
    return any(finder.has(package.shared_library) for finder in finders)


def _install(finder: _Finder, shared_library: str) -> None:
    sys.meta_path.insert(0, finder)
    try:
        # All code is in this one. Modules that are half compiled, half not, would not fit together.
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


# Without its abstract class, whose module takes 20 ms to import.
class _Finder:
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
