"""When compiled modules are used, and how they are built: a small package is really compiled."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.installation import compiled_modules
from testkit import ROOT

SCRIPT = "scripts/compile"
WAIT_SECONDS_MAX = 60
EXIT_KILLED = -9

HOT = """
from typing import TYPE_CHECKING

from partita.rates import RATE

if TYPE_CHECKING:
    from partita.amounts import Amount


def scaled(amount: "Amount") -> int:
    from partita import late

    return amount.cents * RATE + late.ROUNDING
"""
RATES = """
from typing import Final

from partita.units import UNIT

RATE: Final = 3
"""
AMOUNTS = """
class Amount:
    def __init__(self, cents: int) -> None:
        self.cents = cents
"""
MODULES = {
    "hot.py": HOT,
    "rates.py": RATES,
    "amounts.py": AMOUNTS,
    "units.py": "UNIT = 1\n",
    "late.py": "ROUNDING = 0\n",
    "apart.py": "",
}
COMPILING = "installation/compiled_modules.py"
COMPILED_IN = sorted({*MODULES, "__init__.py", COMPILING} - {"apart.py"})
SOURCE = "packages/partita/src/partita"
SHARED_LIBRARY = f"{compiled_modules.PARTITA.shared_library}{compiled_modules.ABI}"
LIBRARIES = (SHARED_LIBRARY, f"partita/hot{compiled_modules.ABI}")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


class Tree:
    """A clone of the project with one hot module and its imports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / SOURCE
        self.build = self.package / ".compiled"

    def compile(
        self, *options: str, compiler: Path | str = "cc"
    ) -> subprocess.CompletedProcess[str]:
        with self.compiling(*options, compiler=compiler) as process:
            output, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def compiling(self, *options: str, compiler: Path | str = "cc") -> subprocess.Popen[str]:
        return self._start([str(self.root / SCRIPT), *options], CC=str(compiler))

    def imported(self, **environment: str) -> tuple[str, str]:
        """Imports the hot module. Returns the kind of its file, and the messages."""
        show = "import partita.hot; print(partita.hot.__file__)"
        with self._start(["-c", show], **environment) as process:
            output, errors = process.communicate()
        assert process.returncode == 0, errors
        return "compiled" if output.strip().endswith(compiled_modules.ABI) else "plain", errors

    def _start(self, arguments: list[str], **more: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PARTITA_PURE"}
        return subprocess.Popen(
            [sys.executable, *arguments],
            env={**environment, "PYTHONPATH": str(self.package.parent), **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rewrite_manifest(self, change: Callable[[str], str]) -> None:
        manifest = self.build / compiled_modules.MANIFEST
        manifest.write_text(change(manifest.read_text()))

    def left_overs(self) -> list[Path]:
        return list(self.package.glob(".compiled-*"))


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = Tree(tmp_path_factory.mktemp("compiled") / "tree")
    (tree.package / "installation").mkdir(parents=True)
    (tree.root / "scripts").mkdir()
    for name in (
        SCRIPT,
        "requirements-compile.txt",
        f"{SOURCE}/__init__.py",
        f"{SOURCE}/installation/__init__.py",
    ):
        shutil.copy(ROOT / name, tree.root / name)
    ours = (ROOT / SOURCE / COMPILING).read_text()
    one_module, count = re.subn(
        r"^MODULES = \(.*?^\)", 'MODULES = ("hot.py",)', ours, flags=re.DOTALL | re.MULTILINE
    )
    assert count == 1
    for name, text in {**MODULES, COMPILING: one_module}.items():
        (tree.package / name).write_text(text)
    done = tree.compile("--require")
    assert done.returncode == 0, done.stderr
    return tree.root


@pytest.fixture
def tree(compiled_once: Path, tmp_path: Path) -> Tree:
    return Tree(shutil.copytree(compiled_once, tmp_path / "tree"))


@pytest.fixture
def waiting_compiler(tmp_path: Path) -> Path:
    """A compiler that writes `started` and waits for `go`."""
    return _compiler(
        tmp_path, f"touch {tmp_path}/started; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    )


def _compiler(folder: Path, first: str, version: str = "") -> Path:
    script = folder / "compiler"
    answer = f"echo '{version}'; exit" if version else "exec cc --version"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ {answer}; }}\n{first}\nexec cc "$@"\n'
    )
    script.chmod(0o755)
    return script


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


class TestChoice:
    def test_a_build_of_this_very_source_is_used(self, tree: Tree) -> None:
        assert tree.imported() == ("compiled", "")

    def test_without_a_build_python_is_imported(self, tree: Tree) -> None:
        shutil.rmtree(tree.build)
        assert tree.imported() == ("plain", "")

    def test_partita_pure_asks_for_python(self, tree: Tree) -> None:
        assert tree.imported(PARTITA_PURE="1") == ("plain", "")

    @pytest.mark.parametrize("name", COMPILED_IN)
    def test_an_edit_of_anything_that_is_compiled_in_counts(self, tree: Tree, name: str) -> None:
        with (tree.package / name).open("a") as file:
            file.write("# edited\n")
        assert tree.imported() == ("plain", "")

    def test_an_edit_of_anything_else_does_not(self, tree: Tree) -> None:
        (tree.package / "apart.py").write_text("# edited\n")
        assert tree.imported() == ("compiled", "")

    def test_a_file_that_is_gone_counts_as_edited(self, tree: Tree) -> None:
        (tree.package / "units.py").unlink()
        (tree.package / "rates.py").write_text("RATE = 3\n")
        assert tree.imported() == ("plain", "")

    def test_an_abi_of_another_python_is_not_loaded(self, tree: Tree) -> None:
        tree.rewrite_manifest(
            lambda text: text.replace(compiled_modules.ABI, ".cpython-39-other.so")
        )
        _is_plain_with_a_warning(tree, "they are for .cpython-39-other.so")

    @pytest.mark.parametrize("name", LIBRARIES)
    def test_a_library_may_be_missing(self, tree: Tree, name: str) -> None:
        (tree.build / name).unlink()
        _is_plain_with_a_warning(tree, "No such file")

    @pytest.mark.parametrize("name", LIBRARIES)
    def test_a_library_may_be_torn(self, tree: Tree, name: str) -> None:
        library = tree.build / name
        os.truncate(library, library.stat().st_size // 2)
        _is_plain_with_a_warning(tree, f"{name} is damaged")

    def test_a_library_may_be_foreign_to_the_machine(self, tree: Tree) -> None:
        before = compiled_modules.checksum(str(tree.build / SHARED_LIBRARY))
        (tree.build / SHARED_LIBRARY).write_bytes(b"made for something else")
        after = compiled_modules.checksum(str(tree.build / SHARED_LIBRARY))
        tree.rewrite_manifest(lambda text: text.replace(before, after))
        _is_plain_with_a_warning(tree, SHARED_LIBRARY)

    def test_a_manifest_may_be_unreadable(self, tree: Tree) -> None:
        tree.rewrite_manifest(lambda text: text + "something else\n")
        _is_plain_with_a_warning(tree, "a line 'something else'")


def _is_plain_with_a_warning(tree: Tree, reason: str) -> None:
    kind, said = tree.imported()
    assert kind == "plain"
    assert len(said.splitlines()) == 1
    assert said.startswith("Partita runs as plain Python, at about half the speed: ")
    assert reason in said


class TestCompiling:
    def test_what_is_compiled_already_stays(self, tree: Tree, tmp_path: Path) -> None:
        compiler = _compiler(tmp_path, "exit 1")
        done = tree.compile("--require", compiler=compiler)
        assert (done.returncode, done.stderr) == (0, "")

    def test_what_is_damaged_does_not(self, tree: Tree, tmp_path: Path) -> None:
        (tree.build / SHARED_LIBRARY).write_bytes(b"")
        done = tree.compile(compiler=_compiler(tmp_path, "exit 1"))
        assert done.returncode == 1 and "Compiling the hot modules of partita" in done.stderr

    @pytest.mark.soak
    def test_a_damaged_build_is_made_again(self, tree: Tree) -> None:
        (tree.build / SHARED_LIBRARY).write_bytes(b"")
        assert tree.compile().returncode == 0
        assert tree.imported() == ("compiled", "")

    @pytest.mark.soak
    def test_another_compiler_compiles_again(self, tree: Tree, tmp_path: Path) -> None:
        compiler = _compiler(tmp_path, f"touch {tmp_path}/called", version="another 1.0")
        assert tree.compile(compiler=compiler).returncode == 0
        assert (tmp_path / "called").exists()
        assert "another 1.0" in (tree.build / compiled_modules.MANIFEST).read_text()
        assert tree.imported() == ("compiled", "")

    def test_without_a_compiler_there_is_a_message(self, tree: Tree) -> None:
        done = tree.compile(compiler="no-such-compiler")
        assert done.returncode == 0
        assert "there is no C compiler (no-such-compiler)" in done.stderr

    def test_without_a_compiler_that_is_required_it_fails(self, tree: Tree) -> None:
        assert tree.compile("--require", compiler="no-such-compiler").returncode == 1

    def test_a_failure_keeps_the_last_build(self, tree: Tree, tmp_path: Path) -> None:
        done = tree.compile(compiler=_compiler(tmp_path, "exit 1", version="broken"))
        assert done.returncode == 1
        assert "Not compiled: " in done.stderr
        assert not tree.left_overs()
        assert tree.imported() == ("compiled", "")

    def test_a_mistake_in_the_source_is_a_failure(self, tree: Tree) -> None:
        (tree.package / "hot.py").write_text(HOT.replace("-> int", "-> str"))
        done = tree.compile()
        assert done.returncode == 1
        assert "Incompatible return value type" in (tree.package / ".compiled.log").read_text()

    @pytest.mark.soak
    def test_an_interruption_leaves_no_half_of_a_build(
        self, tree: Tree, tmp_path: Path, waiting_compiler: Path
    ) -> None:
        with (tree.package / "units.py").open("a") as file:
            file.write("# edited\n")
        with tree.compiling(compiler=waiting_compiler) as process:
            _wait_for(tmp_path / "started")
            process.kill()
            (tmp_path / "go").touch()
        assert process.returncode == EXIT_KILLED
        assert tree.left_overs()
        assert tree.imported() == ("plain", "")
        assert tree.compile().returncode == 0
        assert not tree.left_overs()
        assert tree.imported() == ("compiled", "")

    @pytest.mark.soak
    def test_beside_a_server_one_line_is_said_and_no_pipe_kept(
        self, tree: Tree, tmp_path: Path, waiting_compiler: Path
    ) -> None:
        shutil.rmtree(tree.build)
        with tree.compiling("--beside", compiler=waiting_compiler) as process:
            # Ends only when nobody holds the other end any more.
            assert process.stderr is not None
            said = process.stderr.read()
            _wait_for(tmp_path / "started")
            second = tree.compile("--beside", compiler=waiting_compiler)
            assert tree.imported() == ("plain", "")
            (tmp_path / "go").touch()
        assert said.startswith("Compiling for the next start") and said.count("\n") == 1
        assert (second.returncode, second.stderr) == (0, "")
        assert process.returncode == 0
        assert tree.imported() == ("compiled", "")


def test_every_hot_module_is_there() -> None:
    assert not [
        name for name in compiled_modules.MODULES if not (compiled_modules.PACKAGE / name).is_file()
    ]
