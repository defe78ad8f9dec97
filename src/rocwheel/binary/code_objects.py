"""Reads code objects for AMD GPUs (https://llvm.org/docs/AMDGPUUsage.html): target IDs, headers, and machine numbers.

A target ID, such as ``gfx90a:sramecc+:xnack-``, consists of a processor and its feature settings. A feature without a
setting may be on or off. A bundle entry ID adds the offload kind and the triple:
``hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+``.

Sources: https://llvm.org/docs/AMDGPUUsage.html#target-id and https://clang.llvm.org/docs/ClangOffloadBundler.html

========  ====================================================================================
offset    field
========  ====================================================================================
7         OS ABI, 64 for HSA
8         ABI version: 0 to 4 for code object version 2 to 6
0x12      machine, 224
0x30      ``e_flags``: bits 0-7 processor, 8-9 xnack, 10-11 sramecc (0 unsupported, 1 any, 2 off,
          3 on), 24-31 generic version (version 6). Before version 4, bit 8 is xnack, 9 sramecc
========  ====================================================================================
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.elf.header import (
    E_MACHINE,
    EM_AMDGPU,
    HEADER_SIZE,
    PT_NOTE,
    SHT_NOTE,
    ElfBytes,
    ElfError,
    read_header,
    read_section_table,
    read_segments,
)
from rocwheel.binary.kind import ELF_MAGIC
from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from rocwheel.binary.elf.header import Header
    from rocwheel.core.reading import Data


class CodePlace(msgspec.Struct, frozen=True):
    """A position in a file: ``offset`` in bytes, and the number of the bundle at that offset, counting from 0."""

    name: str
    offset: int = 0
    bundle: int | None = None

    def __str__(self) -> str:
        if self.bundle is None:
            return f"{self.name}: offset {self.offset:#x}"
        return f"{self.name}: bundle {self.bundle} at offset {self.offset:#x}"


class DeviceCodeError(InputError):
    """An error for device code that can't be used; ``place`` is the code's position."""

    def __init__(self, place: CodePlace, found: str, *, expected: str = "", remedy: str = "") -> None:
        self.place = place
        super().__init__(str(place), found, expected=expected, remedy=remedy)

    @property
    def reason(self) -> str:
        """The problem and the expected value, for lists that already show the file and don't include a remedy."""
        return f"{self.found}, expected {self.expected}" if self.expected else self.found


class NoRoomError(DeviceCodeError):
    """An error for a valid bundle that is too large for the available space."""


class NotTrimmableError(DeviceCodeError):
    """An error for a valid file whose free space between device code can't be removed."""

    def __init__(self, place: CodePlace, found: str, *, expected: str) -> None:
        remedy = "Leave the file unchanged. In a wheel, the free space adds almost nothing to the size."
        super().__init__(place, found, expected=expected, remedy=remedy)


_MACHINE_NAME = re.compile(r"gfx[0-9a-f]+(-[a-z0-9]+)*|amdgcnspirv")


class GpuMachine(msgspec.Struct, frozen=True):
    """A processor, its machine number, and the features that its target IDs may set."""

    mach: int
    processor: str
    features: frozenset[str]
    any: frozenset[str] = frozenset()
    """The features that ``e_flags`` records as "any" in all code for the processor; no target ID may set them."""


class _Table(msgspec.Struct, frozen=True):
    machines: tuple[GpuMachine, ...]


@cache
def _load() -> tuple[GpuMachine, ...]:
    return read_table("rocwheel.binary", "machine.toml", _Table).machines


@cache
def _by_number() -> dict[int, GpuMachine]:
    return {machine.mach: machine for machine in _load()}


@cache
def _by_processor() -> dict[str, GpuMachine]:
    return {machine.processor: machine for machine in _load()}


def machine_of_number(mach: int) -> GpuMachine | None:
    """Return the machine for the low byte of ``e_flags``, or `None` for numbers that compilers don't use yet."""
    return _by_number().get(mach)


def machine_of(processor: str) -> GpuMachine | None:
    """Return the machine for a processor such as ``gfx90a``, or `None` for names that compilers don't know yet."""
    return _by_processor().get(processor)


def known_processors() -> tuple[str, ...]:
    """Return the names of all processors, including generic ones."""
    return tuple(_by_processor())


