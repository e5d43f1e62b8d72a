"""The decision, case by case: what AWS's documentation says of policies, and what must hold of any.

A case is a policy (or several), a request, and the outcome. Sources: IAM User Guide (evaluation
logic, elements, condition operators, multivalued keys, variables) and DynamoDB's guide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.server.security.policies.policy_decision import (
    ALLOWED,
    EXPLICIT_DENY,
    IMPLICIT_DENY,
    CallerPolicies,
    PolicyRequest,
    Principal,
    applicable,
    decide,
    denial,
)
from partita.server.security.policies.policy_documents import (
    IDENTITY,
    RESOURCE,
    Policy,
    PolicyError,
    parse,
)

ACCOUNT = "123456789012"
ANN = Principal(f"arn:aws:iam::{ACCOUNT}:user/ann", ACCOUNT)
ROOT = Principal(f"arn:aws:iam::{ACCOUNT}:root", ACCOUNT, is_root=True)
SESSION = Principal(
    f"arn:aws:sts::{ACCOUNT}:assumed-role/app/s1", ACCOUNT, f"arn:aws:iam::{ACCOUNT}:role/app"
)
BOOKS = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Books"
INDEX = f"{BOOKS}/index/by_title"
STREAM = f"{BOOKS}/stream/2026-01-01T00:00:00.000"
GET, PUT = "dynamodb:GetItem", "dynamodb:PutItem"

Json = dict[str, Any]
YES, NO, DENIED = ALLOWED, IMPLICIT_DENY, EXPLICIT_DENY


def policy(*statements: Json, kind: str = IDENTITY, version: str | None = "2012-10-17") -> Policy:
    document: Json = {"Statement": list(statements)}
    if version is not None:
        document["Version"] = version
    return parse(json.dumps(document), "p", kind)


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> Json:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any = "*", resource: Any = "*", **more: Any) -> Json:
    return {**allow(action, resource, **more), "Effect": "Deny"}


def outcome(
    *statements: Json,
    action: str = GET,
    resource: str = BOOKS,
    context: Mapping[str, Sequence[str]] | None = None,
    principal: Principal = ANN,
    version: str | None = "2012-10-17",
    of_resource: Sequence[Json] = (),
    boundary: Sequence[Json] | None = None,
    session: Sequence[Json] | None = None,
) -> str:
    policies = CallerPolicies(
        (policy(*statements, version=version),) if statements else (),
        (policy(*of_resource, kind=RESOURCE),) if of_resource else (),
        None if boundary is None else (policy(*boundary),),
        None if session is None else (policy(*session),),
    )
    keys = {name.lower(): values for name, values in (context or {}).items()}
    request = PolicyRequest(principal, action, resource, keys)
    decided = decide(policies, request).outcome
    # What never could count is left out beforehand.
    assert decide(applicable(policies, request), request).outcome == decided
    return decided


# Actions

ACTIONS = [
    ("*", GET, True),
    ("dynamodb:*", GET, True),
    ("dynamodb:*", "kinesis:GetRecords", False),
    ("dynamodb:GetItem", GET, True),
    ("DynamoDB:getitem", GET, True),
    ("DYNAMODB:GETITEM", GET, True),
    ("dynamodb:Get*", GET, True),
    ("dynamodb:*Item", GET, True),
    ("dynamodb:*Item", "dynamodb:BatchGetItem", True),
    ("dynamodb:*Item", "dynamodb:Query", False),
    ("dynamodb:?etItem", GET, True),
    ("dynamodb:?etItem", "dynamodb:ResetItem", False),
    ("dynamodb:GetItem?", GET, False),
    ("dynamodb:GetIte", GET, False),
    ("dynamodb:G*t*m", GET, True),
    ("dynamodb:PartiQL*", "dynamodb:PartiQLSelect", True),
    ("dynamodb:PartiQL*", "dynamodb:Select", False),
    ("dynamodb:Describe*", "dynamodb:DescribeTable", True),
    ("dynamodb:Describe*", "dynamodb:UpdateTable", False),
    (["dynamodb:PutItem", "dynamodb:GetItem"], GET, True),
    (["dynamodb:PutItem", "dynamodb:Query"], GET, False),
    ("dynamodbx:GetItem", GET, False),
    ("sts:AssumeRole", GET, False),
]


@pytest.mark.parametrize(("pattern", "action", "fits"), ACTIONS)
def test_actions(pattern: Any, action: str, fits: bool) -> None:
    assert outcome(allow(pattern), action=action) == (YES if fits else NO)
    assert outcome(allow(), deny(pattern), action=action) == (DENIED if fits else YES)


@pytest.mark.parametrize(("pattern", "action", "fits"), ACTIONS)
def test_not_action_is_all_others(pattern: Any, action: str, fits: bool) -> None:
    negated = {"Effect": "Allow", "NotAction": pattern, "Resource": "*"}
    assert outcome(negated, action=action) == (NO if fits else YES)


# Resources

RESOURCES = [
    ("*", BOOKS, True),
    (BOOKS, BOOKS, True),
    (BOOKS, f"{BOOKS}2", False),
    (BOOKS, INDEX, False),
    (BOOKS, STREAM, False),
    (f"{BOOKS}/*", INDEX, True),
    (f"{BOOKS}/*", BOOKS, False),
    (f"{BOOKS}/index/*", INDEX, True),
    (f"{BOOKS}/index/*", STREAM, False),
    (f"{BOOKS}/stream/*", STREAM, True),
    (f"{BOOKS}*", INDEX, True),
    (f"{BOOKS}/index/by_?itle", INDEX, True),
    (f"arn:aws:dynamodb:*:{ACCOUNT}:table/Books", BOOKS, True),
    ("arn:aws:dynamodb:*:*:table/Books", BOOKS, True),
    ("arn:aws:dynamodb:us-*:*:table/*", BOOKS, True),
    ("arn:aws:dynamodb:eu-*:*:table/*", BOOKS, False),
    ("arn:aws:dynamodb:*:*:*", BOOKS, True),
    ("arn:aws:dynamodb::*:table/Books", BOOKS, False),
    ("arn:aws:dynamodb:*:111111111111:table/Books", BOOKS, False),
    ("arn:aws:dynamodb:*:*:table/books", BOOKS, False),
    ("arn:aws:dynamodb:*:*:table/B??ks", BOOKS, True),
    ("arn:aws:dynamodb:*:*:table/B?ks", BOOKS, False),
    ("arn:aws:kinesis:*:*:stream/*", BOOKS, False),
    ("arn:*:dynamodb:*:*:table/Books", BOOKS, True),
    # A wildcard stays in its part: this one has no account.
    ("arn:aws:dynamodb:*:table/Books:*", BOOKS, False),
    ([f"{BOOKS}2", BOOKS], BOOKS, True),
    ([BOOKS, f"{BOOKS}/index/*"], INDEX, True),
    (BOOKS, "*", False),
]


@pytest.mark.parametrize(("pattern", "resource", "fits"), RESOURCES)
def test_resources(pattern: Any, resource: str, fits: bool) -> None:
    assert outcome(allow(resource=pattern), resource=resource) == (YES if fits else NO)
    both = outcome(allow(), deny(resource=pattern), resource=resource)
    assert both == (DENIED if fits else YES)


@pytest.mark.parametrize(("pattern", "resource", "fits"), RESOURCES)
def test_not_resource_is_all_others(pattern: Any, resource: str, fits: bool) -> None:
    negated = {"Effect": "Allow", "Action": "*", "NotResource": pattern}
    assert outcome(negated, resource=resource) == (NO if fits else YES)


# Condition operators: operator, values of the policy, values of the request, whether it holds

USER, IP, NOW = "aws:username", "aws:SourceIp", "aws:CurrentTime"
KEYS = "dynamodb:LeadingKeys"
CONDITIONS: list[tuple[str, str, Any, Sequence[str] | None, bool]] = [
    ("StringEquals", USER, "ann", ["ann"], True),
    ("StringEquals", USER, "ann", ["Ann"], False),
    ("StringEquals", USER, ["bob", "ann"], ["ann"], True),
    ("StringEquals", USER, ["bob", "eve"], ["ann"], False),
    ("StringEquals", USER, "an*", ["ann"], False),
    ("StringEquals", USER, "ann", None, False),
    ("stringequals", USER, "ann", ["ann"], True),
    ("StringNotEquals", USER, "ann", ["bob"], True),
    ("StringNotEquals", USER, "ann", ["ann"], False),
    ("StringNotEquals", USER, ["ann", "bob"], ["bob"], False),
    ("StringNotEquals", USER, ["ann", "bob"], ["eve"], True),
    ("StringNotEquals", USER, "ann", None, True),
    ("StringEqualsIgnoreCase", USER, "ANN", ["ann"], True),
    ("StringEqualsIgnoreCase", USER, "ANN", ["bob"], False),
    ("StringEqualsIgnoreCase", USER, "ANN", None, False),
    ("StringNotEqualsIgnoreCase", USER, "ANN", ["ann"], False),
    ("StringNotEqualsIgnoreCase", USER, "ANN", ["bob"], True),
    ("StringNotEqualsIgnoreCase", USER, "ANN", None, True),
    ("StringLike", USER, "a*", ["ann"], True),
    ("StringLike", USER, "a?n", ["ann"], True),
    ("StringLike", USER, "a?", ["ann"], False),
    ("StringLike", USER, "A*", ["ann"], False),
    ("StringLike", USER, "*", [""], True),
    ("StringLike", USER, "*", None, False),
    ("StringLike", USER, ["b*", "*n"], ["ann"], True),
    ("StringLike", USER, "a.n", ["axn"], False),
    ("StringNotLike", USER, "a*", ["ann"], False),
    ("StringNotLike", USER, "a*", ["bob"], True),
    ("StringNotLike", USER, "a*", None, True),
    ("StringNotLike", USER, ["a*", "b*"], ["bob"], False),
    ("StringEqualsIfExists", USER, "ann", None, True),
    ("StringEqualsIfExists", USER, "ann", ["ann"], True),
    ("StringEqualsIfExists", USER, "ann", ["bob"], False),
    ("StringLikeIfExists", USER, "a*", None, True),
    ("StringLikeIfExists", USER, "a*", ["bob"], False),
    ("StringNotEqualsIfExists", USER, "ann", None, True),
    ("StringNotEqualsIfExists", USER, "ann", ["ann"], False),
    ("NumericEquals", "s3:max-keys", "10", ["10"], True),
    ("NumericEquals", "s3:max-keys", "10", ["10.0"], True),
    ("NumericEquals", "s3:max-keys", 10, ["10"], True),
    ("NumericEquals", "s3:max-keys", "10", ["11"], False),
    ("NumericEquals", "s3:max-keys", "10", ["ten"], False),
    ("NumericEquals", "s3:max-keys", "10", None, False),
    ("NumericEquals", "s3:max-keys", ["1", "2"], ["2"], True),
    ("NumericNotEquals", "s3:max-keys", "10", ["11"], True),
    ("NumericNotEquals", "s3:max-keys", "10", ["10"], False),
    ("NumericNotEquals", "s3:max-keys", "10", None, True),
    ("NumericLessThan", "s3:max-keys", "10", ["9.5"], True),
    ("NumericLessThan", "s3:max-keys", "10", ["10"], False),
    ("NumericLessThan", "s3:max-keys", "10", ["9"], True),
    ("NumericLessThanEquals", "s3:max-keys", "10", ["10"], True),
    ("NumericLessThanEquals", "s3:max-keys", "10", ["10.1"], False),
    ("NumericLessThanEquals", "s3:max-keys", "10", None, False),
    ("NumericGreaterThan", "s3:max-keys", "10", ["11"], True),
    ("NumericGreaterThan", "s3:max-keys", "10", ["9"], False),
    ("NumericGreaterThan", "s3:max-keys", "-1", ["0"], True),
    ("NumericGreaterThanEquals", "s3:max-keys", "10", ["10"], True),
    ("NumericGreaterThanEquals", "s3:max-keys", "10", ["9"], False),
    ("NumericLessThanIfExists", "s3:max-keys", "10", None, True),
    ("NumericLessThanIfExists", "s3:max-keys", "10", ["12"], False),
    ("DateEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z"], True),
    ("DateEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T01:00:00+01:00"], True),
    ("DateEquals", NOW, "2026-01-01T00:00:00Z", ["1767225600"], True),
    ("DateEquals", NOW, "2026-01-01", ["2026-01-01T00:00:00Z"], True),
    ("DateEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z"], False),
    ("DateNotEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z"], True),
    ("DateNotEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z"], False),
    ("DateNotEquals", NOW, "2026-01-01T00:00:00Z", None, True),
    ("DateLessThan", NOW, "2026-01-01T00:00:00Z", ["2025-12-31T23:59:59Z"], True),
    ("DateLessThan", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z"], False),
    ("DateLessThanEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z"], True),
    ("DateLessThanEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:01Z"], False),
    ("DateGreaterThan", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:01Z"], True),
    ("DateGreaterThan", NOW, "2026-01-01T00:00:00Z", ["2025-01-01T00:00:00Z"], False),
    ("DateGreaterThanEquals", NOW, "2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z"], True),
    ("DateGreaterThanEquals", NOW, "2026-01-01T00:00:00Z", ["2025-12-31T00:00:00Z"], False),
    ("DateGreaterThan", NOW, "2026-01-01T00:00:00Z", ["yesterday"], False),
    ("DateGreaterThan", NOW, "2026-01-01T00:00:00Z", None, False),
    ("DateLessThanIfExists", NOW, "2026-01-01T00:00:00Z", None, True),
    ("Bool", "aws:SecureTransport", "true", ["true"], True),
    ("Bool", "aws:SecureTransport", "true", ["false"], False),
    ("Bool", "aws:SecureTransport", "false", ["false"], True),
    ("Bool", "aws:SecureTransport", True, ["true"], True),
    ("Bool", "aws:SecureTransport", "TRUE", ["True"], True),
    ("Bool", "aws:SecureTransport", "true", None, False),
    ("Bool", "aws:SecureTransport", "false", None, False),
    ("BoolIfExists", "aws:MultiFactorAuthPresent", "true", None, True),
    ("BoolIfExists", "aws:MultiFactorAuthPresent", "true", ["false"], False),
    ("BinaryEquals", "my:key", "QmluYXJ5", ["QmluYXJ5"], True),
    ("BinaryEquals", "my:key", "QmluYXJ5", ["QmluYXJ6"], False),
    ("BinaryEquals", "my:key", "QmluYXJ5", ["no base64"], False),
    ("BinaryEquals", "my:key", "QmluYXJ5", None, False),
    ("IpAddress", IP, "203.0.113.0/24", ["203.0.113.7"], True),
    ("IpAddress", IP, "203.0.113.0/24", ["203.0.114.7"], False),
    ("IpAddress", IP, "203.0.113.7", ["203.0.113.7"], True),
    ("IpAddress", IP, "203.0.113.7", ["203.0.113.8"], False),
    ("IpAddress", IP, ["10.0.0.0/8", "203.0.113.0/24"], ["10.1.2.3"], True),
    ("IpAddress", IP, "2001:db8::/32", ["2001:db8::1"], True),
    ("IpAddress", IP, "2001:db8::/32", ["2001:db9::1"], False),
    ("IpAddress", IP, "203.0.113.0/24", ["2001:db8::1"], False),
    ("IpAddress", IP, "203.0.113.0/24", ["::ffff:203.0.113.7"], True),
    ("IpAddress", IP, "203.0.113.0/24", ["unknown"], False),
    ("IpAddress", IP, "203.0.113.0/24", None, False),
    ("NotIpAddress", IP, "203.0.113.0/24", ["203.0.114.7"], True),
    ("NotIpAddress", IP, "203.0.113.0/24", ["203.0.113.7"], False),
    ("NotIpAddress", IP, "203.0.113.0/24", None, True),
    ("NotIpAddress", IP, ["10.0.0.0/8", "203.0.113.0/24"], ["10.0.0.1"], False),
    ("ArnEquals", "aws:PrincipalArn", ANN.arn, [ANN.arn], True),
    ("ArnEquals", "aws:PrincipalArn", "arn:aws:iam::*:user/a*", [ANN.arn], True),
    ("ArnEquals", "aws:PrincipalArn", "arn:aws:iam::*:user/b*", [ANN.arn], False),
    ("ArnEquals", "aws:PrincipalArn", ANN.arn, None, False),
    ("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:user/*", [ANN.arn], True),
    ("ArnLike", "aws:PrincipalArn", "arn:*:*:*:*:*", [ANN.arn], True),
    ("ArnLike", "aws:PrincipalArn", "arn:aws:iam:*:role/*:*", [ANN.arn], False),
    ("ArnLike", "aws:PrincipalArn", f"arn:aws:iam::{ACCOUNT}:role/*", [ANN.arn], False),
    ("ArnNotEquals", "aws:PrincipalArn", ANN.arn, [ANN.arn], False),
    ("ArnNotEquals", "aws:PrincipalArn", ANN.arn, [ROOT.arn], True),
    ("ArnNotEquals", "aws:PrincipalArn", ANN.arn, None, True),
    ("ArnNotLike", "aws:PrincipalArn", "arn:aws:iam::*:user/*", [ANN.arn], False),
    ("ArnNotLike", "aws:PrincipalArn", "arn:aws:iam::*:role/*", [ANN.arn], True),
    ("ArnLikeIfExists", "aws:PrincipalArn", ANN.arn, None, True),
    ("Null", "aws:TokenIssueTime", "true", None, True),
    ("Null", "aws:TokenIssueTime", "true", ["2026-01-01T00:00:00Z"], False),
    ("Null", "aws:TokenIssueTime", "false", ["2026-01-01T00:00:00Z"], True),
    ("Null", "aws:TokenIssueTime", "false", None, False),
    ("Null", "aws:TokenIssueTime", True, None, True),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], ["a"], True),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], ["a", "b"], True),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], ["a", "c"], False),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], None, True),
    ("ForAllValues:StringEquals", KEYS, ["a", "b"], [], True),
    ("ForAllValues:StringLike", KEYS, "a*", ["a1", "a2"], True),
    ("ForAllValues:StringLike", KEYS, "a*", ["a1", "b2"], False),
    ("ForAllValues:StringNotEquals", KEYS, "a", ["b", "c"], True),
    ("ForAllValues:StringNotEquals", KEYS, "a", ["a", "c"], False),
    ("ForAllValues:StringNotLike", KEYS, "a*", ["b", "a1"], False),
    ("ForAllValues:StringEqualsIfExists", KEYS, "a", None, True),
    ("ForAllValues:NumericLessThan", KEYS, "5", ["1", "4"], True),
    ("ForAllValues:NumericLessThan", KEYS, "5", ["1", "6"], False),
    ("forallvalues:stringequals", KEYS, "a", ["a"], True),
    ("ForAnyValue:StringEquals", KEYS, ["a", "b"], ["c", "b"], True),
    ("ForAnyValue:StringEquals", KEYS, ["a", "b"], ["c", "d"], False),
    ("ForAnyValue:StringEquals", KEYS, ["a", "b"], None, False),
    ("ForAnyValue:StringEquals", KEYS, ["a", "b"], [], False),
    ("ForAnyValue:StringLike", KEYS, "a*", ["b", "a1"], True),
    ("ForAnyValue:StringNotEquals", KEYS, "a", ["a", "b"], True),
    ("ForAnyValue:StringNotEquals", KEYS, "a", ["a"], False),
    ("ForAnyValue:StringNotEquals", KEYS, "a", None, False),
    ("ForAnyValue:StringEqualsIfExists", KEYS, "a", None, True),
    ("ForAnyValue:ArnLike", KEYS, "arn:aws:iam::*:user/*", ["x", ANN.arn], True),
]


@pytest.mark.parametrize(("operator", "key", "wanted", "given", "holds"), CONDITIONS)
def test_condition_operators(
    operator: str, key: str, wanted: Any, given: Sequence[str] | None, holds: bool
) -> None:
    condition = {operator: {key: wanted}}
    context = {} if given is None else {key: given}
    assert outcome(allow(Condition=condition), context=context) == (YES if holds else NO)
    denied = outcome(allow(), deny(Condition=condition), context=context)
    assert denied == (DENIED if holds else YES)


def test_keys_and_operators_are_joined_by_and() -> None:
    both = {"StringEquals": {USER: "ann", "aws:userid": "x"}, "Bool": {"my:flag": "true"}}
    full = {USER: ["ann"], "aws:userid": ["x"], "my:flag": ["true"]}
    assert outcome(allow(Condition=both), context=full) == YES
    for missing in full:
        part = {name: value for name, value in full.items() if name != missing}
        assert outcome(allow(Condition=both), context=part) == NO


def test_the_case_of_condition_keys_does_not_count() -> None:
    condition = {"StringEquals": {"AWS:UserName": "ann"}}
    assert outcome(allow(Condition=condition), context={"aws:username": ["ann"]}) == YES


def test_several_values_without_a_qualifier_slip_through_nowhere() -> None:
    one = {"StringEquals": {KEYS: "mine"}}
    assert outcome(allow(Condition=one), context={KEYS: ["mine", "other"]}) == NO
    secret = {"StringEquals": {KEYS: "secret"}}
    context = {KEYS: ["mine", "secret"]}
    assert outcome(allow(), deny(Condition=secret), context=context) == DENIED


# Variables

VARIABLES = [
    ("${aws:username}", "ann", True),
    ("${aws:username}", "bob", False),
    ("${AWS:UserName}", "ann", True),
    ("${ aws:username }", "ann", True),
    ("home-${aws:username}", "home-ann", True),
    ("${aws:username}-${aws:userid}", "ann-AIDA", True),
    ("${aws:missing}", "", False),
    ("${aws:missing, 'nobody'}", "nobody", True),
    ("${aws:username, 'nobody'}", "nobody", False),
    ("${*}", "*", True),
    ("${*}", "x", False),
    ("${?}", "?", True),
    ("${$}", "$", True),
    ("${several:values}", "a", False),
]
CONTEXT = {USER: ["ann"], "aws:userid": ["AIDA"], "several:values": ["a", "b"]}


@pytest.mark.parametrize(("pattern", "value", "fits"), VARIABLES)
@pytest.mark.parametrize("operator", ["StringEquals", "StringLike"])
def test_variables_in_conditions(operator: str, pattern: str, value: str, fits: bool) -> None:
    condition = {operator: {"my:key": pattern}}
    context = {**CONTEXT, "my:key": [value]}
    assert outcome(allow(Condition=condition), context=context) == (YES if fits else NO)


@pytest.mark.parametrize(("pattern", "value", "fits"), VARIABLES)
def test_variables_in_resources(pattern: str, value: str, fits: bool) -> None:
    prefix = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/"
    found = outcome(allow(resource=prefix + pattern), resource=prefix + value, context=CONTEXT)
    assert found == (YES if fits else NO)


def test_wildcards_in_the_value_of_a_variable_mean_nothing() -> None:
    context = {USER: ["*"]}
    resource = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/${{aws:username}}"
    assert outcome(allow(resource=resource), context=context) == NO
    like = {"StringLike": {KEYS: "${aws:username}"}}
    assert outcome(allow(Condition=like), context={**context, KEYS: ["anything"]}) == NO


@pytest.mark.parametrize("version", ["2008-10-17", None])
def test_the_older_version_knows_no_variables(version: str | None) -> None:
    condition = {"StringEquals": {KEYS: "${aws:username}"}}
    context = {USER: ["ann"], KEYS: ["ann"]}
    assert outcome(allow(Condition=condition), context=context, version=version) == NO
    context[KEYS] = ["${aws:username}"]
    assert outcome(allow(Condition=condition), context=context, version=version) == YES


def test_a_variable_that_is_not_there_makes_a_condition_fail() -> None:
    for operator in ("StringEquals", "StringNotEquals", "StringLike", "StringNotLike"):
        condition = {operator: {KEYS: "${aws:missing}"}}
        assert outcome(allow(Condition=condition), context={KEYS: ["a"]}) == NO


# The order of the evaluation


def grant(principal: Any, effect: str = "Allow", **more: Any) -> Json:
    return {**allow(), "Effect": effect, "Principal": principal, **more}


USER_GRANT = grant({"AWS": ANN.arn})
EVALUATIONS: list[tuple[str, Json, str]] = [
    ("nothing says anything", {}, NO),
    ("an allow", {"own": [allow()]}, YES),
    ("a deny alone", {"own": [deny()]}, DENIED),
    ("a deny beats an allow", {"own": [allow(), deny()]}, DENIED),
    ("a deny of something else", {"own": [allow(), deny(PUT)]}, YES),
    ("the resource's policy alone", {"of_resource": [USER_GRANT]}, YES),
    (
        "a resource's policy for another",
        {"of_resource": [grant({"AWS": ROOT.arn[:-4] + "user/b"})]},
        NO,
    ),
    ("a resource's policy for everybody", {"of_resource": [grant("*")]}, YES),
    ("the same with AWS", {"of_resource": [grant({"AWS": "*"})]}, YES),
    ("for the account: policies must allow", {"of_resource": [grant({"AWS": ACCOUNT})]}, NO),
    ("the same by ARN", {"of_resource": [grant({"AWS": ROOT.arn})]}, NO),
    ("account, and they do", {"own": [allow()], "of_resource": [grant({"AWS": ROOT.arn})]}, YES),
    ("another account", {"of_resource": [grant({"AWS": "111111111111"})]}, NO),
    ("a service", {"of_resource": [grant({"Service": "states.amazonaws.com"})]}, NO),
    ("a resource's deny", {"own": [allow()], "of_resource": [grant("*", "Deny")]}, DENIED),
    (
        "deny of the account",
        {"own": [allow()], "of_resource": [grant({"AWS": ACCOUNT}, "Deny")]},
        DENIED,
    ),
    (
        "deny of others",
        {"own": [allow()], "of_resource": [grant({"AWS": "111111111111"}, "Deny")]},
        YES,
    ),
    ("an own deny beats the resource", {"own": [deny()], "of_resource": [USER_GRANT]}, DENIED),
    ("a boundary alone", {"boundary": [allow()]}, NO),
    ("a boundary that allows", {"own": [allow()], "boundary": [allow()]}, YES),
    ("a boundary that does not", {"own": [allow()], "boundary": [allow(PUT)]}, NO),
    ("a boundary that denies", {"own": [allow()], "boundary": [allow(), deny()]}, DENIED),
    (
        "a user's grant is beyond the boundary",
        {"of_resource": [USER_GRANT], "boundary": [allow(PUT)]},
        YES,
    ),
    ("a session policy that allows", {"own": [allow()], "session": [allow()]}, YES),
    ("a session policy that does not", {"own": [allow()], "session": [allow(PUT)]}, NO),
    ("a session policy alone", {"session": [allow()]}, NO),
    ("a session policy that denies", {"own": [allow()], "session": [deny()]}, DENIED),
    ("all three", {"own": [allow()], "boundary": [allow()], "session": [allow()]}, YES),
    (
        "one of three is missing",
        {"own": [allow()], "boundary": [allow()], "session": [allow(PUT)]},
        NO,
    ),
]


@pytest.mark.parametrize(("_name", "given", "expected"), EVALUATIONS)
def test_the_order_of_evaluation(_name: str, given: Json, expected: str) -> None:
    given = dict(given)
    assert outcome(*given.pop("own", ()), **given) == expected


def test_not_principal_spares_those_whom_it_names() -> None:
    spared = {**deny(), "NotPrincipal": {"AWS": ANN.arn}}
    assert outcome(allow(), of_resource=[spared]) == YES
    assert outcome(allow(), of_resource=[spared], principal=SESSION) == DENIED
    account = {**deny(), "NotPrincipal": {"AWS": ACCOUNT}}
    assert outcome(allow(), of_resource=[account]) == YES


def test_a_session_of_a_role_in_a_resources_policy() -> None:
    by_role = [grant({"AWS": SESSION.role_arn})]
    by_session = [grant({"AWS": SESSION.arn})]
    for granted in (by_role, by_session):
        assert outcome(principal=SESSION, of_resource=granted) == YES
    narrow = [allow(PUT)]
    assert outcome(principal=SESSION, of_resource=by_role, session=narrow) == NO
    assert outcome(principal=SESSION, of_resource=by_session, session=narrow) == YES
    assert outcome(principal=ANN, of_resource=by_role) == NO


def test_root_may_do_what_nothing_denies() -> None:
    assert outcome(principal=ROOT) == YES
    assert outcome(principal=ROOT, of_resource=[grant("*", "Deny")]) == DENIED


# DynamoDB's own examples (developer guide, "Using conditions")

GAMES = f"arn:aws:dynamodb:us-west-2:{ACCOUNT}:table/GameScores"
OWN_ATTRIBUTES = allow(
    ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem"],
    GAMES,
    Condition={
        "ForAllValues:StringEquals": {
            "dynamodb:LeadingKeys": ["${www.amazon.com:user_id}"],
            "dynamodb:Attributes": ["UserId", "GameTitle", "Wins", "Losses"],
        },
        "StringEqualsIfExists": {
            "dynamodb:Select": "SPECIFIC_ATTRIBUTES",
            "dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"],
        },
    },
)
ME = {"www.amazon.com:user_id": ["me"]}
GAME_CASES: list[tuple[Mapping[str, Sequence[str]], bool]] = [
    ({**ME, KEYS: ["me"], "dynamodb:Attributes": ["UserId", "Wins"]}, True),
    ({**ME, KEYS: ["you"], "dynamodb:Attributes": ["UserId", "Wins"]}, False),
    ({**ME, KEYS: ["me", "you"], "dynamodb:Attributes": ["UserId"]}, False),
    ({**ME, KEYS: ["me"], "dynamodb:Attributes": ["UserId", "Address"]}, False),
    ({**ME, KEYS: ["me"], "dynamodb:Select": ["ALL_ATTRIBUTES"]}, False),
    ({**ME, KEYS: ["me"], "dynamodb:Select": ["SPECIFIC_ATTRIBUTES"]}, True),
    ({**ME, KEYS: ["me"], "dynamodb:ReturnValues": ["ALL_OLD"]}, False),
    ({**ME, KEYS: ["me"], "dynamodb:ReturnValues": ["NONE"]}, True),
    ({KEYS: ["me"]}, False),
]


@pytest.mark.parametrize(("context", "is_allowed"), GAME_CASES)
def test_the_games_of_the_guide(context: Mapping[str, Sequence[str]], is_allowed: bool) -> None:
    found = outcome(OWN_ATTRIBUTES, resource=GAMES, context=context)
    assert found == (YES if is_allowed else NO)


SCAN = "dynamodb:PartiQLSelect"
NO_SCANS = deny(SCAN, Condition={"Bool": {"dynamodb:FullTableScan": ["true"]}})
INDEXES_ONLY = allow("dynamodb:Query", f"{BOOKS}/index/*")
NO_TRANSACTIONS = deny(
    ["dynamodb:GetItem", "dynamodb:PutItem"],
    Condition={
        "ForAnyValue:StringEquals": {
            "dynamodb:EnclosingOperation": ["TransactWriteItems", "TransactGetItems"]
        }
    },
)
GUIDE_CASES: list[tuple[list[Json], Json, str]] = [
    (
        [allow(), NO_SCANS],
        {"action": SCAN, "context": {"dynamodb:FullTableScan": ["true"]}},
        DENIED,
    ),
    ([allow(), NO_SCANS], {"action": SCAN, "context": {"dynamodb:FullTableScan": ["false"]}}, YES),
    ([allow(), NO_SCANS], {"action": SCAN}, YES),
    ([INDEXES_ONLY], {"action": "dynamodb:Query", "resource": INDEX}, YES),
    ([INDEXES_ONLY], {"action": "dynamodb:Query", "resource": BOOKS}, NO),
    ([allow(), NO_TRANSACTIONS], {}, YES),
    (
        [allow(), NO_TRANSACTIONS],
        {"context": {"dynamodb:EnclosingOperation": ["TransactGetItems"]}},
        DENIED,
    ),
]


@pytest.mark.parametrize(("statements", "given", "expected"), GUIDE_CASES)
def test_examples_of_the_guide(statements: list[Json], given: Json, expected: str) -> None:
    assert outcome(*statements, **given) == expected


def test_the_corpus_has_its_three_hundred_cases() -> None:
    cases = 2 * len(ACTIONS) + len(ACTIONS) + 2 * len(RESOURCES) + len(RESOURCES)
    cases += 2 * len(CONDITIONS) + 3 * len(VARIABLES) + len(EVALUATIONS) + len(GAME_CASES)
    assert cases + len(GUIDE_CASES) >= 300


# In words


def test_a_refusal_is_in_awss_words() -> None:
    request = PolicyRequest(ANN, GET, BOOKS, {})
    who = f"User: {ANN.arn} is not authorized to perform: {GET} on resource: {BOOKS} "
    cases: list[tuple[CallerPolicies, str]] = [
        (CallerPolicies(), f"because no identity-based policy allows the {GET} action"),
        (CallerPolicies((policy(deny()),)), "with an explicit deny in an identity-based policy"),
        (
            CallerPolicies(resource=(policy(grant("*", "Deny"), kind=RESOURCE),)),
            "with an explicit deny in a resource-based policy",
        ),
        (
            CallerPolicies((policy(allow()),), boundary=()),
            f"because no permissions boundary allows the {GET} action",
        ),
        (
            CallerPolicies((policy(allow()),), session=()),
            f"because no session policy allows the {GET} action",
        ),
    ]
    for policies, reason in cases:
        assert denial(request, decide(policies, request)) == who + reason


# Of any policies

TEXTS = st.sampled_from(["a", "b", "ab", "*", "a*", "?", "${aws:username}", ""])
NAMES = st.sampled_from([GET, PUT, "dynamodb:*", "*", "dynamodb:G*", "sts:*"])
ARNS = st.sampled_from(
    ["*", BOOKS, INDEX, f"{BOOKS}*", "arn:aws:dynamodb:*:*:table/${aws:username}"]
)
OPERATORS = st.sampled_from(
    [
        *("StringEquals", "StringNotEquals", "StringLike", "StringNotLike"),
        *("StringEqualsIfExists", "ForAllValues:StringEquals", "ForAnyValue:StringLike"),
        *("ForAllValues:StringNotEquals", "ForAnyValue:StringNotLike"),
    ]
)
CONDITION = st.dictionaries(
    OPERATORS, st.dictionaries(st.sampled_from([USER, KEYS]), TEXTS, min_size=1), max_size=2
)


@st.composite
def statements(draw: st.DrawFn, effects: Sequence[str] = ("Allow", "Deny")) -> Json:
    return {
        "Effect": draw(st.sampled_from(effects)),
        draw(st.sampled_from(["Action", "NotAction"])): draw(
            st.lists(NAMES, min_size=1, max_size=2)
        ),
        draw(st.sampled_from(["Resource", "NotResource"])): draw(
            st.lists(ARNS, min_size=1, max_size=2)
        ),
        "Condition": draw(CONDITION),
    }


REQUESTS = st.builds(
    PolicyRequest,
    st.sampled_from([ANN, SESSION, ROOT]),
    st.sampled_from([GET, PUT]),
    st.sampled_from([BOOKS, INDEX]),
    st.dictionaries(
        st.sampled_from([USER, "dynamodb:leadingkeys"]),
        st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=2),
    ),
)
ANY = st.lists(statements(), min_size=1, max_size=3)


@given(ANY, statements(("Deny",)), REQUESTS)
def test_adding_a_deny_never_allows(given: list[Json], added: Json, request: PolicyRequest) -> None:
    before = decide(CallerPolicies((policy(*given),)), request)
    after = decide(CallerPolicies((policy(*given, added),)), request)
    assert before.is_allowed or not after.is_allowed


@given(ANY, statements(("Allow",)), REQUESTS)
def test_adding_an_allow_never_takes_away(
    given: list[Json], added: Json, request: PolicyRequest
) -> None:
    before = decide(CallerPolicies((policy(*given),)), request)
    after = decide(CallerPolicies((policy(*given, added),)), request)
    assert after.is_allowed or not before.is_allowed


@given(ANY, ANY, REQUESTS)
def test_a_limit_never_allows(given: list[Json], limit: list[Json], request: PolicyRequest) -> None:
    own = (policy(*given),)
    before = decide(CallerPolicies(own), request)
    for limited in (
        CallerPolicies(own, boundary=(policy(*limit),)),
        CallerPolicies(own, session=(policy(*limit),)),
    ):
        if not request.principal.is_root:
            assert before.is_allowed or not decide(limited, request).is_allowed


@given(ANY, ANY, ANY, REQUESTS, REQUESTS)
def test_what_is_left_out_beforehand_never_counts(
    given: list[Json],
    limit: list[Json],
    other: list[Json],
    before: PolicyRequest,
    request: PolicyRequest,
) -> None:
    of_resource = [{**one, "Principal": "*"} for one in other]
    policies = CallerPolicies(
        (policy(*given),), (policy(*of_resource, kind=RESOURCE),), (policy(*limit),), None
    )
    # Of the same action on the same resource by the same caller, with other values.
    before = PolicyRequest(request.principal, request.action, request.resource, before.context)
    left = applicable(policies, before)
    assert decide(left, request).outcome == decide(policies, request).outcome
    assert decide(left, request).source == decide(policies, request).source


@given(ANY, REQUESTS, st.randoms())
def test_the_order_of_statements_does_not_count(
    given: list[Json], request: PolicyRequest, chance: Any
) -> None:
    shuffled = list(given)
    chance.shuffle(shuffled)
    first = decide(CallerPolicies((policy(*given),)), request)
    assert decide(CallerPolicies((policy(*shuffled),)), request).outcome == first.outcome


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "Version",
                        "Statement",
                        "Effect",
                        "Action",
                        "Resource",
                        "Condition",
                        "Principal",
                        "x",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_a_policy_or_refused_with_a_line(document: Any) -> None:
    text = json.dumps(document, indent=1)
    try:
        parse(text, "any")
    except PolicyError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.reason


@given(st.text(max_size=60))
def test_any_text_is_a_policy_or_refused_with_a_line(text: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse(text, "any")
    assert refused.value.line >= 1


WRONG: list[tuple[str, str, int]] = [
    ('{"Version": "2013", "Statement": {}}', "Version is", 1),
    ('{\n"Statment": []}', "A policy has no element 'Statment'", 2),
    ('{"Statement": [{"Effect": "Allow",\n"Action": "a:b", "Action": "c:d"}]}', "twice", 2),
    (
        '{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*",\n"Principal": "*"}}',
        "Principal is only allowed in resource policies",
        2,
    ),
    (
        '{"Statement": {"Effect": "Allow", "Action": "*",\n"Resource": "table/x"}}',
        "'table/x' must be in ARN format",
        2,
    ),
    (
        '{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*",\n"Condition": {\n'
        '"StringEqual": {"a:b": "c"}}}}',
        "There is no condition operator 'StringEqual'",
        3,
    ),
    (
        '{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*",\n"Condition": {\n'
        '"IpAddress": {\n"aws:SourceIp": "300.0.0.1"}}}}',
        "IpAddress cannot take '300.0.0.1'",
        4,
    ),
    (
        '{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*",\n"Resource": '
        '["*",\n"arn:aws:s3:::x/${aws:username"]}}',
        "policy variable that does not end",
        3,
    ),
    ('{"Statement": {"Effect": "Allow", "Resource": "*"}}', "Action or NotAction", 1),
    (
        '{"Statement": [{"Sid": "a", "Effect": "Allow", "Action": "*", "Resource": "*"},\n'
        '{"Sid": "a", "Effect": "Allow", "Action": "*", "Resource": "*"}]}',
        "two statements with the Sid 'a'",
        2,
    ),
]


@pytest.mark.parametrize(("text", "reason", "line"), WRONG)
def test_what_is_wrong_is_told_with_its_line(text: str, reason: str, line: int) -> None:
    with pytest.raises(PolicyError) as refused:
        parse(text, "wrong")
    assert reason in refused.value.reason
    assert refused.value.line == line
