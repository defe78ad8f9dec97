"""The tables of every command, on terminals of several widths: they fit, and say what they say anywhere."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rocwheel.cli
from rocwheel.cli import tables
from rocwheel.cli.terminal import new_console
from rocwheel.demo import SAMPLE_SDK
from rocwheel.index.write_index import write_index
from tests.support.places import ROOT
from tests.support.two_versions import make_two_versions

if TYPE_CHECKING:
    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

WIDTHS = (40, 80, 200)
EMPTY = {"missing", "from"}
"""The heading of a column that has nothing to say of the sample."""
WIDE = 1000
"""More than any table takes."""
NEW = "NEW"
"""A folder that is not there yet."""
TABLES = {
    "build --dry-run SAMPLE": "plan.py",
    "build --artifact-dir SAMPLE --dest-dir NEW": "plan.py",
    "promote DIST --to 7.0.1 --output NEW": "release.py",
    "audit --rules": "audit.py",
    "inspect DIST": "inspect.py",
    "inspect --deep DIST": "inspect.py",
    "runpath show DIST": "runpath.py",
    "runpath for PROGRAM --at site-packages/demo/ --with rocm-sdk-core": "runpath.py",
    "index mirror INDEX --project rocm* --output NEW --dry-run": "index_mirror.py",
    "device list --kernels DIST": "device_read.py",
    "artifacts list SAMPLE": "artifacts.py",
    "artifacts list SAMPLE -v": "artifacts.py",
    "artifacts import PREFIX --output NEW": "artifacts.py",
    "artifacts merge SHARDS/a SHARDS/b --primary SHARDS/a --output NEW --dry-run": "artifacts_make.py",
    "artifacts fetch SAMPLE --output NEW --dry-run": "artifacts_make.py",
    "diff OLDER NEWER": "diff.py",
    "targets list": "targets.py",
    "targets list -v": "targets.py",
}
"""Command lines, and the module that prints their table."""


@pytest.fixture(scope="module")
def places(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what stands for the words in capitals."""
    folder = tmp_path_factory.mktemp("widths")
    older, newer = make_two_versions(folder)
    for shard, target in (("a", "gfx942"), ("b", "gfx1100")):
        stage = folder / f"{shard}/blas_lib_{target}/stage/lib/rocblas/library"
        stage.mkdir(parents=True)
        (stage / f"kernels_{target}.dat").write_text(target)
        (folder / f"{shard}/blas_lib_{target}/artifact_manifest.txt").write_text("stage\n")
    (folder / "rocm/bin").mkdir(parents=True)
    (folder / "rocm/bin/hipcc").write_text("#!/usr/bin/perl\n")
    shutil.copytree(sample_dist, folder / "dist")
    write_index(folder / "dist", folder / "simple")
    elf = ROOT / "tests/fixtures/elf"
    found: dict[str, object] = {
        "SAMPLE": SAMPLE_SDK,
        "DIST": sample_dist,
        "PROGRAM": elf / "program-lld",
        "PREFIX": folder / "rocm",
    }
    found |= {
        "PROGRAM": elf / "program-lld",
        "SHARDS": folder,
        "OLDER": older,
        "NEWER": newer,
        "INDEX": (folder / "simple").as_uri(),
    }
    return {name: str(path) for name, path in found.items()}


class Screen:
    """Runs command lines and keeps their tables."""

    def __init__(self, run: Run, patch: pytest.MonkeyPatch, places: dict[str, str], folder: Path) -> None:
        self._run, self._patch, self._places, self._folder = run, patch, places, folder

    def show(self, line: str, width: int) -> list[str]:
        """Return the lines of the tables of a command where the terminal has so many columns."""
        written = io.StringIO()

        def console(**settings: Any) -> Any:
            return new_console(**settings, file=written)

        self._patch.setattr(tables, "new_console", console)
        self._patch.setenv("COLUMNS", str(width))
        self._patch.setattr(sys.stdout, "isatty", lambda: True)
        finished = self._run(*(self._word(word, width) for word in line.split()))
        assert finished.status in {0, 1}, finished.stderr
        return (written.getvalue() or finished.stdout).splitlines()

    def _word(self, word: str, width: int) -> str:
        name, slash, rest = word.partition("/")
        # As long as that at other widths, since it is printed.
        new = str(self._folder / f"{width:04}")
        return (new if name == NEW else self._places.get(name, name)) + slash + rest


@pytest.fixture
def screen(run: Run, monkeypatch: pytest.MonkeyPatch, places: dict[str, str], tmp_path: Path) -> Screen:
    return Screen(run, monkeypatch, places, tmp_path)


def words_of(lines: list[str]) -> Counter[str]:
    return Counter(word.rstrip(":") for line in lines for word in line.split() if set(word) not in ({"─"}, {"|"}))


@pytest.mark.parametrize("line", TABLES)
def test_a_table_fits_the_terminal_and_keeps_every_word(screen: Screen, tmp_path: Path, line: str) -> None:
    wide = screen.show(line, WIDE)
    assert len(wide) > 1
    for width in WIDTHS:
        lines = screen.show(line, width)
        assert [one for one in lines if len(one.rstrip()) > width and len(one.split()) > 1] == []
        shown = words_of([one.replace(str(tmp_path / f"{width:04}"), str(tmp_path / f"{WIDE}")) for one in lines])
        assert (words_of(wide) - shown).keys() <= EMPTY


@pytest.mark.parametrize("line", ["artifacts list SAMPLE -v", "targets list"])
def test_output_that_is_not_a_terminal_has_one_line_per_row(
    run: Run, monkeypatch: pytest.MonkeyPatch, places: dict[str, str], line: str
) -> None:
    words = [places.get(word, word) for word in line.split()]
    monkeypatch.delenv("COLUMNS", raising=False)
    expected = run(*words)
    monkeypatch.setenv("COLUMNS", "40")
    assert run(*words) == expected
    assert max(map(len, expected.stdout.splitlines())) > 120


def test_every_module_that_prints_a_table_is_covered() -> None:
    folder = Path(rocwheel.cli.__path__[0])
    printing = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"\bprint_(target_)?table\(", path.read_text()) and path.name != "tables.py"
    }
    assert printing == set(TABLES.values())
