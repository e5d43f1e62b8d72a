"""Checks the pages of an LMDB file before LMDB opens it.

LMDB does not check its file: if pages are missing or corrupt, it reads beyond the memory map, and a
signal kills the process without a message. So this module follows the pages first, as LMDB would:
from the newer of the two meta pages down the tree of the data and the tree of the free pages.

The format is that of LMDB 0.9 on 64 bits (mdb.c: MDB_meta, MDB_db, MDB_page, MDB_node).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from partita.errors import StorageError

MAGIC = 0xBEEFC0DE
VERSION = 1
PAGE_BYTES_MIN, PAGE_BYTES_MAX = 512, 1 << 16
FIRST_DATA_PAGE = 2
NO_PAGE = (1 << 64) - 1
KEY_BYTES_MAX = 511

BRANCH, LEAF, OVERFLOW, META = 0x01, 0x02, 0x04, 0x08
KINDS = {BRANCH: "branch", LEAF: "leaf", OVERFLOW: "overflow", META: "meta"}
KIND_BITS = 0x6F
IN_OVERFLOW_PAGES, SUBTREE = 0x01, 0x06

_PAGE = struct.Struct("=QHHHH")
_OVERFLOW_PAGES = struct.Struct("=12xI")
_META = struct.Struct("=IIQQ48s48sQQ")
_TREE = struct.Struct("=IHHQQQQQ")
_NODE = struct.Struct("=HHHH")
_NUMBER = struct.Struct("=Q")


class TreeRoot(NamedTuple):
    page_bytes: int
    """LMDB sets it in the tree of free pages only."""
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class MetaPage(NamedTuple):
    magic: int
    version: int
    address: int
    map_bytes: int
    free: bytes
    main: bytes
    last_page: int
    transaction: int


def check_pages(path: Path, pages_max: int | None = None) -> None:
    """Checks all pages, or the first `pages_max`; raises StorageError for the first bad one.

    All pages of a file that is shorter than its meta page claims are checked in any case: LMDB may
    omit free pages at the end, so only this shows whether a page that is in use is missing.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise StorageError(f"{path.name} cannot be read ({error.strerror})") from error
    try:
        _Pages(file, pages_max).check()
    except OSError as error:
        raise StorageError(f"{path.name} cannot be read ({error.strerror})") from error
    except StorageError as error:
        raise StorageError(f"{path.name} is damaged: {error}") from None
    finally:
        os.close(file)


def last_commit(path: Path) -> int:
    """The number of the last commit of a file, even while another process writes to it."""
    file = os.open(path, os.O_RDONLY)
    try:
        return _Pages(file, None).last_commit()
    finally:
        os.close(file)


class _EnoughSeen(Exception):
    """Raised to end the check after `pages_max` pages."""


