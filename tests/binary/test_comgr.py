"""AMD's comgr finds the code that was kept or added, and none that was removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.sequence import Bundle, iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import CodePlace, parse_target_id, read_code_object
from rocwheel.binary.kernel_metadata import count_kernels
from rocwheel.binary.kind import COMPRESSED_MAGIC
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import Prune, bundle_parts, device_patch
from rocwheel.device.retarget import Retarget
from rocwheel.targets.retarget_pairs import TargetPair
from tests.support.comgr import LaterComgr, load_comgr, load_later_comgr

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.device.edit_bundles import BundleEdit
    from tests.support.comgr_calls import ComgrCalls
    from tests.support.device_files import Fixture

ISA = "amdgcn-amd-amdhsa--"
PLAIN = Storage()
KEPT = ["gfx906", "gfx90a:xnack-"]
KEEP = Prune(tuple(map(parse_target_id, KEPT)))
ADD = Retarget((TargetPair(parse_target_id("gfx1030"), parse_target_id("gfx1031")),))


def rewrite(data: memoryview, edit: BundleEdit | None, storage: Storage) -> bytes:
    patch = device_patch(data, name="x", edit=edit, storage=storage)
    assert patch is not None
    return join_data(patch.apply(data, 0, patch.size))


def code_of(data: bytes | memoryview) -> tuple[Bundle, dict[str, bytes]]:
    """Return the one bundle of a file, and its code by target."""
    view = memoryview(data)
    [bundle] = iter_bundles(view, name="x")
    parts = zip(bundle.plain.entries, bundle_parts(view, bundle), strict=True)
    return bundle, {str(entry.target): join_data(part.payload) for entry, part in parts if entry.target}


def find(comgr: LaterComgr, data: bytes, *targets: str) -> list[bytes]:
    """Return the code for each target as HIP finds it in a bundle, compressed or not."""
    isas = [ISA + target for target in targets]
    if data[:4] == COMPRESSED_MAGIC:
        return comgr.unbundle(data, isas)
    return [data[offset : offset + size] for offset, size in (comgr.look_up(data, isa) for isa in isas)]


@pytest.mark.parametrize("load", [load_comgr, load_later_comgr])
def test_comgr_finds_kept_code_and_does_not_find_removed_code(
    fixture: Fixture, load: Callable[[], ComgrCalls | LaterComgr]
) -> None:
    comgr = load()
    pruned = rewrite(fixture("v16/saxpy.hipfb"), KEEP, PLAIN)  # Debian 12's knows code objects up to version 4
    bundle, code = code_of(pruned)
    assert list(code) == KEPT
    for entry in bundle.plain.device_entries:
        assert comgr.look_up(pruned, ISA + str(entry.target)) == (entry.offset, entry.size)
        assert comgr.isa_name(code[str(entry.target)]) == ISA + str(entry.target)
    for target in ("gfx1030", "gfx90a:xnack+"):
        assert comgr.look_up(pruned, ISA + target) == (0, 0)


@pytest.mark.parametrize(
    ("name", "storage"),
    [
        ("v16/saxpy.hipfb", PLAIN),
        ("v19/saxpy.hipfb", PLAIN),
        ("v22/saxpy.hipfb", PLAIN),
        ("v16/saxpy.hipfb", Storage(compress=True, version=2)),
        ("v19/saxpy.hipfb", Storage(compress=True, version=2)),
        ("v22/saxpy.hipfb", Storage(compress=True, version=3)),
        ("v18/saxpy.ccob.hipfb", PLAIN),
        ("edge/zlib.v2.ccob", PLAIN),
        ("edge/zlib.v3.ccob", PLAIN),
        ("v23/saxpy.ccob.hipfb", PLAIN),
    ],
)
def test_comgr_and_rocwheel_find_the_same_code_in_every_bundle_format(
    fixture: Fixture, name: str, storage: Storage
) -> None:
    comgr = load_later_comgr()
    pruned = rewrite(fixture(name), KEEP, storage)
    old, new = code_of(fixture(name))[1], code_of(pruned)[1]
    assert list(new) == KEPT
    assert find(comgr, pruned, "gfx906:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", "gfx1030") == [
        old["gfx906"],
        old["gfx90a:xnack-"],
        b"",
    ]


def test_the_host_entry_of_old_compilers_is_rewritten_on_compression(fixture: Fixture) -> None:
    comgr = load_later_comgr()
    data, isas = fixture("v16/saxpy.hipfb"), [f"{ISA}gfx906", f"{ISA}gfx942"]
    compressed = rewrite(data, None, Storage(compress=True))
    assert [entry.spelling for entry in code_of(compressed)[0].plain.entries[:2]] == [
        "host-x86_64-unknown-linux--",
        f"hipv4-{ISA}gfx1030",
    ]
    assert code_of(compressed)[1] == code_of(data)[1]
    assert comgr.unbundle(compressed, isas) == [code_of(data)[1]["gfx906"], b""]
    as_it_was = compress_bundle([data], version=2, level=3)
    with pytest.raises(RuntimeError, match="amd_comgr_do_action returned 1"):
        comgr.unbundle(as_it_was, isas)
    [bundle] = iter_bundles(memoryview(as_it_was), name="x")
    found = "LLVM 21 and later reject the entry 'host-x86_64-unknown-linux' in a compressed bundle"
    assert bundle.find_problems() == (f"x: bundle 0 at offset 0x0: {found}",)
    assert rewrite(memoryview(as_it_was), None, Storage(compress=True, level=3)) != as_it_was


@pytest.mark.parametrize("name", ["v16/saxpy.hipfb", "v19/saxpy.hipfb", "v22/saxpy.hipfb", "v23/saxpy.hipfb"])
@pytest.mark.parametrize("storage", [PLAIN, Storage(compress=True)], ids=["plain", "compressed"])
def test_comgr_finds_retargeted_code_under_the_new_target(fixture: Fixture, name: str, storage: Storage) -> None:
    comgr = load_later_comgr()
    [code] = find(comgr, rewrite(fixture(name), ADD, storage), "gfx1031")
    assert (comgr.isa_name(code), comgr.kernels(code)) == (f"{ISA}gfx1031", 1)
    assert len(code) == len(code_of(fixture(name))[1]["gfx1030"])


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("v16/vadd.cov3.hipfb", {3}),
        ("v16/saxpy.hipfb", {4}),
        ("v19/saxpy.hipfb", {5}),
        ("v22/saxpy.hipfb", {6}),
        ("v23/saxpy.hipfb", {6}),
    ],
)
def test_comgr_and_rocwheel_read_the_same_target_and_kernels(fixture: Fixture, name: str, versions: set[int]) -> None:
    comgr = load_later_comgr()
    found = set()
    for data in code_of(fixture(name))[1].values():
        code = read_code_object(memoryview(data), place=CodePlace(name))
        found.add(code.version)
        assert comgr.isa_name(data) == f"{ISA}{code.target}"
        assert comgr.kernels(data) == count_kernels(memoryview(data), code, place=CodePlace(name))
    assert found == versions


def test_comgr_from_debian_confuses_compressed_bundles_while_its_cache_is_on(fixture: Fixture, tmp_path: Path) -> None:
    comgr = load_later_comgr()
    caching = msgspec.structs.replace(comgr, cache=str(tmp_path))
    first, second = (bytes(fixture(name)) for name in ("v19/saxpy.ccob.hipfb", "edge/zlib.v2.ccob"))
    isas = [f"{ISA}gfx906"]
    right = [comgr.unbundle(data, isas) for data in (first, second)]
    assert right[0] != right[1]
    assert [caching.unbundle(data, isas) for data in (first, second)] == [right[0], right[0]]
