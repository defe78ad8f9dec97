"""Names from inputs begin no line of the output: a line may be a command to a CI service, or a lie."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

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


@pytest.mark.parametrize("words", [("inspect",), ("repair", "--dry-run"), ("audit",), ("device", "list")], ids=" ".join)
def test_a_member_s_name_begins_no_line(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    wheel = make_wheel(tmp_path, "demo", {f"demo/{NAME}": LIBRARY})
    done = run(*words, wheel)
    assert "::error::" in done.stdout + done.stderr
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []
