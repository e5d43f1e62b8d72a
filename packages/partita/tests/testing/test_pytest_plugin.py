"""The pytest plugin, seen from the projects that use it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from partita.installation.optional_packages import install_command
from testkit import ROOT

pytest_plugins = ["pytester"]

PROJECT = ROOT / "packages/partita/pyproject.toml"

TABLE = """
KEY = dict(
    AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    BillingMode="PAY_PER_REQUEST",
)
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # The plugin must be loaded once, whether its entry point is installed or not.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def run(project: pytest.Pytester, tests: str) -> pytest.RunResult:
    project.makepyfile(TABLE + tests)
    return project.runpytest("-p", "partita.testing.pytest_plugin", "-p", "no:cacheprovider")


def test_tables_are_removed_after_each_test_even_protected_ones(
    project: pytest.Pytester,
) -> None:
    result = run(
        project,
        """
def test_one(dynamodb):
    dynamodb.create_table(TableName="orders", **KEY).put_item(Item={"pk": "1"})
    dynamodb.create_table(TableName="kept", DeletionProtectionEnabled=True, **KEY)

def test_other(dynamodb):
    assert list(dynamodb.tables.all()) == []
    assert dynamodb.create_table(TableName="orders", **KEY).scan()["Count"] == 0
""",
    )
    result.assert_outcomes(passed=2)


def test_one_server_serves_the_session(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import socket

ports = []

def test_one(dynamodb_proc):
    ports.append(dynamodb_proc.port)
    socket.create_connection((dynamodb_proc.host, dynamodb_proc.port), timeout=5).close()

def test_other(dynamodb_proc):
    assert ports == [dynamodb_proc.port]
""",
    )
    result.assert_outcomes(passed=2)


def test_every_test_has_its_own_branch(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import pytest

@pytest.fixture(scope="session")
def dynamodb_prepared(dynamodb_prepared):
    dynamodb_prepared.resource().create_table(TableName="orders", **KEY)
    return dynamodb_prepared

@pytest.mark.parametrize("number", range(3))
def test_branch(dynamodb_branch, dynamodb_database, number):
    orders = dynamodb_branch.Table("orders")
    assert orders.scan()["Count"] == 0
    orders.put_item(Item={"pk": str(number)})
    assert dynamodb_database.client().scan(TableName="orders")["Count"] == 1
""",
    )
    result.assert_outcomes(passed=3)


def test_without_preparation_a_branch_is_empty(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
def test_branch(dynamodb_branch):
    assert list(dynamodb_branch.tables.all()) == []
""",
    )
    result.assert_outcomes(passed=1)


def test_a_branch_is_not_used_outside_of_its_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import pytest

kept = []

def test_one(dynamodb_branch):
    kept.append(dynamodb_branch)

def test_other():
    with pytest.raises(RuntimeError, match="after the end of its test"):
        list(kept[0].tables.all())
""",
    )
    result.assert_outcomes(passed=2)


def test_a_preparation_that_returns_nothing_is_told_so(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
import pytest

@pytest.fixture(scope="session")
def dynamodb_prepared(dynamodb_prepared):
    dynamodb_prepared.resource().create_table(TableName="orders", **KEY)

def test_branch(dynamodb_branch):
    pass
""",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*dynamodb_prepared must return its database*"])


def test_the_plugin_imports_nothing_before_a_fixture_is_used() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import partita.testing.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    # The compiled library is loaded to check that it fits this Python; its modules are not.
    imported = set(found.stdout.split()) - {"partita__mypyc"}
    assert imported == {
        "partita",
        "partita.installation",
        "partita.installation.compiled_modules",
        "partita.testing",
        "partita.testing.pytest_plugin",
    }


@pytest.mark.parametrize("missing", ["boto3", "pytest"])
def test_testing_needs_neither_boto3_nor_pytest_to_serve(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from urllib.request import urlopen\n"
        "from partita import testing\n"
        "with testing.server() as url:\n"
        "    print(urlopen(url + '/health').read().decode())\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == '{"status":"ok"}'


def test_without_boto3_a_client_is_refused_in_words() -> None:
    program = (
        "import sys; sys.modules['boto3'] = None\n"
        "from partita import testing\n"
        "testing.database().client()\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 1
    install = install_command("partita[testing]")
    assert f"boto3 is not installed; to install it: {install}" in found.stderr


def test_pytest_finds_the_plugin_when_partita_is_installed() -> None:
    project = tomllib.loads(PROJECT.read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"partita": "partita.testing.pytest_plugin"}
    assert any(name.startswith("boto3") for name in project["optional-dependencies"]["testing"])
    assert not any(name.startswith("boto3") for name in project["dependencies"])
