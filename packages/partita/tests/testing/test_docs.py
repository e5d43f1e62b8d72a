"""Every example of docs/how-to/test-with-partita.md does what it shows.

An example whose first line names a file is part of a small pytest project, one for each section;
every other example is a program.
"""

from __future__ import annotations

import re

import pytest

from testkit import ROOT

pytest_plugins = ["pytester"]

PAGE = ROOT / "docs" / "how-to" / "test-with-partita.md"


def sections() -> dict[str, list[str]]:
    """Returns the examples by heading."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    found = {
        part.partition("\n")[0]: re.findall(r"```python\n(.*?)```", part, re.DOTALL)
        for part in parts
    }
    return {heading: examples for heading, examples in found.items() if examples}


def files_of(examples: list[str]) -> dict[str, str]:
    named = [re.match(r"# (\w+)\.py\n", example) for example in examples]
    return {
        name.group(1): example
        for name, example in zip(named, examples, strict=True)
        if name is not None
    }


PROGRAMS = [
    pytest.param(example, id=heading)
    for heading, examples in sections().items()
    for example in examples
    if not files_of([example])
]
PROJECTS = [
    pytest.param(files, id=heading)
    for heading, examples in sections().items()
    if (files := files_of(examples))
]


def test_there_are_programs_and_projects() -> None:
    assert (len(PROGRAMS), len(PROJECTS)) == (6, 1)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str) -> None:
    exec(compile(program, str(PAGE), "exec"), {"__name__": "example"})


@pytest.mark.parametrize("files", PROJECTS)
def test_a_project_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    # The plugin must be loaded once, whether its entry point is installed or not.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(**files)
    count = sum(len(re.findall(r"^def test_", text, re.MULTILINE)) for text in files.values())
    pytester.runpytest("-p", "partita.testing.pytest_plugin").assert_outcomes(passed=count)
