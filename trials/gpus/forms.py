"""Files with device code for the table: those of several compilers, and the forms that rocwheel makes of them."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.sequence import iter_entries
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import CodePlace, is_code_object, parse_target_id, read_code_object
from rocwheel.core.reading import FileRange
from rocwheel.device.edit_bundles import Prune
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.extract import extract_code
from rocwheel.device.make_bundle import make_bundle
from rocwheel.device.retarget import Retarget
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PLAIN = Storage()


def _fixture(name: str) -> Callable[[Path], object]:
    return lambda path: shutil.copy(FIXTURES / name, path)


def _stored(name: str, storage: Storage) -> Callable[[Path], object]:
    return lambda path: rewrite_device_code(FIXTURES / name, path, None, storage)


def _pruned(name: str, *targets: str) -> Callable[[Path], object]:
    edit = Prune(tuple(map(parse_target_id, targets)))
    return lambda path: rewrite_device_code(FIXTURES / name, path, edit, _PLAIN)


def _retargeted(name: str, *pairs: str) -> Callable[[Path], object]:
    edit = Retarget(tuple(pair for text in pairs for pair in parse_pairs(text)))
    return lambda path: rewrite_device_code(FIXTURES / name, path, edit, _PLAIN)


def _extracted(name: str, target: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        folder = path.with_name(f"{path.name}.parts")
        [code] = extract_code(FIXTURES / name, folder, [parse_target_id(target)])
        shutil.move(code.path, path)
        shutil.rmtree(folder)

    return make


def _bundled(name: str, *targets: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        folder = path.with_name(f"{path.name}.parts")
        codes = extract_code(FIXTURES / name, folder, [parse_target_id(target) for target in targets])
        make_bundle([path.parent / code.path for code in codes], path, _PLAIN)
        shutil.rmtree(folder)

    return make


FORMS: dict[str, Callable[[Path], object]] = {
    "clang 16": _fixture("v16/saxpy.hipfb"),
    "clang 16, code object version 2": _fixture("v16/vadd.cov2.hipfb"),
    "clang 16, code object version 3": _fixture("v16/vadd.cov3.hipfb"),
    "clang 18, compressed version 1": _fixture("v18/saxpy.ccob.hipfb"),
    "clang 19": _fixture("v19/saxpy.hipfb"),
    "clang 19, compressed version 2": _fixture("v19/saxpy.ccob.hipfb"),
    "clang 21, compressed version 2": _fixture("v21/saxpy.ccob.hipfb"),
    "clang 22": _fixture("v22/saxpy.hipfb"),
    "clang 22, compressed version 3": _fixture("v22/saxpy.ccob.hipfb"),
    "clang 23": _fixture("v23/saxpy.hipfb"),
    "clang 23, compressed version 3": _fixture("v23/saxpy.ccob.hipfb"),
    "gfx9 with its generic target": _fixture("hip/fam.gfx900.hipfb"),
    "gfx10-1 with its generic target": _fixture("hip/fam.gfx1010.hipfb"),
    "gfx10-3 with its generic target": _fixture("hip/fam.gfx1030.hipfb"),
    "gfx11 with its generic target": _fixture("hip/fam.gfx1100.hipfb"),
    "gfx12 with its generic target": _fixture("hip/fam.gfx1200.hipfb"),
    "only gfx9-generic": _pruned("hip/fam.gfx900.hipfb", "gfx9-generic"),
    "only gfx10-3-generic": _pruned("hip/fam.gfx1030.hipfb", "gfx10-3-generic"),
    "only gfx11-generic": _pruned("hip/fam.gfx1100.hipfb", "gfx11-generic"),
    "clang 16, retargeted": _retargeted("v16/saxpy.hipfb", "gfx1030=gfx1031,gfx1035"),
    "clang 22, retargeted to extended": _retargeted("v22/saxpy.hipfb", "gfx1030=extended"),
    "clang 16, compressed by rocwheel for 6.2": _stored("v16/saxpy.hipfb", Storage(compress=True, rocm="6.2")),
    "clang 22, compressed by rocwheel for 6.4": _stored("v22/saxpy.hipfb", Storage(compress=True, rocm="6.4")),
    "clang 22, compressed by rocwheel as version 3": _stored("v22/saxpy.hipfb", Storage(compress=True, version=3)),
    "clang 16, pruned": _pruned("v16/saxpy.hipfb", "gfx906", "gfx90a:xnack-"),
    "clang 22, pruned": _pruned("v22/saxpy.ccob.hipfb", "gfx942", "gfx1100"),
    "clang 16, the code object for gfx1030": _extracted("v16/saxpy.hipfb", "gfx1030"),
    "clang 16, the code object for gfx90a:xnack+": _extracted("v16/saxpy.hipfb", "gfx90a:xnack+"),
    "clang 22, the code object for gfx906": _extracted("v22/saxpy.hipfb", "gfx906"),
    "clang 16, code objects bundled again": _bundled("v16/saxpy.hipfb", "gfx906", "gfx1030", "gfx90a:xnack+"),
}
"""How each file of the table is made, by its name."""


def make_form(name: str, path: Path) -> Path:
    """Write the form called ``name`` to ``path``, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    FORMS[name](path)
    return path


def code_hashes(path: Path) -> dict[str, str]:
    """Return the target of each code object in a file, keyed by the SHA-256 of its content."""
    with FileRange.whole(path).view() as data:
        if is_code_object(data):
            target = read_code_object(data, place=CodePlace(str(path))).target
            return {hashlib.sha256(bytes(data)).hexdigest(): str(target)}
        return {digest: target for source in _sources(path) for digest, target in source}


def _sources(path: Path) -> Iterator[Iterator[tuple[str, str]]]:
    with FileRange.whole(path).view() as data:
        for source in iter_code_sources(data, name=str(path)):
            hashes: dict[int, tuple[str, hashlib._Hash]] = {}
            entries = sorted(
                (entry for entry in source.bundle.plain.device_entries if entry.size), key=lambda entry: entry.offset
            )
            for entry, piece in iter_entries(source.view, source.bundle, entries):
                hashes.setdefault(entry.offset, (str(entry.target), hashlib.sha256()))[1].update(bytes(piece))
            yield ((digest.hexdigest(), target) for target, digest in hashes.values())
