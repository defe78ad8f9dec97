"""Device code of a real library: Debian's librocsparse0, 1.3 GB in 111 bundles for 7 targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.compressed import decompress_bundle
from rocwheel.binary.bundles.device_code import read_device_code
from rocwheel.binary.bundles.storage import Storage
from rocwheel.core.reading import FileRange, have_same_bytes
from rocwheel.device.device_facts import read_device_facts
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.inspection import summarize_targets
from tests.support.comgr import load_comgr
from tests.support.places import CACHE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def library() -> Path:
    """Return the library, or skip."""
    found = sorted(CACHE.glob("librocsparse0/usr/lib/*/librocsparse.so.0.1"))
    if not found:
        pytest.skip("no librocsparse0; scripts/fetch_device_code_corpus.sh gets it")
    return found[0]


def test_bundles_targets_and_kernels_are_counted(library: Path) -> None:
    with FileRange.whole(library).view() as data:
        facts = read_device_facts(data, name="librocsparse")
    assert facts is not None
    assert (facts.container, facts.wrappers, len(facts.bundles)) == ("fat binary", 111, 111)
    assert [(target.target, target.missing, target.kernels) for target in summarize_targets(facts)] == [
        ("gfx803", 0, 12591),
        ("gfx900:xnack-", 0, 12591),
        ("gfx906:xnack-", 0, 12591),
        ("gfx908:xnack-", 0, 12591),
        ("gfx90a:xnack+", 0, 12591),
        ("gfx90a:xnack-", 0, 12591),
        ("gfx1030", 0, 12591),
    ]


def test_a_compressed_library_has_the_same_bundles_in_a_tenth_of_the_space(library: Path, tmp_path: Path) -> None:
    small = tmp_path / "librocsparse.so"
    report = rewrite_device_code(library, small, None, Storage(compress=True, level=3), jobs=2)
    assert report.changed == 111
    assert report.size_after * 9 < report.size_before
    assert small.stat().st_size == library.stat().st_size
    assert small.stat().st_blocks * 512 < library.stat().st_size / 8
    with FileRange.whole(library).view() as old, FileRange.whole(small).view() as new:
        old_code, new_code = read_device_code(old, name="old"), read_device_code(new, name="new")
        assert old_code is not None
        assert new_code is not None
        assert have_same_bytes(new[: new_code.section[0]], old[: old_code.section[0]])
        old_view, new_view = old_code.view(old), new_code.view(new)
        for before, after in zip(old_code.iter_bundles(old), new_code.iter_bundles(new), strict=True):
            assert after.compressed is not None
            raw, warning = decompress_bundle(new_view[after.start :], after.compressed, place=after.place)
            whole = bytes(old_view[before.start : before.stop])
            # The host entry alone is spelled anew: 27 bytes instead of 25.
            old_host = bytes([25, *bytes(7)]) + b"host-x86_64-unknown-linux"
            new_host = bytes([27, *bytes(7)]) + b"host-x86_64-unknown-linux--"
            spelled = whole[: before.plain.header_size].replace(old_host, new_host)
            assert (bytes(raw) == spelled + whole[len(spelled) :], warning) == (True, None)


def test_comgr_agrees_on_every_code_object(library: Path) -> None:
    comgr = load_comgr()
    with FileRange.whole(library).view() as data:
        code = read_device_code(data, name="librocsparse")
        assert code is not None
        view = code.view(data)
        for bundle in code.iter_bundles(data):
            content = bytes(view[bundle.start : bundle.stop])
            for entry in bundle.plain.device_entries:
                isa = f"amdgcn-amd-amdhsa--{entry.target}"
                assert comgr.look_up(content, isa) == (entry.offset, entry.size)
                assert comgr.isa_name(content[entry.offset : entry.stop]) == isa
