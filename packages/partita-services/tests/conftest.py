"""Fixtures for all tests of the services."""

from testkit.session import pytest_collection_modifyitems  # noqa: F401
