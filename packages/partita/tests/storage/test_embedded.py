"""The embedded engine: commits survive a crash at any point of log, checkpoint and tree."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random
from shutil import copytree
from threading import Thread
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.database.storage.data_folder.embedded_engine import (
    COMMITS_AFTER_A_SLOW_ONE,
    LOG_FILES,
    QUICK_SECONDS,
    EmbeddedEngine,
    open_for_reading,
)
from partita.database.storage.data_folder.write_ahead_log import (
    CLEARED_BYTES_MAX,
    HEADER_BYTES,
    WriteAheadLog,
    read_log,
)
from partita.database.storage.engine import Changes
from partita.errors import StorageError
from partita.installation import compiled_modules

EVERYTHING = (b"", b"\xff" * 8)


CHECKPOINT_BYTES = 2000
"""A size at which a few commits cause a checkpoint."""


def commit(engine: EmbeddedEngine, changes: Changes) -> None:
    engine.commit(changes)
    engine.refresh()


def shown(engine: EmbeddedEngine) -> dict[bytes, bytes]:
    return dict(engine.snapshot().range(*EVERYTHING))


def left_behind(folder: Path, copy: Path) -> dict[bytes, bytes]:
    """The state after a crash at this moment, as the next process and a check read it."""
    copytree(folder, copy)
    with open_for_reading(copy) as snapshot:
        read = dict(snapshot.range(*EVERYTHING))
    engine = EmbeddedEngine(copy)
    assert shown(engine) == read
    engine.close()
    again = EmbeddedEngine(copy)
    assert shown(again) == read
    again.close()
    return read


def random_changes(random: Random) -> dict[bytes, bytes | None]:
    keys = [b"%03d" % random.randrange(200) for _ in range(random.randrange(1, 9))]
    return {
        key: None if random.random() < 0.3 else os.urandom(random.randrange(200)) for key in keys
    }


@pytest.mark.parametrize("seed", range(5))
def test_commits_survive_a_death_at_any_commit_before_during_and_after_checkpoints(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    expected: dict[bytes, bytes] = {}
    folder = tmp_path / "data"
    engine = EmbeddedEngine(folder, durable=seed % 2 == 0, checkpoint_bytes=CHECKPOINT_BYTES)
    for number in range(150):
        changes = random_changes(random)
        commit(engine, changes)
        for key, value in changes.items():
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        assert shown(engine) == expected
        if number % 10 == 0:
            assert left_behind(tmp_path / "data", tmp_path / f"copy-{number}") == expected
    engine.close()
    assert left_behind(tmp_path / "data", tmp_path / "copy") == expected
    assert all(not read_log(tmp_path / "data" / name).commits for name in LOG_FILES)


def test_a_checkpoint_puts_what_is_committed_into_the_tree_and_clears_its_log(
    tmp_path: Path,
) -> None:
    engine = EmbeddedEngine(tmp_path, checkpoint_bytes=CHECKPOINT_BYTES)
    for number in range(2000):
        commit(engine, {b"%04d" % number: b"x" * 100})
    assert len(engine._snapshot.active.values) + len(engine._snapshot.frozen.values) < 200
    assert sum(len(read_log(tmp_path / name).commits) for name in LOG_FILES) < 200
    assert len(shown(engine)) == 2000
    engine.close()


def test_a_commit_larger_than_everything_that_may_wait_is_taken(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path, checkpoint_bytes=CHECKPOINT_BYTES)
    expected = {}
    for number in range(20):
        changes = {b"%04d %04d" % (number, other): b"x" * 100 for other in range(500)}
        commit(engine, changes)
        expected.update(changes)
    assert shown(engine) == expected
    engine.close()
    again = EmbeddedEngine(tmp_path)
    assert shown(again) == expected
    again.close()


def cut(path: Path, end: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:end] + bytes(len(content) - end))


def log_with(path: Path, count: int) -> list[int]:
    """The offsets at which the records end."""
    log = WriteAheadLog(path, read_log(path))
    log.begin(1)
    ends = []
    for number in range(count):
        log.append({b"key": b"value %d" % number})
        ends.append(read_log(path).end)
    log.close()
    return ends


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_record_that_was_cut_off_is_as_if_it_had_never_been(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "journal.0"
    ends = log_with(path, 3)
    cut(path, data.draw(st.integers(ends[1] + 1, ends[2] - 1)))
    contents = read_log(path)
    assert [commit[b"key"] for commit in contents.commits] == [b"value 0", b"value 1"]
    assert contents.end == ends[1]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_spoiled_byte_before_the_last_record_is_damage(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("log") / "journal.0"
    ends = log_with(path, 3)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, ends[1] - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"journal\.0 (is damaged at|was written by another)"):
        read_log(path)


def test_a_beginning_that_has_become_zeros_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.0"
    log_with(path, 3)
    content = path.read_bytes()
    path.write_bytes(bytes(512) + content[512:])
    with pytest.raises(StorageError, match=r"journal\.0 is damaged at its beginning"):
        read_log(path)


def test_the_form_of_the_file_is_that_of_older_versions(tmp_path: Path) -> None:
    """The log is written by hand: data folders of earlier versions must open."""
    header = struct.pack("<8sQ8sI", b"partita1", 3, b"8 bytes.", 1)
    changes = struct.pack("<II", 3, 5) + b"key" + b"value" + struct.pack("<II", 4, 0xFFFFFFFF)
    payload = changes + b"gone"
    record = struct.pack("<8sQI", b"8 bytes.", len(payload), crc32(payload)) + payload
    path = tmp_path / "journal.1"
    path.write_bytes(header + struct.pack("<I", crc32(header)) + record + bytes(1000))
    contents = read_log(path)
    assert (contents.generation, contents.commits) == (3, ({b"key": b"value", b"gone": None},))
    engine = EmbeddedEngine(tmp_path)
    assert shown(engine) == {b"key": b"value"}
    engine.close()


def test_records_of_an_earlier_generation_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "journal.0"
    log_with(path, 5)
    log = WriteAheadLog(path, read_log(path))
    log.begin(2)
    log.append({b"key": b"value 9"})
    contents = read_log(path)
    assert (contents.generation, contents.commits) == (2, ({b"key": b"value 9"},))
    log.clear()
    assert read_log(path)[:3:2] == (2, ())
    log.close()


def test_a_large_log_is_truncated_only_after_the_disk_knows_that_it_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaying the first records alone, over a tree that has all, would undo the last ones."""
    path = tmp_path / "journal.0"
    log = WriteAheadLog(path, read_log(path))
    log.begin(2)
    log.append({b"key": bytes(CLEARED_BYTES_MAX)})
    sizes = []
    sync = os.fdatasync

    def note_size(file: int) -> None:
        sizes.append(os.fstat(file).st_size)
        sync(file)

    monkeypatch.setattr(os, "fdatasync", note_size)
    log.clear()
    log.close()
    assert len(sizes) == 1 and sizes[0] > path.stat().st_size == CLEARED_BYTES_MAX


