"""AMD's comgr finds the code that was kept, and none that was removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.bundle_edit import Storage, device_patch
from rocwheel.binary.bundle_sequence import iter_bundles
from rocwheel.binary.target_id import parse_target_id
from rocwheel.targets.pruning import Prune
from tests.binary.comgr import load_comgr

if TYPE_CHECKING:
    from tests.binary.conftest import Fixture


def test_kept_code_is_found_and_removed_code_is_not(fixture: Fixture) -> None:
    name = "v16/saxpy.hipfb"  # Debian's comgr knows code objects up to version 4
    keep = ("gfx906", "gfx90a:xnack-")
    patch = device_patch(fixture(name), name=name, edit=Prune(tuple(map(parse_target_id, keep))), storage=Storage())
    assert patch is not None
    pruned = b"".join(patch.apply(fixture(name), 0, patch.size))
    [bundle] = iter_bundles(memoryview(pruned), name="pruned")
    entries = {str(entry.target): entry for entry in bundle.plain.device_entries}
    assert set(entries) == set(keep)
    comgr = load_comgr()
    for target, entry in entries.items():
        isa = f"amdgcn-amd-amdhsa--{target}"
        assert comgr.look_up(pruned, isa) == (entry.offset, entry.size)
        assert comgr.isa_name(pruned[entry.offset : entry.stop]) == isa
    for target in ("gfx1030", "gfx90a:xnack+"):
        assert comgr.look_up(pruned, f"amdgcn-amd-amdhsa--{target}") == (0, 0)
