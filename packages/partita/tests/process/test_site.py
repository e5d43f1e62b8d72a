"""`make docs`: the pages as a site, with working links and without foreign resources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testkit import ROOT

pytest.importorskip("mkdocs", reason="mkdocs is not installed; make install has it")

LOADED = re.compile(
    r"""<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
)


def _build(tree: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = _build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    return tmp_path


def test_every_page_is_there_and_can_be_searched(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix("") for page in ROOT.glob("docs/**/*.md")}
    built = {page.relative_to(site).with_suffix("") for page in site.glob("**/*.html")}
    assert {page for page in pages if page.name != "README"} <= built
    assert "DynamoDB" in (site / "search/search_index.json").read_text()


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.glob("**/*.html"))
    assert pages
    assert {url for page in pages for url in LOADED.findall(page.read_text())} == set()


def test_links_that_lead_nowhere_and_pages_that_none_leads_to_are_errors(
    tree: Path, tmp_path: Path
) -> None:
    targets = ("nowhere.md", "install.md#nowhere", "adr/", "../README.md")
    with (tree / "docs/index.md").open("a") as page:
        page.write("".join(f"\n[there]({target})\n" for target in targets))
    (tree / "docs/hidden.md").write_text("# Hidden\n")
    done = _build(tree, tmp_path / "site")
    assert done.returncode != 0
    assert [target for target in targets if f"link '{target}'" not in done.stderr] == []
    assert "- hidden.md" in done.stderr
    assert done.stderr.count("WARNING") == len(targets) + 1