def find_illegal(target: TargetId) -> str | None:
    """Return why compilers reject a target (an unknown processor or an unsupported feature), or `None` if it is valid.

    An unknown processor is valid if its name has the correct form, because newer compilers know more processors.
    """
    if not _MACHINE_NAME.fullmatch(target.processor):
        return f"{target.processor!r} isn't a processor"
    machine = machine_of(target.processor)
    lacking = sorted(target.features.keys() - machine.features) if machine else []
    return f"{target.processor} doesn't have the feature {lacking[0]}" if lacking else None


FEATURES = ("sramecc", "xnack")
"""The features that a target ID may set, in canonical order."""

_PROCESSOR = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_GENERIC = re.compile(r"gfx([0-9]+(-[0-9]+)?)-generic")
_SPECIFIC = re.compile(r"gfx([0-9]+)([0-9a-f]{2})(-[a-z]+)?")
_FEATURE = re.compile(r"([a-z]+)([+-])")
DEVICE_KINDS = frozenset({"hip", "hipv4", "openmp", "hcc"})
"""The offload kinds for AMD GPU code."""


class TargetId(msgspec.Struct, frozen=True):
    """A processor and its feature settings; a feature that is ``None`` may be on or off.

    Targets have no defined order: bundles sort them alphabetically, and lists sort them in catalog order.
    """

    processor: str
    sramecc: bool | None = None
    xnack: bool | None = None

    @property
    def features(self) -> dict[str, bool]:
        """The settings of all features that have a setting, keyed by name, in canonical order."""
        settings = {"sramecc": self.sramecc, "xnack": self.xnack}
        return {name: setting for name, setting in settings.items() if setting is not None}

    @property
    def is_generic(self) -> bool:
        """Whether the processor represents a family, such as ``gfx10-3-generic``."""
        return self.processor.endswith("-generic")

    def __str__(self) -> str:
        return self.processor + "".join(f":{name}{'+' if setting else '-'}" for name, setting in self.features.items())


def parse_target_id(text: str, *, source: str = "target id") -> TargetId:
    """Parse a target ID such as ``gfx90a:sramecc+:xnack-``, with features in any order and without repetitions.

    Raises `InputError` about ``source`` for an empty or malformed processor, and for an unknown or repeated feature.
    """
    processor, *features = text.split(":")
    if not _PROCESSOR.fullmatch(processor):
        raise _bad_target(text, source, f"the processor {processor!r}")
    settings: dict[str, bool] = {}
    for feature in features:
        match = _FEATURE.fullmatch(feature)
        if match is None or match[1] not in FEATURES:
            raise _bad_target(text, source, f"the feature {feature!r}")
        if match[1] in settings:
            raise _bad_target(text, source, f"{match[1]}, which occurs twice")
        settings[match[1]] = match[2] == "+"
    return TargetId(processor, **settings)


def as_target_id(text: str) -> TargetId | None:
    """Return the result of `parse_target_id`, or `None` for text that it rejects."""
    try:
        return parse_target_id(text)
    except InputError:
        return None


def processor_of(text: str) -> str:
    """Return the processor of a target ID, such as ``gfx90a`` for ``gfx90a:xnack-``, without checking the text."""
    return text.partition(":")[0]


def retargeted_triple(triple: str, old: TargetId, new: TargetId) -> str:
    """Convert a triple that belongs to code for ``old`` to the triple that belongs to code for ``new``.

    LLVM 24 includes the processor in the architecture: ``amdgpu10.30-amd-amdhsa-unknown`` for gfx1030,
    ``amdgpu10.3-amd-amdhsa-unknown`` for gfx10-3-generic. See https://github.com/llvm/llvm-project/pull/206480. Triples
    from earlier versions, and triples for the family of both targets, stay the same.
    """
    architecture, dash, rest = triple.partition("-")
    if architecture != f"amdgpu{_version_of(old)}":
        return triple
    return f"amdgpu{_version_of(new)}{dash}{rest}"


def _version_of(target: TargetId) -> str:
    if match := _GENERIC.fullmatch(target.processor):
        return match[1].replace("-", ".")
    match = _SPECIFIC.fullmatch(target.processor)
    return f"{match[1]}.{match[2]}" if match else target.processor