def test_damage_in_a_log_refuses_the_folder_in_words(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    commit(engine, {b"a": b"1"})
    commit(engine, {b"b": b"2"})
    copytree(tmp_path / "data", tmp_path / "copy")
    engine.close()
    log = tmp_path / "copy" / LOG_FILES[1]
    content = bytearray(log.read_bytes())
    content[HEADER_BYTES + 3] ^= 1
    log.write_bytes(content)
    sentence = f"Cannot open the data folder .*copy: {log.name} is damaged at byte"
    with pytest.raises(StorageError, match=sentence):
        EmbeddedEngine(tmp_path / "copy")
    with pytest.raises(StorageError, match=sentence), open_for_reading(tmp_path / "copy"):
        pass


def test_a_log_whose_first_record_was_cut_off_does_not_endanger_the_older_one(
    tmp_path: Path,
) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    commit(engine, {b"a": b"1"})
    copytree(tmp_path / "data", tmp_path / "copy")
    engine.close()
    # A checkpoint has begun, and the power failed at the first commit after it.
    path = tmp_path / "copy" / LOG_FILES[0]
    newer = WriteAheadLog(path, read_log(path))
    newer.begin(2)
    newer.append({b"b": b"2"})
    newer.close()
    cut(path, HEADER_BYTES)
    engine = EmbeddedEngine(tmp_path / "copy")
    commit(engine, {b"c": b"3"})
    assert left_behind(tmp_path / "copy", tmp_path / "again") == {b"a": b"1", b"c": b"3"}
    engine.close()


def test_logs_that_have_changed_their_names_are_refused_in_words(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    commit(engine, {b"a": b"1"})
    copytree(tmp_path / "data", tmp_path / "copy")
    engine.close()
    (tmp_path / "copy" / LOG_FILES[1]).rename(tmp_path / "copy" / LOG_FILES[0])
    sentence = r"Cannot open the data folder .*copy: journal\.0 has the contents of journal\.1\."
    with pytest.raises(StorageError, match=sentence):
        EmbeddedEngine(tmp_path / "copy")
    with pytest.raises(StorageError, match=sentence), open_for_reading(tmp_path / "copy"):
        pass


def test_a_commit_of_nothing_leaves_no_record(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    for changes in ({b"a": b"1"}, {}, {b"b": b""}):
        commit(engine, changes)
    assert left_behind(tmp_path / "data", tmp_path / "copy") == {b"a": b"1", b"b": b""}
    engine.close()


KEYS = st.one_of(
    st.binary(min_size=1, max_size=3),
    st.builds(lambda end: b"k" * 494 + end, st.binary(max_size=3)),
    st.builds(lambda end: b"k" * 3000 + end, st.binary(max_size=2)),
)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_pages_of_a_scan_are_those_of_a_dict_while_checkpoints_begin_and_end(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    keys = sorted(data.draw(st.sets(KEYS, min_size=5, max_size=25)))
    reverse = data.draw(st.booleans())
    random = data.draw(st.randoms(use_true_random=False))
    checkpoint_bytes = data.draw(st.sampled_from([200, 2000, 20_000]))
    engine = EmbeddedEngine(
        tmp_path_factory.mktemp("data"), durable=False, checkpoint_bytes=checkpoint_bytes
    )
    expected: dict[bytes, bytes] = {}
    start, stop = b"", b"\xff" * 4
    for number in range(30):
        changes = {
            key: None if random.random() < 0.4 else b"%d" % number
            for key in random.sample(keys, random.randrange(1, 5))
        }
        commit(engine, changes)
        expected = {
            key: value for key, value in {**expected, **changes}.items() if value is not None
        }
        page = list(islice(engine.snapshot().range(start, stop, reverse=reverse), 2))
        rest = [
            pair for pair in sorted(expected.items(), reverse=reverse) if start <= pair[0] < stop
        ]
        assert page == rest[:2]
        assert all(engine.snapshot().get(key) == expected.get(key) for key in keys)
        if not page:
            start, stop = sorted(random.sample(keys, 2))
        elif reverse:
            stop = page[-1][0]
        else:
            start = page[-1][0] + b"\0"
    engine.close()


class Watch:
    """A stopwatch that advances with every call."""

    def __init__(self) -> None:
        self.seconds = self.look_seconds = 0.0

    def __call__(self) -> float:
        self.seconds += self.look_seconds
        return self.seconds


def test_after_a_slow_commit_the_next_ones_are_taken_to_wait_for_the_disk(tmp_path: Path) -> None:
    watch = Watch()
    engine = EmbeddedEngine(tmp_path, stopwatch=watch)
    commit(engine, {b"a": b"1"})
    assert not engine.waits_for_disk
    watch.look_seconds = 2 * QUICK_SECONDS
    commit(engine, {b"a": b"2"})
    watch.look_seconds = 0.0
    waits = []
    for number in range(COMMITS_AFTER_A_SLOW_ONE + 1):
        waits.append(engine.waits_for_disk)
        commit(engine, {b"a": b"%d" % number})
    assert waits == [True] * COMMITS_AFTER_A_SLOW_ONE + [False]
    engine.close()


def test_a_relaxed_engine_begins_with_what_a_durable_one_left(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    commit(engine, {b"a": b"1", b"b": b"2"})
    copytree(tmp_path / "data", tmp_path / "copy")
    engine.close()
    relaxed = EmbeddedEngine(tmp_path / "copy", durable=False)
    assert shown(relaxed) == {b"a": b"1", b"b": b"2"}
    commit(relaxed, {b"a": None})
    relaxed.close()
    again = EmbeddedEngine(tmp_path / "copy")
    assert shown(again) == {b"b": b"2"}
    again.close()


@pytest.fixture
def failing_sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Makes syncs of logs fail while the list is not empty."""
    faults: list[bool] = []
    sync = os.fdatasync

    def failing(file: int) -> None:
        if faults:
            raise OSError(5, "Input/output error")
        sync(file)

    monkeypatch.setattr(os, "fdatasync", failing)
    return iter([faults])


def test_a_commit_whose_sync_failed_does_not_come_back(
    tmp_path: Path, failing_sync: Iterator[list[bool]]
) -> None:
    faults = next(failing_sync)
    engine = EmbeddedEngine(tmp_path / "data")
    commit(engine, {b"a": b"1"})
    for _ in range(3):
        faults.append(True)
        for key in (b"lost", b"lost too"):
            with pytest.raises(StorageError, match="could not be written: Input/output error"):
                engine.commit({key: b"x"})
            engine.refresh()
        assert b"lost" not in shown(engine)
        faults.clear()
        commit(engine, {b"b": b"2"})
        assert shown(engine) == {b"a": b"1", b"b": b"2"}
    assert left_behind(tmp_path / "data", tmp_path / "copy") == {b"a": b"1", b"b": b"2"}
    engine.close()


def test_no_checkpoint_begins_on_a_log_that_is_in_doubt(
    tmp_path: Path, failing_sync: Iterator[list[bool]]
) -> None:
    """After a power failure, the refused commit might be in the log before later ones."""
    faults = next(failing_sync)
    engine = EmbeddedEngine(tmp_path, checkpoint_bytes=CHECKPOINT_BYTES)
    commit(engine, {b"a": b"1"})
    engine._next_checkpoint_bytes = 0
    faults.append(True)
    with pytest.raises(StorageError):
        engine.commit({b"lost": b"x"})
    engine.refresh()
    assert engine._checkpoint is None
    faults.clear()
    commit(engine, {b"b": b"2"})
    assert sum(len(read_log(tmp_path / name).commits) for name in LOG_FILES) == 1
    assert shown(engine) == {b"a": b"1", b"b": b"2"}
    engine.close()


def test_a_checkpoint_that_finds_no_thread_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    engine = EmbeddedEngine(tmp_path / "data", checkpoint_bytes=CHECKPOINT_BYTES)
    monkeypatch.setattr(Thread, "start", refuse)
    expected = {b"%04d" % number: b"x" * 100 for number in range(50)}
    for key, value in expected.items():
        commit(engine, {key: value})
    assert shown(engine) == expected
    assert left_behind(tmp_path / "data", tmp_path / "copy") == expected
    engine.close()


@pytest.mark.skipif(
    compiled_modules.is_used(),
    reason="a compiled engine cannot be told to fail; runs on plain Python",
)
def test_memory_is_bounded_while_the_tree_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EmbeddedEngine(tmp_path / "data", checkpoint_bytes=CHECKPOINT_BYTES)
    begin = engine._tree.begin_commit

    def refuse() -> None:
        raise StorageError("The tree is tired.")

    monkeypatch.setattr(engine._tree, "begin_commit", refuse)
    expected = {}
    with pytest.raises(
        StorageError, match="cannot be moved from the write-ahead log into the tree"
    ):
        for number in range(1000):
            commit(engine, {b"%04d" % number: b"x" * 100})
            expected[b"%04d" % number] = b"x" * 100
    assert 20 < len(expected) < 300
    assert shown(engine) == expected
    assert left_behind(tmp_path / "data", tmp_path / "copy") == expected
    monkeypatch.setattr(engine._tree, "begin_commit", begin)
    for _ in range(100):
        with suppress(StorageError):
            engine.commit({b"at last": b"x"})
            expected[b"at last"] = b"x"
        engine.refresh()
    assert shown(engine)[b"at last"] == b"x"
    engine.close()
    again = EmbeddedEngine(tmp_path / "data")
    assert shown(again) == expected
    again.close()
