"""Real libraries, split and joined: Debian's librocsparse0 and librocrand1, rocBLAS of newer suites, JAX's plugin.

Each is looked for where the scripts that fetch packages and wheels leave it.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from rocwheel.binary.bundles.sequence import iter_entry
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.elf.header import read_sections
from rocwheel.core.reading import FileRange
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support import kpack_reader
from tests.support.fat_libraries import lay_over, require_same_code
from tests.support.places import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.tools import RunTool

pytestmark = pytest.mark.corpus

_OFFSETS = re.compile(r"[Oo]ffset:? 0x\w+")

PACKAGES = {
    "librocsparse0": "debs/librocsparse0_5.*.deb",
    "librocrand1": "debs/librocrand1_5.*.deb",
    "librocblas4": "debian-newest/sid/librocblas4_6.*.deb",
    "librocblas5": "debian-newest/experimental/librocblas5_7.*.deb",
    "jax_rocm7_plugin": "repair-proof/wheels/jax_rocm7_plugin-*.whl",
}


@pytest.fixture(params=PACKAGES)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the files of a package, or skip."""
    found = sorted(CACHE.glob(PACKAGES[request.param]))
    if not found:
        pytest.skip(f"no {request.param} in {CACHE}")
    if found[0].suffix == ".whl":
        with ZipFile(found[0]) as wheel:
            wheel.extractall(tmp_path / "tree")
    else:
        subprocess.run(["dpkg-deb", "-x", str(found[0]), str(tmp_path / "tree")], check=True)
    return tmp_path / "tree"


class _Archive(kpack_reader.Archive):
    """An archive that is read once, and keeps the code objects that it gave last: many GPUs ask for the same."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.kernel = lru_cache(8)(super().kernel)  # type: ignore[method-assign]


def test_real_libraries_provide_the_same_code_when_split_and_when_joined(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = split_tree(tree, tmp_path / "out", SplitOrder(choice=SplitChoice(), jobs=2))
    assert report.libraries
    made = lay_over(tmp_path / "out", tmp_path / "made")
    join_tree(tmp_path / "out/host", [tmp_path / "out" / share.target for share in report.targets], tmp_path / "fat")
    for library in report.libraries:
        monkeypatch.setattr(kpack_reader, "Archive", cache(_Archive))
        assert require_same_code(made / library.path, iter_code(tree / library.path)) > 0
        assert digests(tmp_path / "fat" / library.path) == digests(tree / library.path)


def test_other_tools_read_and_strip_split_real_libraries_as_before(
    tree: Path, tmp_path: Path, run_tool: RunTool
) -> None:
    report = split_tree(tree, tmp_path / "out", SplitOrder(choice=SplitChoice(), jobs=2))
    assert report.libraries
    for library in report.libraries:
        old, new = tree / library.path, tmp_path / "out/host" / library.path
        for view in ("--dyn-syms", "-d", "-V"):
            before, after = (_OFFSETS.sub("", run_tool(["readelf", "-W", view, str(path)])) for path in (old, new))
            assert after == before, view
        assert addresses(old).items() <= addresses(new).items()
        stripped = tmp_path / "stripped.so"
        for command in ([], ["strip"], ["llvm-strip-22"], ["eu-strip"]):
            if command:
                run_tool([*command, "-o", str(stripped), str(new)], is_silent=True)
            for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"], ["llvm-readobj-22", "--all"]):
                run_tool([*tool, str(stripped if command else new)], is_silent=True)
            assert kpack_reader.units_of(stripped if command else new) == kpack_reader.units_of(new)


def addresses(path: Path) -> dict[str, int]:
    """Return where sections are loaded that are."""
    with FileRange.whole(path).view() as data:
        return {section.name: section.address for section in read_sections(data, name=str(path)) if section.flags & 2}


def iter_code(path: Path) -> Iterator[dict[str, bytes]]:
    """Yield the code by target for each wrapper of a fat library, in their order."""
    with FileRange.whole(path).view() as data:
        fat = read_fat_binary(data, name=str(path))
        assert fat is not None
        view = fat.view(data)
        by_start = {bundle.start: bundle for bundle in fat.iter_bundles(data)}
        for wrapper in fat.wrappers:
            bundle = by_start[fat.start_of(wrapper)]
            entries = [entry for entry in bundle.plain.device_entries if entry.size]
            yield {str(entry.target): b"".join(map(bytes, iter_entry(view, bundle, entry))) for entry in entries}


def digests(path: Path) -> list[dict[str, str]]:
    """Return the digest of each code object of a fat library, wrapper by wrapper, in the order of the bundle."""
    return [{target: hashlib.sha256(code).hexdigest() for target, code in codes.items()} for codes in iter_code(path)]
