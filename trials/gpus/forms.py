"""Files with device code for the table: those of several compilers, and the forms that rocwheel makes of them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
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
from tests.support.fat_libraries import build_fat_library
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.device.edit_bundles import BundleEdit

_PLAIN = Storage()
_LIBRARY = "v22/libtwo.plain.so"

_REGISTER = """
void **__hipRegisterFatBinary(const void *);
void __hipRegisterFunction(void **, const void *, const char *, const char *, int, ...);
extern struct { unsigned magic, version; const void *binary, *unused; } __hip_wrappers[];
static char handles[BUNDLES];
__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < BUNDLES; i++) {
        void **bundle = __hipRegisterFatBinary(&__hip_wrappers[i]), *none = 0;
        __hipRegisterFunction(bundle, &handles[i], KERNEL, KERNEL, -1, none, none, none, none, none);
    }
}
"""
"""What a compiler adds to a library with device code, for one kernel in each bundle."""


def _fixture(name: str) -> Callable[[Path], object]:
    return lambda path: shutil.copy(FIXTURES / name, path)


def _stored(name: str, storage: Storage) -> Callable[[Path], object]:
    return lambda path: rewrite_device_code(FIXTURES / name, path, None, storage)


def _pruned(name: str, *targets: str) -> Callable[[Path], object]:
    edit = Prune(tuple(map(parse_target_id, targets)))
    return lambda path: rewrite_device_code(FIXTURES / name, path, edit, _PLAIN)


def _retargeted(name: str, *pairs: str, storage: Storage = _PLAIN) -> Callable[[Path], object]:
    edit = Retarget(tuple(pair for text in pairs for pair in parse_pairs(text)))
    return lambda path: rewrite_device_code(FIXTURES / name, path, edit, storage)


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


_FAMILIES = {
    "gfx900": ("gfx900", "gfx906"),
    "gfx1010": ("gfx1010",),
    "gfx1030": ("gfx1030",),
    "gfx1100": ("gfx1100", "gfx1101", "gfx1102", "gfx1150", "gfx1151"),
    "gfx1200": ("gfx1200",),
}
OFFICIAL = tuple(name for names in _FAMILIES.values() for name in names)
"""Targets that packages of distributions have code for, and that the fixtures have."""
_WITH_SIMILAR = ("gfx900", "gfx1010", "gfx1030", "gfx1150", "gfx1200")
"""Those whose code other GPUs run."""


def _official(storage: Storage, *, extended: bool) -> Callable[[Path], object]:
    """Write a bundle with code for `OFFICIAL`, and with ``extended`` also for all GPUs that run the same code."""

    def make(path: Path) -> None:
        folder = path.with_name(f"{path.name}.parts")
        codes: list[Path] = []
        for family, names in _FAMILIES.items():
            targets = [parse_target_id(name) for name in names]
            found = extract_code(FIXTURES / f"hip/fam.{family}.hipfb", folder / family, targets)
            codes += [path.parent / code.path for code in found]
        make_bundle(codes, folder / "bundle", _PLAIN)
        pairs = [pair for name in _WITH_SIMILAR if extended for pair in parse_pairs(f"{name}=extended")]
        rewrite_device_code(folder / "bundle", path, Retarget(tuple(pairs)) if pairs else None, storage)
        shutil.rmtree(folder)

    return make


def _linked(kernel: str, *names: str, edit: BundleEdit | None = None) -> Callable[[Path], object]:
    """Link a library of bundles that contain ``kernel``; ``edit`` changes the last one."""

    def make(path: Path) -> None:
        last, source = path.with_name(f"{path.name}.last"), path.with_name(f"{path.name}.c")
        rewrite_device_code(FIXTURES / names[-1], last, edit, _PLAIN)
        bundles = [*((FIXTURES / name).read_bytes() for name in names[:-1]), last.read_bytes()]
        source.write_text(_REGISTER)
        options = [f'-DKERNEL="{kernel}"', f"-DBUNDLES={len(names)}", "-fPIC", "-x", "c", str(source)]
        build_fat_library(path, bundles, options=options)
        last.unlink()
        source.unlink()

    return make


def _split(name: str) -> Callable[[Path], Path]:
    """Split a library into a host part and archives, and put them together in one folder."""

    def make(path: Path) -> Path:
        folder = path.with_name(f"{path.name}.installed")
        _command("split", FIXTURES / name, "--output", path.with_name(f"{path.name}.split"))
        for part in path.with_name(f"{path.name}.split").iterdir():
            shutil.copytree(part, folder, dirs_exist_ok=True)
        return folder / Path(name).name

    return make


def _joined(name: str, *options: str) -> Callable[[Path], Path]:
    """Split a library, and join it again."""

    def make(path: Path) -> Path:
        split, joined = path.with_name(f"{path.name}.split"), path.with_name(f"{path.name}.joined")
        _command("split", FIXTURES / name, "--output", split)
        parts = sorted(part for part in split.iterdir() if part.name != "host")
        _command("join", split / "host", *parts, "--output", joined, *options)
        return joined / Path(name).name

    return make


def _command(*words: str | Path) -> None:
    command = [sys.executable, "-m", "rocwheel", "device", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)


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
    "official code, plain": _official(_PLAIN, extended=False),
    "official code retargeted, plain": _official(_PLAIN, extended=True),
    "official code retargeted, compressed version 2": _official(Storage(compress=True, rocm="6.4"), extended=True),
    "official code retargeted, compressed version 3": _official(Storage(compress=True, version=3), extended=True),
    "library of clang 16": _linked("saxpy", "v16/saxpy.hipfb"),
    "library of clang 16, two bundles": _linked(
        "saxpy", "v16/saxpy.hipfb", "v16/saxpy.hipfb", edit=Prune((parse_target_id("gfx1030"),))
    ),
    "library of clang 16, retargeted": _linked(
        "saxpy", "v16/saxpy.hipfb", edit=Retarget((*parse_pairs("gfx1030=gfx1031,gfx1035"),))
    ),
    "library of clang 18, compressed version 1": _fixture("v18/libtwo.ccob.so"),
    "library of clang 22": _fixture(_LIBRARY),
    "library of clang 22, compressed version 3": _fixture("v22/libtwo.ccob.so"),
    "library of clang 22, relocatable code": _fixture("v22/libtwo.rdc.so"),
    "library of clang 22, relocatable code, compressed": _fixture("v22/libtwo.rdcccob.so"),
    "library of clang 22, retargeted to extended, for 6.4": _retargeted(
        _LIBRARY, "gfx1030=extended", storage=Storage(compress=True, rocm="6.4")
    ),
    "library of clang 22, retargeted to extended, version 3": _retargeted(
        _LIBRARY, "gfx1030=extended", storage=Storage(compress=True, version=3)
    ),
    "library of clang 22, compressed by rocwheel for 6.4": _stored(_LIBRARY, Storage(compress=True, rocm="6.4")),
    "library of clang 22, pruned": _pruned(_LIBRARY, "gfx906", "gfx1030"),
    "library of clang 22, split, with its archives": _split(_LIBRARY),
    "library of clang 22, split and joined": _joined(_LIBRARY),
    "library of clang 22, split and joined compressed": _joined("v22/libtwo.ccob.so"),
    "library with generic targets": _linked("_Z5helloi", "hip/fam.gfx1030.hipfb", "hip/fam.gfx1030.hipfb"),
}
"""How each file of the table is made, by its name. A maker may return another path than the one that it is given."""

ORIGINAL_FORM, *EXTENDED_FORMS = (name for name in FORMS if name.startswith("official code"))
"""The file with code for `OFFICIAL`, and what `retarget` made of it."""
SHARED_FORMS = ("clang 16", *(name for name in FORMS if name.startswith("library")))
"""The forms for machines with several GPUs: a module, which is loaded for one GPU, and the libraries."""


def make_form(name: str, path: Path) -> Path:
    """Write the form called ``name`` to ``path`` or beside it, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.glob(f"{path.name}.*"):
        shutil.rmtree(old)
    made = FORMS[name](path)
    return made if isinstance(made, Path) else path


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
