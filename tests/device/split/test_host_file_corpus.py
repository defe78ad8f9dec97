"""Real libraries: Debian's librocsparse0, 1.3 GB in 111 bundles, and librocrand1, taken apart and joined."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.core.patch import FilePatch, write_patch
from rocwheel.core.reading import FileRange, iter_pieces
from rocwheel.device.split.host_file import UnitLink, plan_host_file
from rocwheel.device.split.joined_file import plan_fat_file
from tests.support.host_files import MARKERS, RUNTIME, parse_units
from tests.support.places import CACHE

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.core.reading import Data
    from tests.support.tools import RunTool

pytestmark = pytest.mark.corpus

LIBRARIES = {"librocsparse0": ("librocsparse.so.0.1", 111), "librocrand1": ("librocrand.so.1.1", 1)}
KPACK = "4b504948"
_LOAD = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW); ctypes.CDLL(None).fflush(None)"
_OWN = {name for name in re.findall(r"(\w+)\(", RUNTIME) if name.startswith("_")}


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> tuple[Path, int]:
    """Return a library and the number of its bundles, or skip."""
    name, bundles = LIBRARIES[request.param]
    found = sorted(CACHE.glob(f"{request.param}/usr/lib/*/{name}"))
    if not found:
        pytest.skip(f"no {request.param}; scripts/fetch_device_code_corpus.sh gets it")
    return found[0], bundles


def write_file(path: Path, data: Data, patch: FilePatch) -> Path:
    with path.open("wb") as file:
        write_patch(file, data, patch)
    path.chmod(0o755)
    return path


def stand_in(run_tool: RunTool, folder: Path, library: Path) -> None:
    """Build a library by the name of the runtime's, with all that ``library`` takes from that, in its versions."""
    table = run_tool(["nm", "-D", "--undefined-only", "--with-symbol-versions", str(library)])
    names: dict[str, list[str]] = defaultdict(list)
    for name, version in re.findall(r" (\w+)@(hip_[\w.]+)", table):
        names[version].append(name)
    others = sorted({name for found in names.values() for name in found} - _OWN - {"hipLaunchKernel"})
    (folder / "runtime.c").write_text(RUNTIME + "".join(f"int {name}(void) {{ return 0; }}\n" for name in others))
    (folder / "map").write_text(
        "".join(f"{version} {{ global: {'; '.join(found)}; }};\n" for version, found in sorted(names.items()))
    )
    options = ["-w", "-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.5", f"-Wl,--version-script={folder / 'map'}"]
    run_tool(["gcc", *options, "-o", str(folder / "libamdhip64.so.5"), str(folder / "runtime.c")])


def loaded_indices(folder: Path, library: Path) -> list[int]:
    """Return the indices of the units that ``library`` hands over, all of which have to be those of markers."""
    command = [sys.executable, "-c", _LOAD, str(library)]
    done = subprocess.run(
        command, env={**os.environ, "LD_LIBRARY_PATH": str(folder)}, check=True, capture_output=True, text=True
    )
    units = parse_units(done.stdout)
    assert {magic for magic, *_ in units} == {KPACK}
    assert {b"\xabkernel_name\xadlib/libtwo.so" in head for *_, head in units} == {True}
    return [index for _, index, _ in units]


def test_a_real_library_loads_without_its_code_and_can_be_joined(
    library: tuple[Path, int], run_tool: RunTool, tmp_path: Path
) -> None:
    path, number = library
    stand_in(run_tool, tmp_path, path)
    with FileRange.whole(path).view() as data:
        fat = read_fat_binary(data, name="x")
        assert fat is not None
        starts = {start: index for index, start in enumerate(fat.starts)}
        units = [starts[wrapper.pointer.target - fat.section.address] for wrapper in fat.wrappers]
        links = [UnitLink(unit, min(unit, 1)) for unit in units]
        host = write_file(tmp_path / "host.so", data, plan_host_file(data, MARKERS, links, name="x"))
        assert host.stat().st_size < len(data) - fat.section.size + 3 * 4096
        assert loaded_indices(tmp_path, host) == list(range(number))
        for view in ("--dyn-syms", "-d", "-V"):
            old, new = (re.sub(r"[Oo]ffset:? 0x\w+", "", run_tool(["readelf", "-W", view, p])) for p in (path, host))
            assert new == old
        for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"], ["llvm-readobj-22", "--all"]):
            run_tool([*tool, str(host)], is_silent=True)
        bundles = [fat.view(data)[bundle.start : bundle.stop] for bundle in fat.iter_bundles(data)]
        with FileRange.whole(host).view() as host_data:
            joined = write_file(tmp_path / "fat.so", host_data, plan_fat_file(host_data, bundles, units, name="x"))
        _check_joined(joined, bundles)
        with FileRange.whole(joined).view() as again:
            second = write_file(tmp_path / "again.so", again, plan_host_file(again, MARKERS, links, name="x"))
        assert second.read_bytes() == host.read_bytes()
    for command in (["strip"], ["llvm-strip-22"], ["eu-strip"]):
        run_tool([*command, "-o", str(tmp_path / "stripped.so"), str(host)], is_silent=True)
        assert loaded_indices(tmp_path, tmp_path / "stripped.so") == list(range(number))


def _check_joined(path: Path, bundles: list[Data]) -> None:
    with FileRange.whole(path).view() as data:
        fat = read_fat_binary(data, name="x")
        assert fat is not None
        found = list(fat.iter_bundles(data))
        assert {bundle.start % 4096 for bundle in found} == {0}
        for bundle, old in zip(found, bundles, strict=True):
            new = fat.view(data)[bundle.start : bundle.stop]
            assert len(new) == len(old)
            assert all(a == b for a, b in zip(iter_pieces(new), iter_pieces(old), strict=True))
