"""Keeps the repository easy to find things in: names, folder sizes and docstrings.

The rules are few and mechanical. A failing test lists every place that breaks a rule.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(path.parent for path in ROOT.glob("[ap]*/*/pyproject.toml"))
NAMES_PER_FOLDER_MAX = 12
SAME_NAME_MAX = 2  # in the whole repository; within a package a name occurs once
UNCOUNTED = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}

# A docstring that begins with one of these has no subject: "Whether it is open", "Of a call".
FRAGMENT_OPENINGS = {
    "How", "Of", "That", "Those", "What", "Where", "Whether", "Which", "Who", "Whose", "Why",
}  # fmt: skip
# These may open a sentence, "After a crash, the log is replayed.", but then a clause follows.
CLAUSE_OPENINGS = {
    "After", "As", "At", "Before", "Between", "By", "For", "From", "In", "On", "To", "Until",
    "When", "With", "Without",
}  # fmt: skip

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def modules(package: Path) -> Iterator[Path]:
    for path in sorted((package / "src").rglob("*.py")):
        if not any(part.startswith(".") for part in path.relative_to(package).parts):
            yield path


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def class_names(path: Path) -> Iterator[str]:
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def repeated(names: list[tuple[str, Path]], at_most: int) -> list[str]:
    places = defaultdict(list)
    for name, path in names:
        places[name].append(str(path.relative_to(ROOT)))
    return [
        f"{name}: {', '.join(paths)}"
        for name, paths in sorted(places.items())
        if len(paths) > at_most
    ]


def files_by_name(package: Path) -> list[tuple[str, Path]]:
    return [(path.name, path) for path in modules(package) if path.name not in UNCOUNTED]


def classes_by_name(package: Path) -> list[tuple[str, Path]]:
    return [(name, path) for path in modules(package) for name in class_names(path)]


def is_fragment(docstring: str) -> bool:
    if docstring.startswith("TODO"):
        return True
    first_sentence = docstring.split(". ")[0]
    opening = first_sentence.split(maxsplit=1)[0].rstrip(",.:;")
    return opening in FRAGMENT_OPENINGS or (
        opening in CLAUSE_OPENINGS and "," not in first_sentence
    )


def test_the_five_packages_are_found() -> None:
    assert [package.name for package in PACKAGES] == [
        "metric-catalogue", "page-hit-counter", "partita", "partita-migrate", "partita-services",
    ]  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_module_name_occurs_once_in_a_package(package: Path) -> None:
    assert repeated(files_by_name(package), 1) == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_class_name_occurs_once_in_a_package(package: Path) -> None:
    assert repeated(classes_by_name(package), 1) == []


def test_hardly_any_name_is_used_by_several_packages() -> None:
    files = [named for package in PACKAGES for named in files_by_name(package)]
    classes = [named for package in PACKAGES for named in classes_by_name(package)]
    assert repeated(files, SAME_NAME_MAX) + repeated(classes, SAME_NAME_MAX) == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_folder_asks_for_more_than_twelve_names(package: Path) -> None:
    names = defaultdict(set)
    for path in (package / "src").rglob("*"):
        if path.is_file() and not any(
            part.startswith(".") or part in UNCOUNTED for part in path.parts
        ):
            while path.name != "src":
                names[path.parent].add(path.name)
                path = path.parent
    crowded = {
        str(folder.relative_to(ROOT)): len(held)
        for folder, held in names.items()
        if len(held) > NAMES_PER_FOLDER_MAX
    }
    assert crowded == {}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_docstring_begins_with_a_sentence(package: Path) -> None:
    fragments = []
    for path in modules(package):
        for node in ast.walk(parsed(path)):
            if isinstance(node, Documented) and (docstring := ast.get_docstring(node)):
                if is_fragment(docstring):
                    line = getattr(node, "lineno", 1)
                    fragments.append(
                        f"{path.relative_to(ROOT)}:{line} {docstring.split(chr(10))[0]}"
                    )
    assert fragments == []


@pytest.mark.parametrize(
    ("docstring", "fragment"),
    [
        ("Of a call.", True),
        ("TODO: describe it.", True),
        ("Whether they are not enough.", True),
        ("In the child.", True),
        ("In the child process, all descriptors but three are closed.", False),
        ("True when the reserved units do not cover the consumption.", False),
        ("Returns the oldest record. What follows it is newer.", False),
    ],
)
def test_what_counts_as_a_fragment(docstring: str, fragment: bool) -> None:
    assert is_fragment(docstring) == fragment
