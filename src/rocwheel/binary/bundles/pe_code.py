"""Device code in files of Windows: ``.hip_fat``, found through the wrappers in ``.hipFatB``.

Names of sections are cut to 8 bytes in DLLs and programs; object files have them whole, as ELF files do. The pointer
of a wrapper stands in its place; base relocations only say that the loader has to correct it.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from rocwheel.binary.bundles.wrappers import POINTER_OFFSET, CodeSection, Wrapper, read_wrapper, wrapper_starts
from rocwheel.binary.elf.relocations import Pointer
from rocwheel.binary.pe.bytes import PeBytes
from rocwheel.binary.pe.object_file import ObjectFile, ObjectSection, find_targets, read_object_file
from rocwheel.binary.pe.sections import PeSection, open_image

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rocwheel.core.reading import Data

__all__ = [
    "BUNDLE_NAMES",
    "PE_MARKER_NAMES",
    "find_object_code",
    "find_pe_code",
    "find_pe_section",
    "pe_code_section",
]

BUNDLE_NAMES: Final = frozenset({".hip_fat", ".hip_fatbin"})
_WRAPPER_NAMES: Final = frozenset({".hipFatB", ".hipFatBinSegment"})
PE_MARKER_NAMES: Final = frozenset({".kpackrf", ".rocm_kpack_ref"})
"""What the section of markers is called: AMD's tool and ours write the first."""
_POINTER: Final = Struct("<Q")
_ELSEWHERE = -1
"""In the place of an offset in the section of device code: what leads into none, or another one."""


def find_pe_code(data: Data, *, name: str) -> tuple[CodeSection, tuple[Wrapper, ...]] | None:
    """Return the section of device code of a DLL or program, and its wrappers; none for a file without the former.

    Raises `PeError` for damaged files, and `DeviceCodeError` for wrappers of an unknown kind.
    """
    source = PeBytes(data, name)
    image = open_image(source)
    code = pe_code_section(image.sections)
    if code is None:
        return None
    holder = _last_named(image.sections, _WRAPPER_NAMES)
    starts = wrapper_starts(holder.loaded_size) if holder else range(0)
    offsets = [holder.offset + start for start in starts] if holder else []
    return _as_code_section(code), tuple(_wrapper(source, offset, image.header.image_base) for offset in offsets)


def find_object_code(data: Data, *, name: str) -> tuple[CodeSection, tuple[Wrapper, ...]] | None:
    """Return the section of device code of an object file of Windows, and its wrappers; none for a file without either.

    Pointers of wrappers are offsets in the section that they lead into. Raises as `find_pe_code` does.
    """
    source = PeBytes(data, name)
    file = read_object_file(source)
    by_name = {section.name: section for section in file.sections}
    code = next((by_name[one] for one in sorted(BUNDLE_NAMES) if one in by_name), None)
    if code is None:
        return None
    holder = next((by_name[one] for one in sorted(_WRAPPER_NAMES) if one in by_name), None)
    wrappers = _object_wrappers(source, file, holder, code) if holder else ()
    return CodeSection(code.name, 0, code.offset, code.size, not code.size), wrappers


def _object_wrappers(
    source: PeBytes, file: ObjectFile, holder: ObjectSection, code: ObjectSection
) -> tuple[Wrapper, ...]:
    starts = wrapper_starts(holder.size)
    leads = find_targets(source, file, holder, [start + POINTER_OFFSET for start in starts])
    targets = {at: target if section == code else _ELSEWHERE for at, (section, target) in leads.items()}
    return tuple(
        read_wrapper(source, holder.offset + start, Pointer(targets[start + POINTER_OFFSET], None)) for start in starts
    )


def find_pe_section(data: Data, names: Collection[str], *, name: str) -> CodeSection | None:
    """Return a section of one of ``names``, none where there is none or it has no bytes in the file."""
    section = _last_named(open_image(PeBytes(data, name)).sections, names)
    return _as_code_section(section) if section and section.file_size else None


def pe_code_section(sections: Iterable[PeSection]) -> PeSection | None:
    """Return the section that device code is in: the last of the name, if there are several."""
    return _last_named(sections, BUNDLE_NAMES)


def _last_named(sections: Iterable[PeSection], names: Collection[str]) -> PeSection | None:
    return next((section for section in reversed(tuple(sections)) if section.name in names), None)


def _as_code_section(section: PeSection) -> CodeSection:
    return CodeSection(section.name, section.address, section.offset, section.loaded_size, not section.file_size)


def _wrapper(source: PeBytes, offset: int, image_base: int) -> Wrapper:
    at = offset + POINTER_OFFSET
    (address,) = source.unpack(_POINTER, at, "a wrapper")
    return read_wrapper(source, offset, Pointer(address - image_base, at))
