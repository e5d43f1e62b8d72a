"""PynamoDB: models with indexes, conditions, updates, batches, transactions, TTL and versions."""

# Some of PynamoDB's types are generic, and others are untyped.
# mypy: disallow-any-generics=False, disallow-untyped-calls=False

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pynamodb.attributes import (
    BinaryAttribute,
    BinarySetAttribute,
    BooleanAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NullAttribute,
    NumberAttribute,
    NumberSetAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import Connection
from pynamodb.exceptions import (
    DeleteError,
    GetError,
    PutError,
    TableDoesNotExist,
    TransactGetError,
    TransactWriteError,
    UpdateError,
)
from pynamodb.indexes import (
    AllProjection,
    GlobalSecondaryIndex,
    IncludeProjection,
    KeysOnlyProjection,
    LocalSecondaryIndex,
)
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

ACTIVE_SECONDS_MAX = 60
EXPIRY_SECONDS_MAX = 60


class Address(MapAttribute):
    street = UnicodeAttribute()
    number = NumberAttribute(null=True)


class ByForum(GlobalSecondaryIndex):
    class Meta:
        index_name = "by_forum"
        projection = AllProjection()

    forum = UnicodeAttribute(hash_key=True)
    views = NumberAttribute(range_key=True)


class ByTag(GlobalSecondaryIndex):
    class Meta:
        index_name = "by_tag"
        projection = IncludeProjection(["views"])

    tag = UnicodeAttribute(hash_key=True)


class ByViews(LocalSecondaryIndex):
    class Meta:
        index_name = "by_views"
        projection = KeysOnlyProjection()

    author = UnicodeAttribute(hash_key=True)
    views = NumberAttribute(range_key=True)


class Thread(Model):
    """The model of PynamoDB's tutorial, with every kind of attribute."""

    class Meta:
        table_name = "set by the fixture"
        region = "us-east-1"
        host = "set by the fixture"
        aws_access_key_id = "test"
        aws_secret_access_key = "test"
        billing_mode = "PAY_PER_REQUEST"
        max_retry_attempts = 0

    by_forum = ByForum()
    by_tag = ByTag()
    by_views = ByViews()

    author = UnicodeAttribute(hash_key=True)
    subject = UnicodeAttribute(range_key=True)
    forum = UnicodeAttribute(null=True)
    tag = UnicodeAttribute(null=True)
    views = NumberAttribute(default=0)
    tags = UnicodeSetAttribute(null=True)
    scores = NumberSetAttribute(null=True)
    blobs = BinarySetAttribute(null=True, legacy_encoding=False)
    photo = BinaryAttribute(null=True, legacy_encoding=False)
    is_open = BooleanAttribute(null=True)
    nothing = NullAttribute(null=True)
    address = Address(null=True)
    comments: Any = ListAttribute(null=True)
    options = JSONAttribute(null=True)
    posted = UTCDateTimeAttribute(null=True)
    expires = TTLAttribute(null=True)


class Document(Model):
    """A model whose writes check the version they were read with."""

    class Meta:
        table_name = "set by the fixture"
        region = "us-east-1"
        host = "set by the fixture"
        aws_access_key_id = "test"
        aws_secret_access_key = "test"
        billing_mode = "PAY_PER_REQUEST"
        max_retry_attempts = 0

    name = UnicodeAttribute(hash_key=True)
    text = UnicodeAttribute(null=True)
    version = VersionAttribute()


MODELS = (Thread, Document)


@pytest.fixture(scope="module", autouse=True)
def connected(endpoint: str, names: Iterator[str]) -> None:
    for model in MODELS:
        model.Meta.host = endpoint
        model.Meta.table_name = next(names)


@pytest.fixture(autouse=True)
def tables(connected: None) -> Iterator[None]:
    """New tables for each test."""
    for model in MODELS:
        model.create_table(wait=False)
        wait_until_active(model)
    yield
    for model in MODELS:
        model.delete_table()


def wait_until_active(model: type[Model]) -> None:
    deadline = time.monotonic() + ACTIVE_SECONDS_MAX
    while model.describe_table()["TableStatus"] != "ACTIVE":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def forum_of(count: int) -> list[Thread]:
    threads = [
        Thread(f"author{number % 2}", f"subject{number:03}", forum="python", views=number,
               tag="odd" if number % 2 else None)
        for number in range(count)
    ]  # fmt: skip
    with Thread.batch_write() as batch:
        for thread in threads:
            batch.save(thread)
    return threads


def test_the_table_is_created_with_its_indexes() -> None:
    assert Thread.exists()
    description = Thread.describe_table()
    assert description["TableStatus"] == "ACTIVE"
    assert {index["IndexName"] for index in description["GlobalSecondaryIndexes"]} == {
        "by_forum",
        "by_tag",
    }
    assert [index["IndexName"] for index in description["LocalSecondaryIndexes"]] == ["by_views"]


def test_every_attribute_comes_back_as_it_was_saved() -> None:
    posted = datetime(2026, 10, 9, 12, 30, tzinfo=UTC)
    Thread(
        "author",
        "all attributes",
        forum="python",
        views=12,
        tags={"a", "b"},
        scores={1, 2.5},
        blobs={b"\x00", b"\xff"},
        photo=b"\x00\x01\xff",
        is_open=True,
        address=Address(street="Main", number=5),
        comments=["one", 2, {"three": None}],
        options={"nested": [1, 2, {"x": None}]},
        posted=posted,
    ).save()
    thread = Thread.get("author", "all attributes", consistent_read=True)
    assert (thread.forum, thread.views, thread.is_open) == ("python", 12, True)
    assert (thread.tags, thread.scores) == ({"a", "b"}, {1, 2.5})
    assert (thread.blobs, thread.photo) == ({b"\x00", b"\xff"}, b"\x00\x01\xff")
    assert (thread.address.street, thread.address.number) == ("Main", 5)
    assert thread.comments[:2] == ["one", 2]
    assert thread.options == {"nested": [1, 2, {"x": None}]}
    assert thread.posted == posted


def test_a_missing_item_does_not_exist() -> None:
    with pytest.raises(Thread.DoesNotExist):
        Thread.get("nobody", "nothing")


def test_a_missing_table_is_told() -> None:
    class Missing(Thread):
        class Meta(Thread.Meta):
            table_name = "no_such_table"

    assert not Missing.exists()
    with pytest.raises(TableDoesNotExist):
        Missing.describe_table()
    with pytest.raises(PutError) as refused:
        Missing("a", "b").save()
    assert refused.value.cause_response_code == "ResourceNotFoundException"
    with pytest.raises(GetError):
        Missing.get("a", "b")


# Conditions and updates.


def test_conditional_saves_and_deletes() -> None:
    thread = Thread("a", "s", views=1)
    thread.save(condition=Thread.author.does_not_exist())
    with pytest.raises(PutError) as refused:
        Thread("a", "s").save(condition=Thread.author.does_not_exist())
    assert refused.value.cause_response_code == "ConditionalCheckFailedException"
    with pytest.raises(DeleteError):
        thread.delete(condition=Thread.views > 5)
    thread.delete(condition=(Thread.views == 1) & Thread.author.startswith("a"))
    assert Thread.count("a") == 0


def test_update_actions() -> None:
    thread = Thread("a", "s", views=1, tags={"x", "y"}, comments=["one"], forum="old", tag="t")
    thread.save()
    thread.update(
        actions=[
            Thread.views.add(5),
            Thread.tags.delete({"x"}),
            Thread.comments.set(Thread.comments.append(["two"])),
            Thread.forum.set("new"),
            Thread.tag.remove(),
            Thread.is_open.set(Thread.is_open | True),
        ]
    )
    assert (thread.views, thread.tags, thread.forum) == (6, {"y"}, "new")
    assert thread.attribute_values.get("tag") is None
    assert thread.comments == ["one", "two"]
    assert thread.is_open is True
    thread.update(actions=[Thread.views.set(Thread.views - 2)], condition=Thread.views == 6)
    assert thread.views == 4


def test_an_update_whose_condition_fails_changes_nothing() -> None:
    Thread("a", "s", views=1).save()
    thread = Thread.get("a", "s")
    with pytest.raises(UpdateError) as refused:
        thread.update(actions=[Thread.views.set(9)], condition=Thread.views > 5)
    assert refused.value.cause_response_code == "ConditionalCheckFailedException"
    assert Thread.get("a", "s").views == 1


def test_nested_paths() -> None:
    Thread("a", "s", address=Address(street="Main", number=1), comments=["x", "y", "z"]).save()
    thread = Thread.get("a", "s")
    address: Any = Thread.address
    thread.update(
        actions=[address.street.set("Side"), Thread.comments[0].set("changed")],
        condition=address.number == 1,
    )
    assert thread.address.street == "Side"
    assert thread.comments[0] == "changed"
    thread.update(actions=[Thread.comments[1].remove()])
    assert thread.comments == ["changed", "z"]


def test_refresh_sees_what_others_wrote() -> None:
    thread = Thread("a", "s", views=1)
    thread.save()
    Thread.get("a", "s").update(actions=[Thread.views.set(7)])
    thread.refresh()
    assert thread.views == 7


# Queries, scans and pages.


def test_queries_of_the_table() -> None:
    forum_of(60)
    found = list(Thread.query("author0", Thread.subject.between("subject010", "subject020")))
    assert [thread.subject for thread in found] == [f"subject{n:03}" for n in range(10, 21, 2)]
    latest = next(iter(Thread.query("author1", scan_index_forward=False, limit=1)))
    assert latest.subject == "subject059"
    filtered = Thread.query("author0", filter_condition=Thread.views >= 50)
    assert [int(thread.views) for thread in filtered] == [50, 52, 54, 56, 58]
    assert Thread.count("author0") == 30
    assert Thread.count("author0", filter_condition=Thread.views < 10) == 5


def test_queries_of_indexes() -> None:
    forum_of(60)
    found = list(Thread.by_forum.query("python", ByForum.views > 55))
    assert [int(thread.views) for thread in found] == [56, 57, 58, 59]
    assert Thread.by_forum.count("python") == 60
    tagged = list(Thread.by_tag.query("odd"))
    assert len(tagged) == 30
    assert tagged[0].forum is None  # not projected
    assert tagged[0].views is not None
    by_views = Thread.by_views.query("author0", ByViews.views < 6, consistent_read=True)
    assert [int(thread.views) for thread in by_views] == [0, 2, 4]


def test_pages_are_walked_and_can_be_taken_up() -> None:
    forum_of(50)
    pages = Thread.by_forum.query("python", page_size=7)
    assert [int(thread.views) for thread in pages] == list(range(50))
    first = Thread.by_forum.query("python", limit=20)
    seen = [int(thread.views) for thread in first]
    rest = Thread.by_forum.query("python", last_evaluated_key=first.last_evaluated_key)
    assert seen + [int(thread.views) for thread in rest] == list(range(50))


def test_scans_with_filters_and_segments() -> None:
    forum_of(60)
    found = Thread.scan(Thread.tag.exists() & (Thread.views < 10))
    assert sorted(int(thread.views) for thread in found) == [1, 3, 5, 7, 9]
    segments = [
        {thread.subject for thread in Thread.scan(segment=segment, total_segments=3)}
        for segment in range(3)
    ]
    assert sum(map(len, segments)) == len(set.union(*segments)) == 60
    assert len(list(Thread.scan(page_size=11))) == 60
    some = next(iter(Thread.scan(attributes_to_get=["author"])))
    assert some.author is not None
    assert some.subject is None


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        (Thread.views.is_in(1, 2, 3), 3),
        (Thread.subject.contains("01"), 11),
        (~(Thread.views > 5), 6),
        ((Thread.views == 1) | (Thread.views == 2), 2),
        (Thread.tag.does_not_exist(), 10),
        (Thread.tag != "odd", 10),
    ],
    ids=str,
)
def test_filters(condition: Any, count: int) -> None:
    forum_of(20)
    assert len(list(Thread.scan(condition))) == count


