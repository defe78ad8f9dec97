"""The ground that tests of Windows stand on: what MinGW-w64 compiles runs in Wine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

SHOW = ROOT / "tests/support/programs/show_arguments.c"


def test_a_program_receives_awkward_arguments_and_its_exit_code_is_returned(
    wine: Wine, compile_for_windows: Compiler, tmp_path: Path
) -> None:
    program = compile_for_windows.program(SHOW, tmp_path / "a b/größe.exe", "-municode")
    done = wine.run(program, "two words", 'quo"te', "", "back\\", "日本", "37")
    path, _, argv0, *arguments = done.stdout.decode().splitlines()
    assert (path, argv0) == (windows_path(program), windows_path(program))
    assert arguments == ["two words", 'quo"te', "", "back\\", "日本", "37"]
    assert (done.returncode, done.stderr) == (37, b"")


def test_two_compilations_produce_the_same_bytes(compile_for_windows: Compiler, tmp_path: Path) -> None:
    first, second = (compile_for_windows.program(SHOW, tmp_path / name, "-municode") for name in ("a.exe", "b.exe"))
    assert first.read_bytes() == second.read_bytes()
