"""``rocwheel device split`` of wheels as a user runs it."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.places import FIXTURES
from tests.support.variant_wheels import variant_document
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

LIBRARY = FIXTURES / "v22/libtwo.plain.so"


def test_wheels_become_host_and_device_wheels(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    other = make_wheel(tmp_path, "more", {"more/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    status, text, err = run("device", "split", wheel, other, "--dest-dir", out)
    assert (status, "warning" in err) == (0, False)
    assert [line.partition(", ")[0] for line in text.splitlines()[:4]] == [
        f"{out}/{wheel.name}: 1 library split",
        f"{out}/demo_device_gfx906-1.0-py3-none-linux_x86_64.whl: 1 archive",
        f"{out}/demo_device_gfx90a-1.0-py3-none-linux_x86_64.whl: 1 archive",
        f"{out}/demo_device_gfx1030-1.0-py3-none-linux_x86_64.whl: 1 archive",
    ]
    assert len(list(out.iterdir())) == 8


def test_a_gpu_runs_what_the_given_device_wheels_bring(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--dest-dir", out, "--quiet")
    host, device = out / wheel.name, next(out.glob("*gfx1030*"))
    same = "(the same processor with the same features)"
    status, text, err = run("targets", "runs-on", "gfx1030", host, device)
    assert (status, err) == (0, "")
    assert (
        text.splitlines()[0]
        == f"{host}!demo/libtwo.so: gfx1030 on a stock runtime from ROCm 7.14 on: uses gfx1030 in 2 bundles {same}"
    )
    status, text, err = run("targets", "runs-on", "gfx906", host, device)
    assert (status, err) == (1, "")
    assert text.splitlines()[0].startswith(
        f"{host}!demo/libtwo.so: gfx906 on a stock runtime from ROCm 7.14 on: finds nothing in 2 bundles"
    )
    status, text, err = run("targets", "runs-on", "gfx906", host)
    why = "finds nothing in 2 bundles (no archive at .kpack/libtwo.so_@GFXARCH@.kpack)"
    assert (status, text.splitlines()[0]) == (
        1,
        f"{host}!demo/libtwo.so: gfx906 on a stock runtime from ROCm 7.14 on: {why}",
    )


def test_the_document_tells_all(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    status, text, err = run("device", "split", wheel, "--dest-dir", tmp_path / "out", "-t", "gfx906", "--json")
    document = json.loads(text)
    [report] = document["wheels"]
    assert (status, err, document["schema"]) == (0, "", "rocwheel.device-split-wheels/1")
    assert (report["size"], report["overlay_root"], report["libraries"]) == (
        wheel.stat().st_size,
        "demo",
        ["demo/libtwo.so"],
    )
    assert [(device["target"], device["archives"], device["files"]) for device in report["devices"]] == [
        ("gfx906", 1, 0)
    ]


def test_options_for_wheels_are_refused_for_folders(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    status, _, err = run("device", "split", tmp_path / "tree", "--overlay-root", "x", "--dest-dir", tmp_path / "out")
    assert (status, err) == (2, f"error: {tmp_path}/tree: is not a wheel; expected wheels for --overlay-root\n")
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    status, _, err = run("device", "split", tmp_path / "tree", wheel, "--dest-dir", tmp_path / "out")
    found = "is split together with something else; expected one file or folder, or wheels"
    assert (status, err) == (2, f"error: {wheel}: {found}\n")


def test_wheels_are_joined_again(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--dest-dir", out, "--quiet")
    devices = sorted(out.glob("demo_device*"))
    status, text, err = run("device", "join", out / wheel.name, *devices, "--dest-dir", tmp_path / "fat", "--json")
    report = json.loads(text)
    assert (status, err, report["schema"], report["libraries"]) == (
        *(0, "", "rocwheel.device-join-wheel/1"),
        ["demo/libtwo.so"],
    )
    assert members(tmp_path / "fat" / wheel.name).keys() == members(wheel).keys()


def test_splitting_again_leaves_one_consistent_set_and_says_what_went(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    assert run("device", "split", wheel, "--dest-dir", out).status == 0
    asked = run("device", "split", wheel, "--dest-dir", out, "-t", "gfx906", "--dry-run")
    assert asked.stdout.splitlines()[0].startswith("would be removed, as it is of an earlier split: ")
    status, text, err = run("device", "split", wheel, "--dest-dir", out, "-t", "gfx906")
    assert (status, "warning" in err) == (0, False)
    assert text.splitlines()[:3] == [
        f"removed, as it is of an earlier split: {out}/demo_device_gfx1030-1.0-py3-none-linux_x86_64.whl",
        f"removed, as it is of an earlier split: {out}/demo_device_gfx90a-1.0-py3-none-linux_x86_64.whl",
        "replaced 2 wheels of an earlier split",
    ]
    assert len(list(out.iterdir())) == 2


def test_wheels_that_another_tool_has_split_are_mended(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--dest-dir", out, "--quiet")
    done = run("device", "split", "--mend", *sorted(out.iterdir()), "--dest-dir", tmp_path / "mended")
    first, *_ = done.stdout.splitlines()
    assert (done.status, first.partition(",")[0]) == (0, f"{tmp_path}/mended/{wheel.name}: no library split")
    assert len(list((tmp_path / "mended").iterdir())) == 4


@pytest.mark.parametrize("option", ["--device-requires-dist", "--host-requires-dist"])
def test_a_bad_requirement_is_refused_before_anything_is_read(run: Run, tmp_path: Path, option: str) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"no wheel")
    order = (option, "bad ===", "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", *order)
    assert status == 2
    assert err.startswith(f"error: {option}: 'bad ===' is a malformed Requires-Dist (no version after ===); expected ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["split", "join"])
def test_a_wheel_that_is_another_than_its_name_says_is_refused(run: Run, tmp_path: Path, command: str) -> None:
    made = make_wheel(tmp_path / "in", "demo", {"demo/libtwo.so": LIBRARY})
    wheel = made.rename(tmp_path / "demo-2.0-py3-none-linux_x86_64.whl")
    status, _, err = run("device", command, wheel, "--dest-dir", tmp_path / "out")
    found = "its metadata gives the version '1.0'; expected '2.0' as in the file name"
    assert (status, err, (tmp_path / "out").exists()) == (2, f"error: {wheel}: {found}\n", False)


def test_two_wheels_of_one_name_are_refused(run: Run, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / name, "demo", {"demo/libtwo.so": LIBRARY}) for name in ("a", "b")]
    status, _, err = run("device", "split", *wheels, "--dest-dir", tmp_path / "out")
    assert (status, err) == (2, f"error: {wheels[1]}: has the name of {wheels[0]}; expected each wheel once\n")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def parted(run: Run, tmp_path: Path) -> tuple[Path, Path]:
    """Return a host wheel and the device wheel of gfx1030, away from the others."""
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    run("device", "split", wheel, "--dest-dir", tmp_path / "out", "-t", "gfx1030", "--quiet")
    [device] = (tmp_path / "out").glob("demo_device*")
    return tmp_path / "out" / wheel.name, device


def test_code_of_a_host_wheel_is_listed_with_its_device_wheels(run: Run, parted: tuple[Path, Path]) -> None:
    host, device = parted
    document = json.loads(run("device", "list", host, device, "--json").stdout)
    files = {file["path"]: file["device"]["entries"] for file in document["files"]}
    assert (document["schema"], document["problems"]) == ("rocwheel.device-list-paths/1", [])
    archive = f"{device}!demo/.kpack/libtwo.so_gfx1030.kpack"
    assert {path: [entry["target"] for entry in entries] for path, entries in files.items()} == {
        f"{host}!demo/libtwo.so": ["gfx1030"] * 2,
        archive: ["gfx1030"] * 2,
    }
    status, text, err = run("device", "list", device, host)
    assert (status, err) == (0, "")
    assert f"{host}!demo/libtwo.so: " in text


def test_code_of_a_host_wheel_is_inspected_with_its_device_wheels(run: Run, parted: tuple[Path, Path]) -> None:
    document = json.loads(run("inspect", *parted, "--json").stdout)
    [library] = [file for file in document["files"] if file["path"].endswith("libtwo.so")]
    assert library["device"]["targets_in_all_bundles"] == ["gfx1030"]
    alone = json.loads(run("inspect", parted[0], "--json").stdout)
    assert alone["files"][0]["device"]["targets_in_all_bundles"] == []


def test_code_of_a_host_wheel_is_extracted_with_its_device_wheels(
    run: Run, parted: tuple[Path, Path], tmp_path: Path
) -> None:
    done = run("device", "extract", *parted[::-1], "-t", "gfx1030", "-d", tmp_path / "code")
    assert (done.status, done.stderr) == (0, "")
    assert run("device", "extract", LIBRARY, "-t", "gfx1030", "-d", tmp_path / "fat").status == 0
    made = sorted((tmp_path / "code").rglob("*.co"))
    assert [str(path.relative_to(tmp_path / "code")) for path in made] == [
        "demo/libtwo.so.0.gfx1030.co",
        "demo/libtwo.so.1.gfx1030.co",
    ]
    originals = sorted((tmp_path / "fat").rglob("*.co"))
    assert [path.read_bytes() for path in made] == [path.read_bytes() for path in originals]


def test_code_of_two_files_is_not_written_over_each_other(run: Run, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / name, "demo", {"demo/libtwo.so": LIBRARY}) for name in ("a", "b")]
    done = run("device", "extract", *wheels, "-d", tmp_path / "code")
    found = f"its code would be written over that of {wheels[0]}!demo/libtwo.so. Extract from one at a time."
    assert (done.status, done.stderr) == (2, f"error: {wheels[1]}!demo/libtwo.so: {found}\n")
    assert not (tmp_path / "code").exists()


def test_kernels_of_host_and_device_wheels_are_listed_once(run: Run, parted: tuple[Path, Path]) -> None:
    document = json.loads(run("device", "list", "--kernels", *parted, "--json").stdout)
    assert [(code["target"], len(code["kernels"])) for code in document["codes"]] == [("gfx1030", 1)] * 2


@pytest.mark.parametrize("place", ["demo-1.0.dist-info/LICENSE.txt", "demo/NOTICE"])
def test_the_audit_finds_the_license_in_every_wheel(run: Run, tmp_path: Path, place: str) -> None:
    info = "demo-1.0.dist-info"
    files = {
        "demo/libtwo.so": LIBRARY.read_bytes(),
        place: b"a license",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nLicense: MIT\n\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n",
    }
    wheel = write_wheel(tmp_path / "demo-1.0-py3-none-linux_x86_64.whl", info, files)
    assert run("device", "split", wheel, "--dest-dir", tmp_path / "out", "--quiet").status == 0
    found = json.loads(run("audit", tmp_path / "out", "--select", "license-missing", "--json").stdout)
    assert (found["findings"], len(list((tmp_path / "out").iterdir()))) == ([], 4)


def test_the_folder_of_an_unpacked_wheel_becomes_such_folders(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "folder")
    done = run("device", "split", tmp_path / "folder", "--dest-dir", tmp_path / "out", "-t", "gfx906", "-q")
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["demo-1.0", "demo_device_gfx906-1.0"]
    assert [path.name for path in (tmp_path / "out/demo_device_gfx906-1.0").rglob("*_gfx906.kpack")] == [
        "libtwo.so_gfx906.kpack"
    ]
    mended = run("device", "split", tmp_path / "folder", "--mend", "--dest-dir", tmp_path / "no")
    assert mended.stderr == f"error: {tmp_path}/folder: is an unpacked wheel; expected another folder for --mend\n"


@pytest.mark.parametrize(("suffix", "named"), [("-gfx90a", " (gfx90a)"), ("", "")], ids=["label", "plain name"])
def test_a_wheel_variant_is_refused_with_what_to_do(run: Run, tmp_path: Path, suffix: str, named: str) -> None:
    texts = {"demo-1.0.dist-info/variant.json": json.dumps(variant_document("gfx90a", ["gfx90a"])).encode()}
    made = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY, **texts})
    wheel = made.rename(tmp_path / f"demo-1.0-py3-none-linux_x86_64{suffix}.whl")
    status, out, err = run("device", "split", wheel, "--dest-dir", tmp_path / "out")
    assert (status, out) == (2, "")
    assert err == (
        f"error: {wheel}: is a wheel variant{named}, which has its code itself; expected a plain wheel. Split the "
        "plain wheel, and make variants of its device wheels with `rocwheel index --variants`.\n"
    )
    assert not (tmp_path / "out").exists()
