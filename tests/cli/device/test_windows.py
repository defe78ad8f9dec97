"""``rocwheel device`` and ``build --split-device`` on files of Windows, as a user runs them."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.device.device_facts import list_device_code
from tests.support.kpack_reader import load_unit, units_of
from tests.support.places import FIXTURES, ROOT
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

TWO = (FIXTURES / "pe/two.dll").read_bytes()
SAMPLE = ROOT / "src/rocwheel/sample/windows"
LAUNCHERS = Path(sysconfig.get_path("purelib"), "installer", "_scripts")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree like that of an SDK, with files that are no libraries with device code."""
    folder = tmp_path / "tree/bin"
    folder.mkdir(parents=True)
    (folder / "two.dll").write_bytes(TWO)
    for name in ("t32.exe", "t64.exe"):
        (folder / name).write_bytes((LAUNCHERS / name).read_bytes())
    (folder / "notes.txt").write_bytes(b"MZ is how this text begins.")
    return tmp_path / "tree"


def code_of(library: Path, target: str) -> list[bytes]:
    """Return the code objects of each bundle for a target, cut out by hand."""
    data = library.read_bytes()
    found = []
    for bundle in list_device_code(library).bundles:
        count = struct.unpack_from("<Q", data, bundle.offset + 24)[0]
        position = bundle.offset + 32
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", data, position)
            name = data[position + 24 : position + 24 + length].decode()
            position += 24 + length
            if name.endswith(f"--{target}"):
                found.append(data[bundle.offset + offset :][:size])
    return found


def test_a_runtime_finds_the_code_of_a_split_tree(run: Run, tree: Path, tmp_path: Path) -> None:
    whole = code_of(tree / "bin/two.dll", "gfx906")
    status, out, err = run("device", "split", tree, "--dest-dir", tmp_path / "out")
    assert (status, err, len(whole)) == (0, "", 2)
    assert out.splitlines()[0] == f"{tmp_path}/out/host: 4 files, 1 library split, on disk 41.0 kB -> 4.1 kB"
    (tmp_path / "out/gfx906/.kpack").rename(tmp_path / "out/host/.kpack")
    library = tmp_path / "out/host/bin/two.dll"
    units = units_of(library)
    assert [unit.key for unit in units] == ["bin/two.dll#0", "bin/two.dll#1"]
    assert [load_unit(library, unit, ["gfx906"], old=old) for unit in units for old in (True, False)] == [
        code for code in whole for _ in range(2)
    ]


def test_wheels_are_split_and_joined_to_the_same_library(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/bin/two.dll": TWO}, tag="py3-none-win_amd64")
    status, _, err = run("device", "split", wheel, "--dest-dir", tmp_path / "split")
    made = sorted(path.name for path in (tmp_path / "split").iterdir())
    assert (status, err) == (0, "")
    assert made == [
        "demo-1.0-py3-none-win_amd64.whl",
        *(f"demo_device_{target}-1.0-py3-none-win_amd64.whl" for target in ("gfx1030", "gfx906", "gfx90a")),
    ]
    archives = [name for name in members(tmp_path / "split" / made[1]) if name.endswith(".kpack")]
    assert archives == ["demo/.kpack/two.dll_gfx1030.kpack"]
    status, _, err = run("device", "join", *(tmp_path / "split" / name for name in made), "-d", tmp_path / "joined")
    assert (status, err) == (0, "")
    with zipfile.ZipFile(tmp_path / "joined" / made[0]) as joined:
        assert joined.read("demo/bin/two.dll") == TWO


@pytest.mark.parametrize("words", [("prune", "--keep", "gfx906"), ("compress",)], ids=lambda words: words[0])
def test_other_files_of_a_tree_are_copied(run: Run, tree: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    output = tmp_path / "out"
    status, _, _ = run("device", words[0], tree, *words[1:], "-o", output)
    assert status == 0
    changed = [
        path.name for path in (output / "bin").iterdir() if path.read_bytes() != (tree / "bin" / path.name).read_bytes()
    ]
    assert changed == ["two.dll"]


def test_a_truncated_library_is_named(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "bin/two.dll").write_bytes(TWO[:0x5000])
    status, _, err = run("device", "split", tree, "--dest-dir", tmp_path / "out")
    assert (status, (tmp_path / "out").exists()) == (2, False)
    assert "bin/two.dll: the section .hip_fat would lie at 0xa00 to 0x9c00, but the file ends at 0x5000" in err


def test_code_for_more_gpus_finds_room_when_compressed(run: Run, tmp_path: Path) -> None:
    made = tmp_path / "a.dll"
    status, _, err = run("device", "retarget", "gfx1030=gfx1031", FIXTURES / "pe/two.dll", "--compress", "-o", made)
    assert status == 0, err
    targets = {entry.target for bundle in list_device_code(made).bundles for entry in bundle.entries}
    assert targets == {"gfx1030", "gfx1031", "gfx906", "gfx90a:xnack+"}


def test_a_build_for_windows_splits_its_libraries(run: Run, tmp_path: Path) -> None:
    status, _, err = run("build", "--artifact-dir", SAMPLE, "-d", tmp_path / "made", "--split-device", "-q")
    assert (status, "keeps its device code" in err) == (0, False)
    device = tmp_path / "made/dist/rocm_sdk_device_gfx1030-7.0.0-py3-none-win_amd64.whl"
    archives = {name for name in members(device) if name.endswith(".dll_gfx1030.kpack")}
    assert archives == {f"_rocm_sdk_libraries/.kpack/{name}.dll_gfx1030.kpack" for name in ("rocrand", "rocsparse")}
    status, _, err = run("audit", tmp_path / "made/dist")
    assert status == 0, err
    status, out, err = run("targets", "coherent", tmp_path / "made/dist")
    assert (status, out.splitlines()[-1]) == (0, "coherent; served by all: gfx1030, gfx1100"), err


def test_a_build_for_windows_has_no_overlays_and_says_so(run: Run, tmp_path: Path) -> None:
    status, out, err = run("build", "--artifact-dir", SAMPLE, "-d", tmp_path / "made", "--split-device=overlay")
    remark = "a DLL or program of Windows, where no other file takes the place of one"
    assert (status, " ".join((out + err).split()).count(remark)) == (0, 2)


KILLED = """
import os, signal
from pathlib import Path
import {module} as module
from rocwheel.binary.bundles.storage import Storage
from rocwheel.device.edit_file import rewrite_device_code
module.{name} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
rewrite_device_code(Path({source!r}), Path({output!r}), None, Storage(compress=True), trim={trim})
"""


@pytest.mark.parametrize(
    ("module", "name", "trim"),
    [
        ("rocwheel.binary.pe.facts", "RunningChecksum.value", False),
        ("rocwheel.binary.pe.facts", "RunningChecksum.change", False),
        ("rocwheel.device.edit_file", "write_patched", True),
    ],
)
def test_a_killed_edit_leaves_no_file(run: Run, tmp_path: Path, module: str, name: str, *, trim: bool) -> None:
    source, output = FIXTURES / "pe/two-gnu.dll", tmp_path / "made/a.dll"
    output.parent.mkdir()
    script = KILLED.format(module=module, name=name, source=str(source), output=str(output), trim=trim)
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert not output.exists()
    status, _, _ = run("device", "compress", source, "-o", output)
    assert (status, [path.name for path in output.parent.iterdir()]) == (0, ["a.dll"])