def _bad_target(text: str, source: str, part: str) -> InputError:
    return InputError(
        source,
        f"{text!r} isn't a target ID because of {part}",
        expected="a processor and at most one setting each for sramecc and xnack, such as gfx90a:sramecc+:xnack-",
    )


class BundleEntryId(msgspec.Struct, frozen=True):
    """The ID of a bundle entry: ``kind-arch-vendor-os-environment-target``, split at the first five dashes.

    The environment is empty for amdhsa. The host entry has no target.
    """

    kind: str
    triple: str
    target: TargetId | None

    @classmethod
    def parse(cls, text: str, *, source: str = "bundle entry id") -> BundleEntryId:
        """Parse an entry ID from any compiler; raise `InputError` about ``source`` if the text isn't an entry ID.

        Never split from the right: generic processors contain dashes, and ``xnack-`` ends with a dash.
        """
        kind, _, rest = text.partition("-")
        if kind == "host" and rest:
            return cls(kind, rest.rstrip("-"), None)
        fields = rest.split("-", 4)
        if kind not in DEVICE_KINDS or len(fields) < 5:
            raise InputError(
                source,
                f"{text!r} isn't a bundle entry ID",
                expected="host-TRIPLE or KIND-ARCH-VENDOR-OS-ENVIRONMENT-TARGET, where KIND is hip, hipv4, or openmp",
            )
        return cls(kind, "-".join(fields[:4]), parse_target_id(fields[4], source=source))

    @property
    def is_host(self) -> bool:
        """Whether this is the (empty) host entry."""
        return self.kind == "host"

    def retargeted(self, new: TargetId) -> BundleEntryId:
        """Return the ID that the same code would have if it were built for the target ``new``."""
        triple = retargeted_triple(self.triple, self.target, new) if self.target else self.triple
        return BundleEntryId(self.kind, triple, new)

    def __str__(self) -> str:
        if self.target is None:
            return f"{self.kind}-{self.triple}"
        return f"{self.kind}-{self.triple}-{self.target}"


_IDENTIFICATION = ELF_MAGIC + b"\x02"
_ABI_AT, _ABI_HSA = 7, 64
_ABI_VERSION_AT = 8
_MACHINE = EM_AMDGPU.to_bytes(2, "little")
_MACH = 0xFF
_FLAGS_AT = 0x30
_XNACK_SHIFT = 8
_SRAMECC_SHIFT = 10
_SETTINGS = {1: None, 2: False, 3: True}
_GENERIC_SHIFT = 24
_FEATURES_OF_VERSION_4 = 2
_KNOWN_ABI_VERSIONS = 5
FIRST_WITH_OPEN_FEATURES = 4
"""The first code object version whose flags can leave features unset. In earlier versions, features are on or off."""
_MOST_OVERLAP = 2
"""The limit on the total size of the notes, as a multiple of the file size.

Segments may be parts of other segments, but in a damaged file, thousands of segments might contain the same notes.
"""


class CodeObject(msgspec.Struct, frozen=True):
    """Values from the ELF header of a code object."""

    target: TargetId | None
    """The target from ``e_flags``, or `None` if the flags don't specify a known processor."""
    flags: int
    abi_version: int
    notes: tuple[tuple[int, int], ...]
    """The offset and size in bytes of each note segment, or of each note section in a relocatable code object."""

    @property
    def version(self) -> int:
        """The code object version, as in the compiler option ``-mcode-object-version``."""
        return self.abi_version + 2


def is_code_object(data: Data) -> bool:
    """Return whether ``data`` starts with a 64-bit ELF header for AMDGPU and HSA, using the runtime's rule."""
    head = bytes(data[:HEADER_SIZE])
    return (
        len(head) == HEADER_SIZE
        and head.startswith(_IDENTIFICATION)
        and head[_ABI_AT] == _ABI_HSA
        and head.startswith(_MACHINE, E_MACHINE)
    )


def read_code_object(data: Data, *, place: CodePlace) -> CodeObject:
    """Read the ELF header and find the notes of the code object in ``data``.

    Raises `DeviceCodeError` if ``data`` isn't a code object. Raises `ElfError` if headers and notes overlap or extend
    past the end of the file.
    """
    if not is_code_object(data):
        raise DeviceCodeError(
            place, f"starts with {bytes(data[:20])!r}", expected="a code object (an ELF file for AMDGPU and HSA)"
        )
    source = ElfBytes(data, str(place))
    header = read_header(source)
    if header.abi_version >= _KNOWN_ABI_VERSIONS:
        raise DeviceCodeError(place, f"a code object with ABI version {header.abi_version}", expected="0 to 4")
    target = _decode_flags(header.flags, header.abi_version)
    return CodeObject(target, header.flags, header.abi_version, _find_notes(source, header))