# Batches.


def test_batches_write_delete_and_get() -> None:
    threads = forum_of(60)
    keys = [(thread.author, thread.subject) for thread in threads]
    assert len(list(Thread.batch_get([*keys, ("nobody", "nothing")]))) == 60
    with Thread.batch_write() as batch:
        for thread in threads[:40]:
            batch.delete(thread)
    assert len(list(Thread.scan())) == 20


# Transactions.


@pytest.fixture
def connection(endpoint: str) -> Connection:
    return Connection(
        region="us-east-1", host=endpoint, aws_access_key_id="test", aws_secret_access_key="test"
    )


def test_a_transaction_writes_all_or_nothing(connection: Connection) -> None:
    Thread("a", "updated", views=1).save()
    Thread("a", "deleted").save()
    Thread("a", "checked", views=5).save()
    with TransactWrite(connection=connection, client_request_token="token-1") as transaction:
        transaction.save(Thread("a", "saved"), condition=Thread.author.does_not_exist())
        transaction.update(Thread("a", "updated"), actions=[Thread.views.add(1)])
        transaction.delete(Thread("a", "deleted"))
        transaction.condition_check(Thread, "a", "checked", condition=Thread.views == 5)
    assert {thread.subject for thread in Thread.query("a")} == {"saved", "updated", "checked"}
    assert Thread.get("a", "updated").views == 2
    with pytest.raises(TransactWriteError) as cancelled:  # noqa: SIM117 - the inner one commits
        with TransactWrite(connection=connection) as transaction:
            transaction.save(Thread("a", "never"))
            transaction.condition_check(Thread, "a", "checked", condition=Thread.views == 6)
    assert cancelled.value.cause_response_code == "TransactionCanceledException"
    # PynamoDB sends its condition checks first.
    codes = [reason.code if reason else None for reason in cancelled.value.cancellation_reasons]
    assert codes == ["ConditionalCheckFailed", None]
    with pytest.raises(Thread.DoesNotExist):
        Thread.get("a", "never")


