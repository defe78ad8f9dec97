"""A reader of split libraries and their archives, written from the description of the formats alone.

It imports nothing of rocwheel: it stands in for AMD's runtime, whose rules of lookup it follows, in their old form (up
to 7.14) and in the new one, with the variables that replace paths, and for machines of several GPUs. MessagePack is
decoded here, too.
"""

from __future__ import annotations

import re
import struct
import sys
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pefile
from elftools.elf.elffile import ELFFile

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "ARCHIVE_NOT_FOUND",
    "ARCH_NOT_FOUND",
    "INVALID_IMAGE",
    "KERNEL_NOT_FOUND",
    "NOT_IMPLEMENTED",
    "Archive",
    "Unit",
    "load_on_machine",
    "load_unit",
    "units_of",
]

ARCHIVE_NOT_FOUND = "ARCHIVE_NOT_FOUND"
ARCH_NOT_FOUND = "ARCH_NOT_FOUND"
KERNEL_NOT_FOUND = "KERNEL_NOT_FOUND"
NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
INVALID_IMAGE = "hipErrorInvalidImage"

_MARKER_WINDOW = 64 << 10
_VARIABLES = ("ROCM_KPACK_PATH", "ROCM_KPACK_PATH_PREFIX")
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_INTEGERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


class _MessagePack:
    """Decodes one value after another; only what the format uses: maps, arrays, strings and integers."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def value(self) -> Any:
        lead = self._take(1)[0]
        if lead < 0x80 or lead >= 0xE0:
            return lead if lead < 0x80 else lead - 0x100
        if lead < 0x90:
            return self._map(lead & 0xF)
        if lead < 0xA0:
            return [self.value() for _ in range(lead & 0xF)]
        if lead < 0xC0:
            return self._take(lead & 0x1F).decode()
        return self._long_value(lead)

    def _long_value(self, lead: int) -> Any:
        """Return a value whose number, or whose size, follows its first byte; KeyError for one that is not used."""
        if lead in _CONSTANTS:
            return _CONSTANTS[lead]
        if lead in _INTEGERS:
            return self._number(_INTEGERS[lead])
        if lead in _STRINGS:
            return self._take(self._number(_STRINGS[lead])).decode()
        if lead in _ARRAYS:
            return [self.value() for _ in range(self._number(_ARRAYS[lead]))]
        return self._map(self._number(_MAPS[lead]))

    def _map(self, size: int) -> dict[Any, Any]:
        pairs = [(self.value(), self.value()) for _ in range(size)]
        assert len(dict(pairs)) == size, "a key comes twice"
        return dict(pairs)

    def _number(self, layout: str) -> int:
        return int(struct.unpack(layout, self._take(struct.calcsize(layout)))[0])

    def _take(self, size: int) -> bytes:
        taken = self.data[self.position : self.position + size]
        assert len(taken) == size, "MessagePack ends early"
        self.position += size
        return taken


class Unit(NamedTuple):
    """A wrapper: the key that is looked up, and where archives are."""

    key: str
    paths: tuple[str, ...]


def units_of(library: Path) -> list[Unit]:
    """Return the wrappers of a split library, of Linux or Windows; it must have only such wrappers."""
    with library.open("rb") as file:
        if file.read(2) == b"MZ":
            return _units_of_image(library)
        file.seek(0)
        elf: Any = ELFFile(file)
        wrappers, markers = (elf.get_section_by_name(name) for name in (".hipFatBinSegment", ".rocm_kpack_ref"))
        assert elf.get_section_by_name(".hip_fatbin")["sh_type"] == "SHT_NOBITS"
        addends = _relative_addends(elf)
        data, section = wrappers.data(), markers.data()
        # AMD's Python reader takes the whole section as one value.
        decoder = _MessagePack(section)
        decoder.value()
        assert decoder.position == len(section), "something follows the marker"
        return [_unit(data[at : at + 24], addends[wrappers["sh_addr"] + at + 8], markers, section)
                for at in range(0, len(data), 24)]  # fmt: skip


def _units_of_image(library: Path) -> list[Unit]:
    """Read as AMD's runtime does where the loader has placed the image: by addresses, not by places in the file."""
    image = pefile.PE(library)
    memory, base = image.get_memory_mapped_image(), image.OPTIONAL_HEADER.ImageBase
    sections = {section.Name.rstrip(b"\0"): section for section in image.sections}
    wrappers, marker, code = (sections[name] for name in (b".hipFatB", b".kpackrf", b".hip_fat"))
    start, stop = code.VirtualAddress, code.VirtualAddress + code.Misc_VirtualSize
    assert memory[start:stop] == bytes(stop - start), "device code is left in memory"
    _MessagePack(memory[marker.VirtualAddress :][: marker.Misc_VirtualSize]).value()
    units = []
    for at in range(wrappers.VirtualAddress, wrappers.VirtualAddress + wrappers.Misc_VirtualSize, 24):
        magic, version, pointer, index, rest = struct.unpack_from("<IIQII", memory, at)
        assert (magic, version, rest) == (0x4B504948, 1, 0)
        assert 0 <= pointer - base - marker.VirtualAddress < marker.Misc_VirtualSize, "a wrapper points elsewhere"
        found = _MessagePack(memory[pointer - base :][:_MARKER_WINDOW]).value()
        units.append(Unit(f"{found['kernel_name']}#{index}", tuple(found["kpack_search_paths"])))
    return units


