"""Settings of all tests of the database."""

from testkit.session import pytest_collection_modifyitems  # noqa: F401
