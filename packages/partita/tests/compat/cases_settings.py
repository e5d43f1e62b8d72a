"""Time to live, tags, limits and endpoints."""

from __future__ import annotations

from .notation import ARNS, THINGS, Case, Step, case, create, given, send, unordered

ARN = f"{ARNS}table/Things"


def ttl(enabled: object, attribute: object = "expires", table: str = "Things") -> Step:
    return send(
        "UpdateTimeToLive",
        TableName=table,
        TimeToLiveSpecification={"Enabled": enabled, "AttributeName": attribute},
    )


def described(table: str = "Things") -> Step:
    return send("DescribeTimeToLive", TableName=table)


def tags(table: str = "Things") -> Step:
    return unordered(send("ListTagsOfResource", ResourceArn=f"{ARNS}table/{table}"), "Tags")


def tag(table: str = "Things", /, **pairs: str) -> Step:
    return send(
        "TagResource",
        ResourceArn=f"{ARNS}table/{table}",
        Tags=[{"Key": key, "Value": value} for key, value in pairs.items()],
    )


def untag(*keys: str, table: str = "Things") -> Step:
    return send("UntagResource", ResourceArn=f"{ARNS}table/{table}", TagKeys=list(keys))


CASES: list[Case] = [
    *given(THINGS)(
        case("a table has no time to live at first", described()),
        case("time to live is turned on", ttl(True), described()),
        case("time to live is turned on twice", ttl(True), ttl(True)),
        case("time to live is turned on for another attribute", ttl(True), ttl(True, "extra")),
        case("time to live is turned on and off", ttl(True), ttl(False), described()),
        case("time to live is turned off for another attribute", ttl(True), ttl(False, "extra")),
        case("time to live that is off is turned off", ttl(False)),
        case("time to live of an attribute without a name", ttl(True, "")),
        case("time to live of an attribute with a long name", ttl(True, "a" * 256)),
        case("time to live of the key", ttl(True, "pk")),
        case("time to live without a specification", send("UpdateTimeToLive", TableName="Things")),
        case(
            "time to live with an empty specification",
            send("UpdateTimeToLive", TableName="Things", TimeToLiveSpecification={}),
        ),
        case("time to live that is a text", ttl("perhaps")),
        case("time to live of an absent table", ttl(True, table="Absent"), described("Absent")),
        case("time to live of no table", send("UpdateTimeToLive"), send("DescribeTimeToLive")),
        case("time to live of a bad name", described("a;b")),
    ),
    *given(THINGS)(
        case("a table has no tags at first", tags()),
        case("tags are added", tag(a="1", b="2"), tags()),
        case("a tag is written over", tag(a="1", b="2"), tag(b="3", c="4"), tags()),
        case("tags are removed", tag(a="1", b="2"), untag("a", "nope"), tags()),
        case("a tag without a value", tag(a=""), tags()),
        case(
            "50 tags", tag(**{f"k{n}": "v" for n in range(50)}), tag(k0="w"), tag(more="v"), tags()
        ),
        case("51 tags", tag(**{f"k{n}": "v" for n in range(51)}), tags()),
        case(
            "one tag twice",
            send(
                "TagResource",
                ResourceArn=ARN,
                Tags=[{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}],
            ),
            tags(),
        ),
        case("no tags in the list", send("TagResource", ResourceArn=ARN, Tags=[]), untag()),
        case(
            "no tags at all",
            send("TagResource", ResourceArn=ARN),
            send("UntagResource", ResourceArn=ARN),
        ),
        case("a tag with an empty key", tag(**{"": "1"})),
        case("a tag with a long key", tag(**{"k" * 129: "1"}), tag(**{"k" * 128: "1"})),
        case("a tag with a long value", tag(a="v" * 257), tag(a="v" * 256)),
        case("a tag without members", send("TagResource", ResourceArn=ARN, Tags=[{}])),
        case("a tag that AWS keeps to itself", tag(**{"aws:x": "1"})),
        case(
            "tags of an absent table",
            tag("Absent", a="1"),
            untag("a", table="Absent"),
            tags("Absent"),
        ),
        case(
            "tags of nothing",
            send("TagResource"),
            send("UntagResource"),
            send("ListTagsOfResource"),
        ),
        case(
            "tags of what is no ARN",
            send("ListTagsOfResource", ResourceArn="abcd"),
            send("TagResource", ResourceArn="abcd", Tags=[{"Key": "a", "Value": "b"}]),
        ),
        case(
            "tags after a token that is none",
            send("ListTagsOfResource", ResourceArn=ARN, NextToken="x"),
        ),
    ),
    case(
        "tags of a new table",
        create("Tagged", "pk:S", Tags=[{"Key": "a", "Value": "b"}]),
        tags("Tagged"),
    ),
    case(
        "a new table with a tag twice",
        create("Tagged", "pk:S", Tags=[{"Key": "a", "Value": "b"}] * 2),
    ),
    case("the limits of the account", send("DescribeLimits")),
    case("limits, whatever is asked", send("DescribeLimits", {"Colour": "red"})),
    case("the endpoints", send("DescribeEndpoints")),
]
