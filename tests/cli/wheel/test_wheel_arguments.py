"""Every command about device code, targets and run paths looks into wheels, fat ones and those that were split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.commands import COMMANDS
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

LIBRARY = FIXTURES / "v22/libtwo.plain.so"

WITHOUT_FILES = {"device bundle", "targets check", "targets detect", "targets expand", "targets flags", "targets list"}
"""Commands that look into no file; `device bundle` takes code objects alone."""

CASES = {
    "inspect": "inspect {0}",
    "device list": "device list {0}",
    "device list --kernels": "device list --kernels {0}",
    "device extract": "device extract {0} -t gfx1030 -d {out}",
    "device compress": "device compress {1} -o {out}",
    "device prune": "device prune {1} -k gfx1030 -o {out}",
    "device retarget": "device retarget gfx1030=gfx1031 {1} --compress -o {out}",
    "device split": "device split {fat} -d {out}",
    "device join": "device join {0} -d {out}",
    "targets runs-on": "targets runs-on gfx1030 {0}",
    "targets coherent": "targets coherent {0}",
    "runpath show": "runpath show {host}",
}
"""``{0}`` stands for a fat wheel, or a host wheel with its device wheel; ``{1}`` for the wheel that has the code."""


@pytest.fixture
def wheels(run: Run, tmp_path: Path) -> dict[str, list[Path]]:
    fat = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    assert run("device", "split", fat, "-d", tmp_path / "parts", "-t", "gfx1030", "--quiet").status == 0
    [device] = (tmp_path / "parts").glob("demo_device*")
    return {"fat": [fat], "parts": [tmp_path / "parts" / fat.name, device]}


def test_the_table_has_every_command() -> None:
    groups = ("device ", "targets ", "runpath show", "inspect")
    commands = {words for words in COMMANDS if words.startswith(groups)}
    assert commands - WITHOUT_FILES == {words.partition(" --")[0] for words in CASES}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "kind"),
    [(words, kind) for words in CASES for kind in ("fat", "parts") if (words, kind) != ("device join", "fat")],
)
def test_it_looks_into_wheels(run: Run, tmp_path: Path, wheels: dict[str, list[Path]], words: str, kind: str) -> None:
    given = wheels[kind]
    line = CASES[words]
    names = {"out": tmp_path / "out", "fat": wheels["fat"][0], "host": given[0]}
    filled = [
        word
        for text in line.split()
        for word in (map(str, given) if text == "{0}" else [text.format("", given[-1], **names)])
    ]
    done = run(*filled)
    assert (done.status, "error" in done.stderr) == (0, False)
    made = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] if "{out}" in line else []
    assert made or any(text in done.stdout for text in ("gfx1030", "libtwo.so", "saxpy"))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("device extract {host}", "Install the device package for the GPU beside it"),
        ("device split {host} -d {out}", "is split already; expected a wheel with a fat binary or kernel files"),
        ("device split {device} -d {out}", "is a device wheel; expected a wheel with a fat binary or kernel files"),
        ("device join {fat} -d {out}", "no library whose code is in archives"),
        ("device bundle {fat} -o {out}", "a wheel; expected a linked code object"),
    ],
)
def test_what_a_wheel_lacks_is_said(
    run: Run, tmp_path: Path, wheels: dict[str, list[Path]], line: str, found: str
) -> None:
    host, device = wheels["parts"]
    words = line.format(host=host, device=device, fat=wheels["fat"][0], out=tmp_path / "out").split()
    done = run(*words)
    assert (done.status, found in done.stderr, (tmp_path / "out").exists()) == (2, True, False), done.stderr
