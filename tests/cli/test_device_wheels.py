"""``rocwheel device`` on wheels, as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel with a fat binary and a kernel file."""
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    files = {"demo/a.so": library, "demo/k_gfx942.dat": b"x"}
    return make_wheel(tmp_path / "in", "demo", files)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["compress"], "0 files left out, 1 file with bundles edited (29.9 kB saved), 2 copied"),
        (["prune", "--keep", "gfx906"], "1 file left out, 1 file with bundles edited (18.5 kB saved), 1 copied"),
        (
            ["retarget", "gfx1030=gfx1031", "--compress"],
            "0 files left out, 1 file with bundles edited (29.8 kB saved), 2 copied",
        ),
    ],
    ids=["compress", "prune", "retarget"],
)
def test_a_wheel_is_edited_into_a_folder(run: Run, tmp_path: Path, wheel: Path, command: list[str], line: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    done = run("device", *command, wheel, "-o", out)
    assert (done.status, done.stdout) == (0, f"{out / wheel.name}: {line}\n")
    assert members(out / wheel.name)["demo/a.so"] != members(wheel)["demo/a.so"]


def test_an_edited_wheel_is_told_to_machines(run: Run, tmp_path: Path, wheel: Path) -> None:
    out = tmp_path / "demo-1.0-1-py3-none-linux_x86_64.whl"
    document = json.loads(run("device", "prune", wheel, "-k", "gfx906", "-o", out, "--json").stdout)
    assert document["schema"] == "rocwheel.device-rewrite-wheel/1"
    assert (document["path"], document["output"]) == (str(wheel), str(out))
    assert (document["dropped"], document["copied"], document["warnings"]) == (["demo/k_gfx942.dat"], 1, [])
    assert [(file["path"], file["changed"], file["bundles"]) for file in document["edited"]] == [("demo/a.so", 2, 2)]


@pytest.mark.parametrize(
    "name", ["small.whl", "demo-1.0.zip", "other-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"]
)
def test_a_name_that_installers_refuse_is_refused(run: Run, tmp_path: Path, wheel: Path, name: str) -> None:
    done = run("device", "compress", wheel, "-o", tmp_path / name)
    expected = "a folder, or a name that begins with demo-1.0 and ends with .whl"
    assert (done.status, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: {tmp_path / name}: the edited {wheel.name} can't have this name; expected {expected}\n"
    )
    assert not (tmp_path / name).exists()


def test_bundles_of_a_wheel_without_code_to_offer_are_counted(run: Run, tmp_path: Path) -> None:
    files = {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb", "demo/b.hipfb": FIXTURES / "v16/vadd.cov2.hipfb"}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "-o", tmp_path)
    assert done.stdout == (
        f"{tmp_path / wheel.name}: 0 files left out, 1 file with bundles edited (84 bytes saved), 2 copied\n"
    )
    done = run("device", "retarget", "gfx1010=gfx1011", wheel, "-o", tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {wheel}: no code for gfx1010 to offer to other GPUs; expected one of ")


def test_code_that_takes_more_room_than_before_is_said_to(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.hipfb": FIXTURES / "v22/saxpy.hipfb"})
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "-o", tmp_path)
    assert done.stdout == (
        f"{tmp_path / wheel.name}: 0 files left out, 1 file with bundles edited (4.1 kB more), 1 copied\n"
    )


def test_extract_says_how_to_unpack_a_wheel(run: Run, tmp_path: Path, wheel: Path) -> None:
    done = run("device", "extract", wheel, "-d", tmp_path / "code")
    remedy = "Unpack it, and give a file in it: python -m zipfile -e WHEEL FOLDER"
    assert done == (2, "", f"error: {wheel}: is a wheel; expected a file with device code. {remedy}\n")


def test_a_name_without_a_suffix_is_that_of_a_folder_to_make(run: Run, tmp_path: Path, wheel: Path) -> None:
    done = run("device", "prune", wheel, "-k", "gfx906", "-o", f"{tmp_path}/new/")
    assert done.status == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == [wheel.name]


def test_wheels_with_device_code_in_a_folder_are_refused_by_name(run: Run, tmp_path: Path, wheel: Path) -> None:
    make_wheel(wheel.parent, "plain", {"plain/a.py": b"pass"})
    named = make_wheel(wheel.parent, "named", {"named/k_gfx942.dat": b"x"})
    done = run("device", "prune", wheel.parent, "-k", "gfx906", "-o", tmp_path / "out")
    assert (done.status, done.stdout) == (2, "")
    found = "a wheel with device code in a folder; expected unpacked files"
    assert f"{wheel}: {found}. Prune it by itself: rocwheel device prune WHEEL --keep TARGETS -o FOLDER" in done.stderr
    assert f"{named}: {found}" in done.stderr
    assert "plain" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_wheels_without_device_code_in_a_folder_are_copied(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "plain", {"plain/a.py": b"pass"})
    assert run("device", "prune", wheel.parent, "-k", "gfx906", "-o", tmp_path / "out").status == 0
    assert (tmp_path / "out" / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        (["compress"], ["gfx906", "gfx942", "gfx1030"]),
        (["prune", "--keep", "gfx906"], ["gfx906"]),
        (["retarget", "gfx1030=gfx1031", "--compress"], ["gfx906", "gfx942", "gfx1030", "gfx1031"]),
    ],
    ids=["compress", "prune", "retarget"],
)
def test_the_declared_targets_are_those_of_the_edited_code(
    run: Run, tmp_path: Path, command: list[str], targets: list[str]
) -> None:
    declaration = {"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx906", "gfx942", "gfx1030"]}
    name = "demo-1.0.dist-info/rocm_targets.json"
    files = {"demo/a.so": (FIXTURES / "v22/libtwo.plain.so").read_bytes(), name: json.dumps(declaration).encode()}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    assert run("device", *command, wheel, "-o", tmp_path / "out").status == 0
    assert json.loads(members(tmp_path / "out" / wheel.name)[name])["rocm_targets"] == targets


def test_a_wheel_that_pruning_would_leave_without_code_is_refused(run: Run, tmp_path: Path) -> None:
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx1030", "-d", tmp_path / "code")
    [code] = (tmp_path / "code").iterdir()
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/Kernels.hsaco": code.read_bytes()})
    out = tmp_path / wheel.name
    done = run("device", "prune", wheel, "-k", "gfx906", "-o", out)
    found = "has no code for any target to keep; expected code for one of gfx906. It has code for gfx1030."
    assert (done.status, f"error: {wheel}: {found}" in done.stderr, out.exists()) == (2, True, False)
    assert run("device", "prune", wheel, "-k", "gfx906", "-o", out, "--allow-empty").status == 0
