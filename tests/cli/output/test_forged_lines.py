"""Names from inputs begin no line of the output: a line may be a command to a CI service, or a lie."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

LIBRARY = FIXTURES / "v22/libtwo.plain.so"
NAME = "a\n::error::forged.so"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a library of such a name."""
    (tmp_path / "in").mkdir()
    return shutil.copyfile(LIBRARY, tmp_path / "in" / NAME)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("inspect", "--verbose"),
        ("runpath", "show"),
        ("runpath", "set", "$ORIGIN", "--dest-dir", "out"),
        ("device", "extract", "--dest-dir", "out"),
    ],
    ids=" ".join,
)
def test_a_file_s_name_begins_no_line(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words, library)
    assert "::error::" in done.stdout + done.stderr
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []


def test_what_lacks_code_begins_no_line(run: Run, library: Path, tmp_path: Path) -> None:
    other = build_fat_library(tmp_path / "in/libx.so", [make_bundle(0, "gfx942")])
    words = ("--targets", "gfx942", "--dest-dir", tmp_path / "out")
    done = run("device", "split", other.parent, *words)
    assert f"warning: no code for gfx942 in {library.name}".replace("\n", "\\n") in done.stderr.splitlines()


def test_a_wheel_whose_name_would_change_begins_no_line(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/a.so": LIBRARY})
    forged = wheel.rename(tmp_path / f"demo\n::error::x{wheel.name.removeprefix('demo')}")
    done = run("device", "prune", forged, "--keep", "gfx906", "--output", tmp_path / "other-1.0-py3-none-any.whl")
    assert done.status == 2
    assert "::error::" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_report_s_name_begins_no_line(run: Run, library: Path, tmp_path: Path) -> None:
    place = tmp_path / "a\n::error::b.html"
    done = run("report", library, "-o", place)
    assert done.stderr.startswith(f"{tmp_path}/a\\n::error::b.html: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("inspect",), ("repair", "--dry-run"), ("audit",), ("device", "list")], ids=" ".join)
def test_a_member_s_name_begins_no_line(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    wheel = make_wheel(tmp_path, "demo", {f"demo/{NAME}": LIBRARY})
    done = run(*words, wheel)
    assert "::error::" in done.stdout + done.stderr
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []
