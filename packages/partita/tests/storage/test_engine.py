"""One suite over every engine: an ordered map of bytes with atomic commits and one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.storage.branch_engine import BranchEngine
from partita.database.storage.data_folder.embedded_engine import EmbeddedEngine
from partita.database.storage.data_folder.lmdb_tree import HEAD_BYTES, LmdbEngine
from partita.database.storage.engine import Engine, prefix_end
from partita.errors import StorageError

KEY_BYTES_MAX = 4000
EVERYTHING = (b"\x00", b"\xff" * (KEY_BYTES_MAX + 1))

OpenEngine = Callable[[Path], Engine]


def open_lmdb(folder: Path) -> Engine:
    return LmdbEngine(folder, durable=False)


def open_memory(folder: Path) -> Engine:
    return BranchEngine()


def open_branch(folder: Path) -> Engine:
    """A branch over two layers whose pairs are all deleted, so that it begins empty, too."""
    below = BranchEngine()
    committed(below, {b"a": b"below", b"b": b"below", b"k" * 600: b"below"})
    middle = below.branch()
    middle.commit({b"a": None, b"b": b"middle", b"k" * 600: None})
    middle.refresh()
    top = middle.branch()
    top.commit({b"b": None})
    top.refresh()
    return top.branch()


FOLDERS: dict[str, OpenEngine] = {"lmdb": open_lmdb, "embedded": EmbeddedEngine}
ENGINES: dict[str, OpenEngine] = {**FOLDERS, "memory": open_memory, "branch": open_branch}


@pytest.fixture(params=FOLDERS)
def open_engine(request: pytest.FixtureRequest) -> OpenEngine:
    """The engines with a folder."""
    return FOLDERS[request.param]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    opened = ENGINES[request.param](tmp_path)
    yield opened
    opened.close()


def committed(engine: Engine, pairs: dict[bytes, bytes]) -> None:
    engine.commit(pairs)
    engine.refresh()


def read(engine: Engine, start: bytes, stop: bytes, *, reverse: bool = False) -> list[bytes]:
    return [key for key, _ in engine.snapshot().range(start, stop, reverse=reverse)]


# Keys long enough to need the engine's care: many share all bytes that fit into a native key.
lengths_around_the_head = st.sampled_from(
    [HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 511, 512, 3900]
)
long_keys = st.builds(
    lambda fill, length, tail: fill * length + tail,
    st.sampled_from([b"a", b"b", b"\x00", b"\xfe"]),
    lengths_around_the_head,
    st.binary(max_size=20),
)
keys = st.binary(min_size=1, max_size=6) | st.binary(min_size=1, max_size=40) | long_keys
changes = st.dictionaries(keys, st.none() | st.binary(max_size=12), max_size=12)


class Model:
    """Compares an engine with a dict that is read in key order."""

    def __init__(self) -> None:
        self.pairs: dict[bytes, bytes] = {}

    def commit(self, batch: dict[bytes, bytes | None]) -> None:
        for key, value in batch.items():
            if value is None:
                self.pairs.pop(key, None)
            else:
                self.pairs[key] = value

    def range(self, start: bytes, stop: bytes, *, reverse: bool) -> list[tuple[bytes, bytes]]:
        return sorted(
            ((key, value) for key, value in self.pairs.items() if start <= key < stop),
            reverse=reverse,
        )


Batches = list[dict[bytes, bytes | None]]
commits = {"batches": st.lists(changes, max_size=6), "bounds": st.lists(keys, max_size=5)}


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=60, deadline=None)
@given(**commits, extra=keys)
def test_an_engine_is_a_sorted_dict(
    name: str, batches: Batches, bounds: list[bytes], extra: bytes
) -> None:
    with TemporaryDirectory() as folder:
        engine = ENGINES[name](Path(folder))
        check_sorted_dict(engine, batches, bounds, extra)
        engine.close()


def check_sorted_dict(engine: Engine, batches: Batches, bounds: list[bytes], extra: bytes) -> None:
    model = Model()
    for batch in batches:
        engine.commit(batch)
        model.commit(batch)
    engine.refresh()
    snapshot = engine.snapshot()
    written = {key for batch in batches for key in batch}
    for key in {extra, *written}:
        assert snapshot.get(key) == model.pairs.get(key)
    some = sorted(written)[:6]
    for start in [EVERYTHING[0], *bounds, *some]:
        for stop in [EVERYTHING[1], *bounds, *some]:
            for reverse in (False, True):
                assert list(snapshot.range(start, stop, reverse=reverse)) == model.range(
                    start, stop, reverse=reverse
                )


def test_a_range_holds_its_start_and_not_its_stop(engine: Engine) -> None:
    committed(engine, {b"a": b"1", b"b": b"2", b"c": b"3"})
    assert read(engine, b"a", b"c") == [b"a", b"b"]
    assert read(engine, b"a", b"c", reverse=True) == [b"b", b"a"]
    assert read(engine, b"b", b"b") == []
    assert read(engine, b"c", b"a") == []


def test_a_range_between_keys_that_are_not_there(engine: Engine) -> None:
    committed(engine, {b"b": b"", b"d": b""})
    assert read(engine, b"a", b"c") == [b"b"]
    assert read(engine, b"c", b"e", reverse=True) == [b"d"]
    assert read(engine, b"x", b"z") == []
    assert read(engine, b"x", b"z", reverse=True) == []


@pytest.mark.parametrize("shared_bytes", [HEAD_BYTES, HEAD_BYTES + 1, 1000, KEY_BYTES_MAX - 2])
def test_many_long_keys_with_the_same_beginning_keep_their_order(
    engine: Engine, shared_bytes: int
) -> None:
    prefix = b"k" * shared_bytes
    numbers = [number.to_bytes(2, "big") for number in range(0, 3000, 7)]
    neighbours = [b"k", prefix[:-1], prefix, prefix_end(prefix), b"kl"]
    expected = sorted({*neighbours, *(prefix + number for number in numbers)})
    committed(engine, {key: key[-2:] for key in reversed(expected)})
    assert read(engine, *EVERYTHING) == expected
    assert read(engine, *EVERYTHING, reverse=True) == expected[::-1]
    low, high = prefix + numbers[20], prefix + numbers[40]
    between = [prefix + number for number in numbers[20:40]]
    assert read(engine, low, high) == between
    assert read(engine, low, high, reverse=True) == between[::-1]
    assert [engine.snapshot().get(key) for key in between] == [key[-2:] for key in between]


def test_a_long_key_is_not_found_under_its_beginning(engine: Engine) -> None:
    long = b"k" * 600
    committed(engine, {long: b"value"})
    snapshot = engine.snapshot()
    assert snapshot.get(long) == b"value"
    for other in (long[:-1], long + b"k", long[:HEAD_BYTES], long[:511]):
        assert snapshot.get(other) is None


def test_a_long_key_is_replaced_and_deleted(engine: Engine) -> None:
    one, other = b"k" * 600 + b"1", b"k" * 600 + b"2"
    committed(engine, {one: b"a", other: b"b"})
    committed(engine, {one: b"c"})
    assert engine.snapshot().get(one) == b"c"
    engine.commit({one: None})
    engine.refresh()
    assert read(engine, *EVERYTHING) == [other]


def test_empty_values_are_values(engine: Engine) -> None:
    committed(engine, {b"short": b"", b"l" * 600: b""})
    assert engine.snapshot().get(b"short") == b""
    assert engine.snapshot().get(b"l" * 600) == b""


def test_deleting_what_is_not_there_does_nothing(engine: Engine) -> None:
    engine.commit({b"missing": None, b"m" * 700: None})
    engine.refresh()
    assert read(engine, *EVERYTHING) == []


def test_a_snapshot_shows_nothing_new_until_it_is_refreshed(engine: Engine) -> None:
    committed(engine, {b"a": b"old"})
    engine.commit({b"a": b"new", b"b": b"new"})
    snapshot = engine.snapshot()
    assert (snapshot.get(b"a"), snapshot.get(b"b")) == (b"old", None)
    assert read(engine, *EVERYTHING) == [b"a"]
    engine.refresh()
    assert (snapshot.get(b"a"), snapshot.get(b"b")) == (b"new", b"new")


def test_a_commit_that_fails_changes_nothing(engine: Engine) -> None:
    committed(engine, {b"a": b"old"})
    with pytest.raises(Exception):  # noqa: B017 - each engine refuses a bad value in its own way
        engine.commit({b"a": b"new", b"b": "not bytes"})  # type: ignore[dict-item]
    engine.refresh()
    assert list(engine.snapshot().range(*EVERYTHING)) == [(b"a", b"old")]


def test_what_was_committed_is_there_after_reopening(
    open_engine: OpenEngine, tmp_path: Path
) -> None:
    pairs = {b"short": b"1", b"l" * 600: b"2", b"l" * 600 + b"!": b"3"}
    engine = open_engine(tmp_path / "data")
    engine.commit(pairs)
    engine.close()
    engine = open_engine(tmp_path / "data")
    assert dict(engine.snapshot().range(*EVERYTHING)) == pairs
    engine.close()


def test_a_folder_serves_one_engine_at_a_time(open_engine: OpenEngine, tmp_path: Path) -> None:
    engine = open_engine(tmp_path)
    with pytest.raises(StorageError, match="in use by another Partita"):
        open_engine(tmp_path)
    engine.close()
    open_engine(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_refused(open_engine: OpenEngine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match="Cannot write to the data folder"):
        open_engine(tmp_path / "file" / "data")


def test_a_thousand_commits_and_refreshes_leave_the_snapshot_usable(engine: Engine) -> None:
    for number in range(1000):
        engine.commit({b"counter": str(number).encode()})
        engine.refresh()
    assert engine.snapshot().get(b"counter") == b"999"


prefixes = st.binary(min_size=1, max_size=8).filter(lambda prefix: prefix.strip(b"\xff") != b"")


@given(prefix=prefixes, keys=st.lists(st.binary(max_size=10), max_size=20))
def test_the_end_of_a_prefix_parts_its_keys_from_the_later_ones(
    prefix: bytes, keys: list[bytes]
) -> None:
    end = prefix_end(prefix)
    assert prefix < end
    for tail in keys:
        assert prefix <= prefix + tail < end
    for key in keys:
        assert (prefix <= key < end) == key.startswith(prefix)


def test_the_end_of_a_prefix_is_the_nearest() -> None:
    assert prefix_end(b"a") == b"b"
    assert prefix_end(b"a\xff\xff") == b"b"
    assert prefix_end(b"\x00\x00") == b"\x00\x01"
    ordered = [prefix_end(bytes([first])) for first in range(255)]
    assert all(low < high for low, high in pairwise(ordered))