def header_processor(head: bytes) -> str | None:
    """Return a code object's processor, using only the beginning of the file.

    Returns `None` for other files, and if the header specifies an unknown processor.
    """
    if not is_code_object(memoryview(head)):
        return None
    machine = machine_of_number(int.from_bytes(head[_FLAGS_AT : _FLAGS_AT + 4], "little") & _MACH)
    return machine.processor if machine else None


class LoadedHeader(NamedTuple):
    """The fields that a runtime reads from the ELF header when it loads a code object."""

    version: int
    target: TargetId | None
    """The target, or `None` if the flags don't specify a known processor."""


def read_loaded_header(head: bytes) -> LoadedHeader | None:
    """Return the fields that a runtime reads from the header of a code object, or `None` for other files.

    Before version 4, every feature is on or off: a feature without a flag is off. In version 2, the XNACK flag is in a
    bit that later versions use for the processor, and SRAMECC has no flag.
    """
    if not is_code_object(memoryview(head)):
        return None
    flags, abi_version = int.from_bytes(head[_FLAGS_AT : _FLAGS_AT + 4], "little"), head[_ABI_VERSION_AT]
    target, machine = _decode_flags(flags, abi_version), machine_of_number(flags & _MACH)
    if abi_version < _FEATURES_OF_VERSION_4 and machine is not None:
        is_old = abi_version == 0
        settings = {"sramecc": not is_old and bool(flags & 0x200), "xnack": bool(flags & (1 if is_old else 0x100))}
        target = TargetId(machine.processor, **{name: settings[name] for name in settings if name in machine.features})
    return LoadedHeader(abi_version + 2, target)


def _decode_flags(flags: int, abi_version: int) -> TargetId | None:
    machine = machine_of_number(flags & _MACH)
    if machine is None:
        return None
    if abi_version >= _FEATURES_OF_VERSION_4:
        sramecc = _SETTINGS.get(flags >> _SRAMECC_SHIFT & 3)
        return TargetId(machine.processor, sramecc=sramecc, xnack=_SETTINGS.get(flags >> _XNACK_SHIFT & 3))
    return TargetId(machine.processor, sramecc=True if flags & 0x200 else None, xnack=True if flags & 0x100 else None)


def encode_flags(target: TargetId, *, place: CodePlace) -> int:
    """Return the ``e_flags`` that compilers write for ``target`` in code object version 4 and later.

    Raises `DeviceCodeError` for an unknown processor, and for a feature that the processor doesn't have.
    """
    machine = machine_of(target.processor)
    if machine is None:
        raise DeviceCodeError(place, f"no machine number is known for {target.processor!r}")
    if unsupported := sorted(set(target.features) - machine.features):
        raise DeviceCodeError(place, f"{target.processor} doesn't have the feature {unsupported[0]}")
    flags = machine.mach | target.is_generic << _GENERIC_SHIFT
    for feature, shift in (("xnack", _XNACK_SHIFT), ("sramecc", _SRAMECC_SHIFT)):
        if feature in machine.features | machine.any:
            flags |= {None: 1, False: 2, True: 3}[target.features.get(feature)] << shift
    return flags


def _find_notes(source: ElfBytes, header: Header) -> tuple[tuple[int, int], ...]:
    """Return the offset and size of every note segment, or of every note section if there are no program headers."""
    segments = read_segments(source, header)
    notes = [(segment.offset, segment.file_size) for segment in segments if segment.type == PT_NOTE]
    if not segments:
        sections = read_section_table(source, header)
        notes = [(section.offset, section.size) for section in sections if section.type == SHT_NOTE]
    for offset, size in notes:
        source.require(offset, size, "its notes")
    if sum(size for _, size in notes) > _MOST_OVERLAP * source.size:
        raise ElfError(
            source.name,
            f"notes that total more than {_MOST_OVERLAP * source.size} bytes",
            expected="notes that don't overlap",
        )
    return tuple(notes)
