"""Randomly damaged forms for STS, with and without a signature, are refused or answered."""

from __future__ import annotations

from random import Random

import pytest

from testkit.attacks import corpus
from testkit.attacks.corpus import FORM, Body, Case
from testkit.attacks.fuzzing import Signing, both_lengths, fuzz, spoilt
from testkit.servers.users import ACCOUNT, People, statement

ROLE = f"arn:aws:iam::{ACCOUNT}:role/fuzzed"
POLICY = (
    "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C"
)
POLICY += "%22Action%22%3A%22dynamodb%3AGet%2A%22%2C%22Resource%22%3A%22%2A%22%7D%5D%7D"
FORMS = (
    b"Action=GetCallerIdentity&Version=2011-06-15",
    b"Action=GetSessionToken&Version=2011-06-15&DurationSeconds=900",
    f"Action=AssumeRole&Version=2011-06-15&RoleArn={ROLE}&RoleSessionName=someone".encode(),
    f"Action=AssumeRole&RoleArn={ROLE}&RoleSessionName=someone&Policy={POLICY}".encode(),
    f"Action=AssumeRole&RoleArn={ROLE}&RoleSessionName=a&ExternalId=x&DurationSeconds=901".encode(),
    b"",
)
WORDS = (
    *(b"&", b"=", b"%", b"%00", b"%ff", b"%u0041", b"+", b";", b"\xff", b"\x00", b"&Action=x&"),
    *(b"9" * 5000, b"-1", b"1e9", "\u0661".encode(), b"*", b"?", b"*" * 50, b"$%7Baws:username%7D"),
    *(b"%7B", b"%5B" * 300, b"%22", b"&Tags.member.1.Key=a", b"&PolicyArns.member.1.arn=b"),
    *(b"&RoleArn=", b"&RoleSessionName=", b"&Policy=%5B%5D", b"&Policy=1", b"&DurationSeconds="),
    b"&Policy=%7B%22Version%22%3A" + b"9" * 5000 + b"%7D",
)


def spoilt_case(random: Random) -> Case:
    body = Body(FORM, spoilt(random, random.choice(FORMS), WORDS))
    if random.random() < 0.1:
        body = Body(FORM, corpus.packed(body.content), "gzip")
    return corpus.case("", "POST", "/", body, "")


@pytest.fixture(scope="module")
def signing(people: People) -> Signing:
    key = people.add(statement("sts:AssumeRole"))
    trust = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole"}
    people.add_role("fuzzed", trust, statement("dynamodb:GetItem"))
    return Signing(key, "sts")


@both_lengths
def test_no_form_fails_the_server(people: People, signing: Signing, rounds: int) -> None:
    assert people.server is not None
    fuzz(
        people.server.port,
        rounds,
        lambda random: signing.signed(spoilt_case(random)),
        lambda answer: answer.status in (200, 400, 403, 413, 415),
    )


@both_lengths
def test_no_unsigned_form_is_answered(people: People, rounds: int) -> None:
    assert people.server is not None
    fuzz(people.server.port, rounds, spoilt_case, lambda answer: 400 <= answer.status < 500)
