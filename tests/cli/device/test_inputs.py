"""What each command about device code makes of a file, a folder, a wheel and a kpack archive."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.kpack_files import split_two
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

EXTRACT = r"Take code objects out with 'rocwheel device extract', and name these\."
HOST = r"no library whose code is in archives\. Give the (folder 'host' of what was split|wheel that was split off as)"

COMMANDS = {
    "list": ("{}",),
    "list --kernels": ("{}", "--kernels"),
    "extract": ("{}", "-d", "out"),
    "compress": ("{}", "-o", "out"),
    "prune": ("{}", "-k", "gfx1030", "-o", "out"),
    "retarget": ("gfx1030=gfx1031", "{}", "--compress", "-o", "out"),
    "bundle": ("{}", "-o", "out"),
    "split": ("{}", "-d", "out"),
    "join": ("{}", "-d", "out"),
}
"""The arguments of each command."""

REFUSED = {
    **{("bundle", kind): EXTRACT for kind in ("file", "folder", "wheel", "archive")},
    **{("join", kind): HOST for kind in ("file", "folder", "wheel", "archive")},
}
"""What is refused, and the words that say what to do instead; all else is done."""


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """Make one thing of each kind, all with the code of one fat library."""
    library = FIXTURES / "v22/libtwo.plain.so"
    (tmp_path / "tree/lib").mkdir(parents=True)
    shutil.copy(library, tmp_path / "tree/lib/libtwo.so")
    split_two(tmp_path / "split")
    return {
        "file": library,
        "folder": tmp_path / "tree",
        "wheel": make_wheel(tmp_path / "in", "demo", {"demo/a.so": library}),
        "archive": tmp_path / "split/.kpack/two_gfx1030.kpack",
    }


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["file", "folder", "wheel", "archive"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_it_or_says_what_to_do(
    run: Run, tmp_path: Path, inputs: dict[str, Path], command: str, kind: str
) -> None:
    words = [word.replace("{}", str(inputs[kind])) for word in COMMANDS[command]]
    words = [str(tmp_path / "out") if word == "out" else word for word in words]
    done = run("device", command.split(maxsplit=1)[0], *words)
    refusal = REFUSED.get((command, kind))
    if refusal is None:
        assert done.status == 0, done.stderr
        assert done.stdout
        return
    assert (done.status, done.stdout) == (2, "")
    assert re.match(f"error: {re.escape(str(inputs[kind]))}.*{refusal}", done.stderr), done.stderr
    assert not (tmp_path / "out").exists()
