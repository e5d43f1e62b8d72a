"""The project of docs/tutorials/first-test.md passes, and fails where the page says so."""

from __future__ import annotations

import re

import pytest

from testkit import ROOT

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "tutorials" / "first-test.md"
CONDITION = '        ConditionExpression="attribute_not_exists(id)",\n'


def project() -> dict[str, str]:
    examples = re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return dict(examples)


@pytest.fixture(autouse=True)
def no_installed_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    # Installed or not, the plugin is named once.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_the_project_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**project())
    pytester.runpytest("-p", "partita.testing.pytest_plugin").assert_outcomes(passed=3)


def test_without_the_condition_an_order_is_replaced(pytester: pytest.Pytester) -> None:
    files = project()
    assert CONDITION in files["orders"]
    pytester.makepyfile(**{**files, "orders": files["orders"].replace(CONDITION, "")})
    pytester.runpytest("-p", "partita.testing.pytest_plugin").assert_outcomes(passed=2, failed=1)
