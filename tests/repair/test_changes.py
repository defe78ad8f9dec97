"""Tests of `rocwheel.repair.changes`."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from rocwheel.repair.changes import Change, mode_changes
from tests.support.trees import data
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


def test_an_unsafe_mode_is_changed() -> None:
    files = [data("a", mode=0o104775), data("b", mode=0o100666), data("c", mode=0o100664), data("d", mode=0)]
    assert mode_changes(files) == [Change("a", "mode", "4775", "0755"), Change("b", "mode", "0666", "0644")]


def test_a_wheel_with_only_wrong_modes_is_rewritten(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "pure", {"pure/a.py": b"x", "pure/b.py": b"y"}, tag="py3-none-any")
    with zipfile.ZipFile(wheel) as archive:
        entries = [(entry, archive.read(entry)) for entry in archive.infolist()]
    with zipfile.ZipFile(wheel, "w") as archive:
        for entry, content in entries:
            entry.external_attr = (0o106777 if entry.filename == "pure/a.py" else 0o100664) << 16
            archive.writestr(entry, content)
    done = run("repair", wheel, "--output", tmp_path / "out")
    assert (done.status, done.stdout) == (
        0,
        f"{wheel.name}: 1 change\n  pure/a.py: mode\n    - 6777\n    + 0755\n",
    )
    with zipfile.ZipFile(tmp_path / "out" / wheel.name) as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o7777 for entry in archive.infolist()}
    assert (modes["pure/a.py"], modes["pure/b.py"]) == (0o755, 0o644)
    assert run("repair", tmp_path / "out", "--check").stdout == f"{wheel.name}: no changes\n"