def test_a_transaction_reads_many(connection: Connection) -> None:
    forum_of(4)
    with TransactGet(connection=connection) as transaction:
        found = [transaction.get(Thread, f"author{n % 2}", f"subject{n:03}") for n in range(4)]
        missing = transaction.get(Thread, "nobody", "nothing")
    assert [int(each.get().views) for each in found] == [0, 1, 2, 3]
    with pytest.raises(Thread.DoesNotExist):
        missing.get()


def test_a_read_transaction_on_a_missing_table_fails(connection: Connection) -> None:
    class Missing(Thread):
        class Meta(Thread.Meta):
            table_name = "no_such_table"

    with pytest.raises(TransactGetError):  # noqa: SIM117 - the inner one commits
        with TransactGet(connection=connection) as transaction:
            transaction.get(Missing, "a", "b")


# Versions.


def test_a_version_counts_and_guards_writes() -> None:
    document = Document("a", text="one")
    document.save()
    assert document.version == 1
    other = Document.get("a")
    document.text = "two"
    document.save()
    assert document.version == 2
    other.text = "lost update"
    with pytest.raises(PutError) as refused:
        other.save()
    assert refused.value.cause_response_code == "ConditionalCheckFailedException"
    other.refresh()
    other.update(actions=[Document.text.set("three")])
    assert other.version == 3
    with pytest.raises(DeleteError):
        document.delete()
    other.delete()


def test_versions_guard_transactions(connection: Connection) -> None:
    document, stale = Document("a", text="one"), Document("b", text="one")
    document.save()
    stale.save()
    Document.get("b").update(actions=[Document.text.set("two")])
    with pytest.raises(TransactWriteError):  # noqa: SIM117 - the inner one commits
        with TransactWrite(connection=connection) as transaction:
            document.text = "changed"
            transaction.save(document)
            transaction.save(stale)
    assert Document.get("a").text == "one"


# Time to live.


def test_time_to_live_is_switched_on_with_the_table() -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    Thread("a", "past", expires=past).save()
    Thread("a", "future", expires=timedelta(hours=1)).save()
    deadline = time.monotonic() + EXPIRY_SECONDS_MAX
    while Thread.count("a") > 1:
        assert time.monotonic() < deadline, "nothing has expired"
        time.sleep(0.05)
    assert Thread.get("a", "future").expires > datetime.now(UTC)
