"""Wheels that don't say what they are, in the commands that split and join them."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

INFO = "demo-1.0.dist-info"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fat wheel."""
    folder = tmp_path_factory.mktemp("made")
    return make_wheel(folder, "demo", {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so"})


def rewritten(wheel: Path, made: Path, *, lost: str = "", more: str = "") -> Path:
    """Write a wheel again, without the members of which ``lost`` is the end, and with an empty one."""
    made.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if not lost or not name.endswith(lost):
                new.writestr(name, old.read(name))
        if more:
            new.writestr(more, b"")
    return made


FAULTS = {
    "without METADATA": ({"lost": f"{INFO}/METADATA"}, f"has no {INFO}/METADATA"),
    "without WHEEL": ({"lost": f"{INFO}/WHEEL"}, f"has no {INFO}/WHEEL"),
    "with two .dist-info": ({"more": "other-1.0.dist-info/METADATA"}, "has several .dist-info folders"),
}


@pytest.mark.parametrize(("change", "found"), FAULTS.values(), ids=FAULTS)
def test_a_wheel_that_is_none_is_not_split(
    run: Run, made: Path, tmp_path: Path, change: dict[str, str], found: str
) -> None:
    wheel = rewritten(made, tmp_path / made.name, **change)
    finished = run("device", "split", wheel, "--dest-dir", tmp_path / "out")
    assert finished.status == 2
    assert finished.stderr.startswith(f"error: {wheel}: {found}")
    assert list(tmp_path.iterdir()) == [wheel]


@pytest.mark.parametrize("which", ["host", "device"])
@pytest.mark.parametrize("fault", FAULTS)
def test_wheels_that_are_none_are_not_joined(run: Run, made: Path, tmp_path: Path, which: str, fault: str) -> None:
    change, found = FAULTS[fault]
    parts = tmp_path / "parts"
    run("device", "split", made, "--dest-dir", parts)
    host, device = parts / made.name, next(parts.glob("demo_device_gfx906*"))
    bad = host if which == "host" else device
    own = "demo_device_gfx906-1.0.dist-info" if which == "device" else INFO
    change = {key: value.replace(INFO, own) for key, value in change.items()}
    rewritten(bad, tmp_path / "bad.whl", **change)
    shutil.move(tmp_path / "bad.whl", bad)
    finished = run("device", "join", host, device, "--dest-dir", tmp_path / "out")
    assert finished.status == 2
    assert f"error: {bad}: {found.replace(INFO, own)}" in finished.stderr
    assert list(tmp_path.iterdir()) == [parts]


@pytest.mark.deep
@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"no wheel"], ids=["empty", "cut off", "text"])
@pytest.mark.parametrize(
    "command",
    [
        ("list", "{}"),
        ("list", "--kernels", "{}"),
        ("compress", "{}", "-o", "out.whl"),
        ("prune", "{}", "--keep", "gfx906", "-o", "out.whl"),
        ("retarget", "gfx1030=gfx1031", "{}", "-o", "out.whl"),
        ("extract", "{}", "--target", "gfx906", "-d", "out"),
        ("bundle", "{}", "-o", "out.hipfb"),
    ],
    ids=["list", "kernels", "compress", "prune", "retarget", "extract", "bundle"],
)
def test_a_wheel_that_is_no_archive_is_damaged(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], data: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(data)
    found = "a truncated or damaged archive; expected a whole wheel, with its directory at the end"
    assert run("device", *(word.format(wheel) for word in command)) == (2, "", f"error: {wheel}: {found}\n")
    assert list(tmp_path.iterdir()) == [wheel]
