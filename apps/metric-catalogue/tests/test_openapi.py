"""The API follows its description: requests are generated from it, answers checked with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from metric_catalogue.api.openapi import DESCRIPTION

from .conftest import Api, Catalogue

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


schema = schemathesis.openapi.from_dict(DESCRIPTION)


def test_names_and_patterns_are_those_of_openapi() -> None:
    operations = [
        operation for path in DESCRIPTION["paths"].values() for operation in path.values()
    ]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    # In JavaScript, \\Z is the letter Z.
    assert r"\Z" not in json.dumps(DESCRIPTION)


@pytest.fixture(scope="module")
def url(served: tuple[Catalogue, Api]) -> str:
    catalogue, api = served
    catalogue.clear()
    api.add_primitive("deliveries", "country")
    api.add_hybrid("share", "deliveries / 2")
    api.close()
    return api.url


@pytest.mark.parametrize("served", ["migrating"], indirect=True)
@schema.parametrize()
@settings(max_examples=12)
def test_answers_are_as_described(case: Any, url: str) -> None:
    if len((case.path_parameters or {}).get("name", "")) % 2:
        case.path_parameters["name"] = "deliveries"
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=60)
