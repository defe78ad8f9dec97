"""Code that a compiler made of one source for several targets that run the same instructions."""

from __future__ import annotations

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.core.reading import join_data
from tests.support.places import FIXTURES

__all__ = ["bundle_for", "code_for"]

_ID = "hipv4-amdgcn-amd-amdhsa--"


def code_for(target: str) -> bytes:
    """Return the code for a target of the family of gfx1030."""
    data = memoryview((FIXTURES / "hip/fam.gfx1030.hipfb").read_bytes())
    [source] = iter_code_sources(data, name="fam")
    [entry] = [entry for entry in source.bundle.plain.device_entries if str(entry.target) == target]
    return bytes(source.view[entry.offset : entry.stop])


def bundle_for(*targets: str) -> bytes:
    """Return a plain bundle with the code for some targets."""
    parts = [BundlePart(_ID + target, (memoryview(code_for(target)),)) for target in targets]
    return join_data(write_offload_bundle([BundlePart("host-x86_64-unknown-linux--"), *parts]))
