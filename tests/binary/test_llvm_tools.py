"""LLVM's own tools, of several versions, read what was written here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import Prune, bundle_parts
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.retarget import Retarget
from rocwheel.targets.retarget_pairs import TargetPair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.device.edit_bundles import BundleEdit
    from tests.support.tools import RunTool

    FixturePath = Callable[[str], Path]

pytestmark = pytest.mark.slow

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
KEEP = Prune((parse_target_id("gfx1030"), parse_target_id("gfx90a")))
ADD = Retarget((TargetPair(parse_target_id("gfx1030"), parse_target_id("gfx1031")),))
ALL = ["gfx1030", "gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942"]
KEPT = ["gfx1030", "gfx90a:xnack+", "gfx90a:xnack-"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("llvm", "version"), [("15", 0), ("16", 0), ("19", 0), ("22", 0), ("19", 2), ("22", 2), ("22", 3)]
)
@pytest.mark.parametrize(
    ("edit", "targets"),
    [(None, ALL), (KEEP, KEPT), (ADD, ["gfx1030", "gfx1031", *ALL[1:]])],
    ids=["compress", "prune", "retarget"],
)
def test_the_bundler_lists_and_unbundles_the_result(
    fixture_path: FixturePath,
    run_tool: RunTool,
    tmp_path: Path,
    *,
    llvm: str,
    version: int,
    edit: BundleEdit | None,
    targets: list[str],
) -> None:
    result = tmp_path / "result.hipfb"
    storage = Storage(compress=version > 0, version=version or None)
    rewrite_device_code(fixture_path("v22/saxpy.hipfb"), result, edit, storage)
    bundler = [f"clang-offload-bundler-{llvm}", "--type=o", f"--input={result}"]
    listed = run_tool([*bundler, "--list"]).split()
    assert sorted(name.removeprefix(PREFIX) for name in listed if name.startswith(PREFIX)) == sorted(targets)
    outputs = [f"--output={tmp_path / target}" for target in targets]
    run_tool([*bundler, "--unbundle", f"--targets={','.join(PREFIX + target for target in targets)}", *outputs])
    data = memoryview(result.read_bytes())
    [bundle] = iter_bundles(data, name="result")
    parts = {part.spelling: join_data(part.payload) for part in bundle_parts(data, bundle)}
    for target in targets:
        assert (tmp_path / target).read_bytes() == parts[PREFIX + target]


def test_readelf_sees_the_retargeted_processor(fixture_path: FixturePath, run_tool: RunTool, tmp_path: Path) -> None:
    result, code = tmp_path / "result.hipfb", tmp_path / "code.co"
    rewrite_device_code(fixture_path("v22/saxpy.hipfb"), result, ADD, Storage())
    data = memoryview(result.read_bytes())
    [bundle] = iter_bundles(data, name="result")
    [entry] = [entry for entry in bundle.plain.device_entries if str(entry.target) == "gfx1031"]
    code.write_bytes(data[entry.offset : entry.stop])
    assert re.search(r"Flags: +0x37, gfx1031\n", run_tool(["llvm-readelf-22", "-h", str(code)]))
    assert "amdgcn-amd-amdhsa--gfx1031" in run_tool(["llvm-readelf-22", "-n", str(code)])
    assert "s_endpgm" in run_tool(["llvm-objdump-22", "-d", str(code)])


@pytest.mark.parametrize("name", ["v19/libtwo.plain.so", "v22/libtwo.rdc.so", "v23/libtwo.plain.so"])
def test_readelf_sees_the_same_host_library(
    fixture_path: FixturePath, run_tool: RunTool, tmp_path: Path, name: str
) -> None:
    result = tmp_path / "result.so"
    rewrite_device_code(fixture_path(name), result, None, Storage(compress=True))
    views = ["-hlS", "-r", "-d", "--dyn-syms"]
    before = [run_tool(["readelf", "-W", view, str(fixture_path(name))]) for view in views]
    assert [run_tool(["readelf", "-W", view, str(result)]) for view in views] == before