class _Pages:
    def __init__(self, file: int, pages_max: int | None) -> None:
        self._file = file
        self._file_bytes = os.fstat(file).st_size
        self._page_bytes = PAGE_BYTES_MIN
        self._left = pages_max
        self._last_page = FIRST_DATA_PAGE - 1
        self._seen = bytearray()

    def check(self) -> None:
        meta = self._newer_meta()
        if (meta.last_page + 1) * self._page_bytes > self._file_bytes:
            self._left = None
        self._last_page = meta.last_page
        self._seen = bytearray(meta.last_page // 8 + 1)
        try:
            self._check_main(TreeRoot(*_TREE.unpack(meta.main)))
            self._check_free(TreeRoot(*_TREE.unpack(meta.free)))
        except _EnoughSeen:
            pass

    def last_commit(self) -> int:
        return self._newer_meta().transaction

    def _newer_meta(self) -> MetaPage:
        if not self._file_bytes:
            raise StorageError("it is empty")
        first = self._meta(0)
        self._page_bytes = TreeRoot(*_TREE.unpack(first.free)).page_bytes
        if not PAGE_BYTES_MIN <= self._page_bytes <= PAGE_BYTES_MAX:
            raise StorageError(f"it claims pages of {self._page_bytes} bytes")
        second = self._meta(1)
        newer = second if second.transaction > first.transaction else first
        if not FIRST_DATA_PAGE - 1 <= newer.last_page < newer.map_bytes // self._page_bytes:
            raise StorageError(f"it claims {newer.last_page + 1} pages")
        return newer

    def _meta(self, number: int) -> MetaPage:
        page = self._read(number)
        if len(page) < _PAGE.size + _META.size:
            raise StorageError(f"it ends at byte {self._file_bytes}, within its first pages")
        meta = MetaPage(*_META.unpack_from(page, _PAGE.size))
        if _PAGE.unpack_from(page)[2] & KIND_BITS != META or meta.magic != MAGIC:
            raise StorageError("it does not begin as a file of LMDB does")
        if meta.version != VERSION:
            raise StorageError(f"it has LMDB's format {meta.version}, not {VERSION}")
        return meta

    def _check_main(self, tree: TreeRoot) -> None:
        if tree.flags:
            raise StorageError(f"its keys have the unknown order {tree.flags}")
        entries = 0
        last = b""
        for key, flags, data, size in self._nodes(tree, branch_nodes_min=2):
            if flags & SUBTREE:
                raise StorageError("it holds trees within trees, which Partita never makes")
            if not 0 < len(key) <= KEY_BYTES_MAX or key <= last:
                raise StorageError(f"the key {key.hex()} is not in order")
            last = key
            entries += 1
            if flags & IN_OVERFLOW_PAGES:
                self._check_overflow(data, size)
        self._compare_entries(tree, entries)

    def _check_free(self, tree: TreeRoot) -> None:
        entries = last = 0
        for key, flags, data, size in self._nodes(tree, branch_nodes_min=1):
            transaction = _NUMBER.unpack(key)[0] if len(key) == _NUMBER.size else 0
            if transaction <= last:
                raise StorageError("its list of free pages is not in order")
            last = transaction
            entries += 1
            if flags & IN_OVERFLOW_PAGES:
                data = self._check_overflow(data, size)
            self._check_free_list(data)
        self._compare_entries(tree, entries)

    def _check_free_list(self, data: bytes) -> None:
        count, *pages = struct.unpack(f"={len(data) // 8}Q", data[: len(data) // 8 * 8]) or (0,)
        if count > len(pages):
            raise StorageError("its list of free pages is cut off")
        for page in pages[:count]:
            if not FIRST_DATA_PAGE <= page <= self._last_page:
                raise StorageError(f"its list of free pages has a page {page}")
            if self._seen[page >> 3] & 1 << (page & 7):
                raise StorageError(f"page {page} is free and in use")

    def _compare_entries(self, tree: TreeRoot, entries: int) -> None:
        if entries != tree.entries:
            raise StorageError(f"it claims {tree.entries} keys and has {entries}")

    def _nodes(
        self, tree: TreeRoot, branch_nodes_min: int
    ) -> Iterator[tuple[bytes, int, bytes, int]]:
        """Yields all leaf nodes in order: key, flags, bytes in the node, size of the data."""
        if tree.root == NO_PAGE:
            return
        # For each level from the root to the current leaf, the children that are still to visit.
        levels: list[list[int]] = [[tree.root]]
        while levels:
            if not levels[-1]:
                levels.pop()
                continue
            number = levels[-1].pop()
            if len(levels) < tree.depth:
                page = self._page(number, BRANCH)
                children = [
                    low | high << 16 | flags << 32
                    for _, low, high, flags, _ in self._page_nodes(number, page)
                ]
                if len(children) < branch_nodes_min:
                    raise StorageError(f"branch page {number} has {len(children)} nodes")
                levels.append(children[::-1])
            else:
                page = self._page(number, LEAF)
                for offset, low, high, flags, key_bytes in self._page_nodes(number, page):
                    size = low | high << 16
                    start = offset + _NODE.size + key_bytes
                    end = start + (_NUMBER.size if flags & IN_OVERFLOW_PAGES else size)
                    if end > len(page):
                        raise StorageError(f"a node of page {number} is larger than the page")
                    yield page[start - key_bytes : start], flags, page[start:end], size

    def _page_nodes(self, number: int, page: bytes) -> Iterator[tuple[int, int, int, int, int]]:
        """Yields each node's offset, the two halves of its size, its flags and its key size."""
        lower, upper = _PAGE.unpack_from(page)[3:]
        if not _PAGE.size < lower <= upper <= len(page) or lower % 2:
            raise StorageError(f"page {number} has invalid bounds")
        for offset in struct.unpack_from(f"={(lower - _PAGE.size) // 2}H", page, _PAGE.size):
            if not upper <= offset <= len(page) - _NODE.size:
                raise StorageError(f"a node of page {number} lies outside of it")
            low, high, flags, key_bytes = _NODE.unpack_from(page, offset)
            if offset + _NODE.size + key_bytes > len(page):
                raise StorageError(f"a key of page {number} is larger than the page")
            yield offset, low, high, flags, key_bytes

    def _check_overflow(self, data: bytes, size: int) -> bytes:
        """Checks a value on overflow pages, and returns its bytes."""
        (number,) = _NUMBER.unpack(data)
        page = self._page(number, OVERFLOW)
        (count,) = _OVERFLOW_PAGES.unpack_from(page)
        if count * self._page_bytes < _PAGE.size + size:
            raise StorageError(f"the value in page {number} is larger than its pages")
        for following in range(number + 1, number + count):
            self._mark(following)
        if number * self._page_bytes + _PAGE.size + size > self._file_bytes:
            raise StorageError(f"the value in page {number} lies beyond its end")
        return os.pread(self._file, size, number * self._page_bytes + _PAGE.size)

    def _page(self, number: int, kind: int) -> bytes:
        if self._left is not None:
            if not self._left:
                raise _EnoughSeen
            self._left -= 1
        self._mark(number)
        page = self._read(number)
        if len(page) < self._page_bytes:
            raise StorageError(f"page {number} lies beyond its end, at byte {self._file_bytes}")
        own_number, _, flags, _, _ = _PAGE.unpack_from(page)
        if own_number != number or flags & KIND_BITS != kind:
            raise StorageError(f"page {number} is not a {KINDS[kind]} page")
        return page

    def _mark(self, number: int) -> None:
        if not FIRST_DATA_PAGE <= number <= self._last_page:
            raise StorageError(f"it refers to a page {number} and has {self._last_page + 1}")
        if self._seen[number >> 3] & 1 << (number & 7):
            raise StorageError(f"page {number} is used twice")
        self._seen[number >> 3] |= 1 << (number & 7)

    def _read(self, number: int) -> bytes:
        return os.pread(self._file, self._page_bytes, number * self._page_bytes)