def _relative_addends(elf: Any) -> dict[int, int]:
    tables = (section for section in elf.iter_sections() if section["sh_type"] == "SHT_RELA")
    relocations = chain.from_iterable(table.iter_relocations() for table in tables)
    return {r["r_offset"]: r["r_addend"] for r in relocations if r["r_info_type"] == 8}


def _unit(wrapper: bytes, pointer: int, markers: Any, section: bytes) -> Unit:
    magic, version, _, index, rest = struct.unpack("<IIQII", wrapper)
    assert (magic, version, rest) == (0x4B504948, 1, 0)
    start = pointer - markers["sh_addr"]
    assert 0 <= start < len(section), "a wrapper points outside of the markers"
    marker = _MessagePack(section[start : start + _MARKER_WINDOW]).value()
    assert marker["kpack_search_paths"]
    return Unit(f"{marker['kernel_name']}#{index}", tuple(marker["kpack_search_paths"]))


class Archive:
    """An archive, as a loader opens it."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        magic, version, offset = struct.unpack_from("<4sIQ", self.data)
        assert (magic, version) == (b"KPAK", 1)
        decoder = _MessagePack(self.data[offset:])
        self.toc = decoder.value()
        assert decoder.position == len(self.data) - offset, "something follows the table of contents"

    @property
    def targets(self) -> list[str]:
        """The targets that the archive lists."""
        return list(self.toc["gfx_arches"])

    def kernel(self, key: str, target: str) -> bytes | None:
        """Return a code object by its exact key."""
        entry = self.toc["toc"].get(key, {}).get(target)
        if entry is None:
            return None
        stored = self._stored(entry["ordinal"])
        code = zstd.decompress(stored) if self.toc["compression_scheme"] == "zstd-per-kernel" else stored
        assert len(code) == entry["original_size"] > 0
        return code

    def _stored(self, ordinal: int) -> bytes:
        if self.toc["compression_scheme"] == "none":
            blob = self.toc["blobs"][ordinal]
            return self.data[blob["offset"] : blob["offset"] + blob["size"]]
        position = self.toc["zstd_offset"]
        (frames,) = struct.unpack_from("<I", self.data, position)
        assert ordinal < frames <= 1 << 20
        position += 4
        for _ in range(ordinal):
            position += 4 + int(struct.unpack_from("<I", self.data, position)[0])
        (size,) = struct.unpack_from("<I", self.data, position)
        assert position + 4 + size <= self.toc["zstd_offset"] + self.toc["zstd_size"]
        return self.data[position + 4 : position + 4 + size]


def load_unit(
    library: Path, unit: Unit, targets: Sequence[str], *, old: bool, environ: Mapping[str, str] = _NO_VARIABLES
) -> bytes | str:
    """Return the code object that a runtime gets for the ``targets`` of a device, or the name of its error.

    ``targets`` are the native one with its features, then the generic ones. An ``old`` runtime takes nothing from later
    archives when the first one that lists a target has no code for the unit.
    """
    if environ.get("ROCM_KPACK_DISABLE", "0")[:1] not in {"", "0"}:
        return NOT_IMPLEMENTED
    archives = [Archive(file) for file in dict.fromkeys(_files(library, unit, targets, environ)) if file.is_file()]
    if not archives:
        return ARCHIVE_NOT_FOUND
    error = ARCH_NOT_FOUND
    for target in chain.from_iterable(map(_subsets, targets)):
        for archive in archives:
            if target not in archive.targets:
                continue
            code = archive.kernel(unit.key, target)
            if code is not None or old:
                return KERNEL_NOT_FOUND if code is None else code
            error = KERNEL_NOT_FOUND
    return error


def load_on_machine(library: Path, unit: Unit, devices: Sequence[Sequence[str]], *, old: bool) -> list[bytes | str]:
    """Return what each of a machine's ``devices``, given by their targets as for `load_unit`, gets of a unit.

    Later runtimes look the code up for each kind of device, and pass over one without an archive; any other error is
    that of all. ``old`` ones look it up once, for the targets of all devices in their order, and hand it to all: one
    that it isn't for can't load it, and so none does.
    """
    if not old:
        loaded = [load_unit(library, unit, targets, old=False) for targets in devices]
        return [INVALID_IMAGE] * len(devices) if KERNEL_NOT_FOUND in loaded else loaded
    code = load_unit(library, unit, list(chain.from_iterable(devices)), old=True)
    is_one_kind = len(set(map(tuple, devices))) == 1
    return [code if isinstance(code, str) or is_one_kind else INVALID_IMAGE] * len(devices)


def _files(library: Path, unit: Unit, targets: Sequence[str], environ: Mapping[str, str]) -> list[Path]:
    given, first = (list(map(Path, filter(None, environ.get(name, "").split(":")))) for name in _VARIABLES)
    return given or [
        *first,
        *(file for path in unit.paths for file in _expand(library.resolve().parent, path, targets)),
    ]


def _expand(folder: Path, path: str, targets: Sequence[str]) -> Iterator[Path]:
    for target in chain.from_iterable(map(_subsets, targets)):
        yield Path(folder, path.replace("@GFXARCH@", target, 1)).resolve()


def _subsets(target: str) -> list[str]:
    """Return a target with all of its features, with one of them, and bare, the most specific first."""
    processor, *features = re.split(":", target)
    sramecc = [feature for feature in features if feature.startswith("sramecc")]
    xnack = [feature for feature in features if feature.startswith("xnack")]
    return list(dict.fromkeys(":".join([processor, *chosen]) for chosen in (sramecc + xnack, sramecc, xnack, [])))
