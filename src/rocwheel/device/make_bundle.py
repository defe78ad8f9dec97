"""Creates a bundle from code objects, in the format that HIP's runtime loads from a file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import (
    CODE_ENTRY,
    HOST_ENTRY,
    RUNTIME_HEADER_LIMIT,
    BundlePart,
    ambiguous_targets,
    write_offload_bundle,
)
from rocwheel.binary.bundles.storage import choose_version
from rocwheel.binary.code_objects import CodePlace, TargetId, is_code_object, read_code_object
from rocwheel.binary.elf.header import EM_AMDGPU, ET_DYN, ElfBytes, read_header, read_segments
from rocwheel.binary.kind import is_bundle, is_elf64, is_kpack
from rocwheel.core.errors import InputError, write_error
from rocwheel.core.messages import count
from rocwheel.core.reading import Data, FileRange, iter_pieces
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.wheels.binaries import is_given_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.binary.bundles.storage import Storage

_OLDEST_VERSION = 4
"""The first code object version that records whether a feature is off or not set, and therefore the exact target."""
_EXPECTED = "a linked code object: a 64-bit, little-endian ELF file for AMDGPU and HSA"
_EXTRACT = "Extract code objects with 'rocwheel device extract', and specify the extracted files."


class MadeBundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that was written, with its sorted targets, its code object version, and sizes in bytes.

    ``version`` is the header version of the compressed bundle, or 0 for a plain bundle.
    """

    path: str
    targets: tuple[str, ...]
    code_object_version: int
    version: int
    size: int
    raw_size: int


class _Code(msgspec.Struct, frozen=True):
    path: Path
    data: Data
    target: TargetId
    version: int

    @property
    def part(self) -> BundlePart:
        return BundlePart(f"{CODE_ENTRY}{self.target}", (self.data,))


def make_bundle(paths: Sequence[Path], output: Path, storage: Storage) -> MadeBundle:
    """Write the code objects at ``paths`` as one bundle, sorted by target after an empty host entry.

    The output appears only when it is complete. Raises `InputError`, or `ProblemsError` with all problems, in these
    cases:

    * the output is one of ``paths``
    * a file isn't a linked code object
    * two files are for one target
    * the code object versions differ
    * `choose_version` raises an error
    * one target sets a feature that another target doesn't set, so runtimes would confuse the targets

    Raises `WorkError` if writing fails.
    """
    with ExitStack() as stack:
        raise_all("code objects", list(_overwritten(paths, output)))
        codes = map_collecting("code objects", lambda path: _read(path, stack), paths)
        raise_all("code objects", list(_conflicts(codes)))
        parts = [BundlePart(HOST_ENTRY), *sorted((code.part for code in codes), key=lambda part: part.spelling)]
        raw = list(write_offload_bundle(parts))
        raw_size = sum(map(len, raw))
        version = _version(raw, raw_size, output, storage)
        content: Sequence[Data] = raw
        if version:
            content = [memoryview(compress_bundle(raw, version=version, level=storage.level))]
        with atomic_file(output) as target:
            try:
                for piece in (piece for buffer in content for piece in iter_pieces(buffer)):
                    target.write(piece)
            except OSError as e:
                raise write_error(output, e) from e
    return MadeBundle(
        path=str(output),
        targets=tuple(str(part.target) for part in parts[1:]),
        code_object_version=codes[0].version,
        version=version,
        size=sum(map(len, content)),
        raw_size=raw_size,
    )


def _overwritten(paths: Sequence[Path], output: Path) -> Iterator[InputError]:
    for path in paths:
        if output.exists() and path.exists() and output.samefile(path):
            expected = "a file that isn't one of the code objects"
            yield InputError(
                output,
                f"is the same file as {path}, which goes into the bundle",
                expected=expected,
                remedy="Specify another output.",
            )


def _read(path: Path, stack: ExitStack) -> _Code:
    if path.is_dir():
        raise InputError(path, "is a folder", expected=_EXPECTED, remedy=_EXTRACT)
    data = stack.enter_context(FileRange.whole(path).view())
    if not is_code_object(data):
        raise _no_code_object(path, data)
    place = CodePlace(str(path))
    code = read_code_object(data, place=place)
    if code.version < _OLDEST_VERSION:
        found = f"a code object with version {code.version}, which doesn't record which features aren't set"
        raise InputError(path, found, expected=f"version {_OLDEST_VERSION} or later", remedy="Compile it again.")
    source = ElfBytes(data, str(path))
    header = read_header(source)
    if header.type != ET_DYN:
        raise InputError(path, "device code that isn't linked yet", expected=_EXPECTED, remedy="Link it with lld.")
    for segment in read_segments(source, header):
        source.require(segment.offset, segment.file_size, "a segment")
    if code.target is None:
        found = f"a code object whose flags {code.flags:#x} don't identify a processor"
        raise InputError(path, found, expected="a code object for a known processor")
    return _Code(path, data, code.target, code.version)


def _no_code_object(path: Path, data: Data) -> InputError:
    for is_kind, kind in ((is_bundle, "already a bundle"), (is_kpack, "a kpack archive")):
        if is_kind(data):
            return InputError(path, kind, expected=_EXPECTED, remedy=_EXTRACT)
    if is_given_wheel(path):
        return InputError(path, "a wheel", expected=_EXPECTED, remedy=_EXTRACT)
    if is_elf64(data):
        header = read_header(ElfBytes(data, str(path)))
        system = f" and OS ABI {header.osabi}" if header.machine == EM_AMDGPU else ""
        remedy = "" if header.machine == EM_AMDGPU else _EXTRACT
        found = f"an ELF file for machine {header.machine}{system}"
        return InputError(path, found, expected=_EXPECTED, remedy=remedy)
    return InputError(path, f"starts with {bytes(data[:8])!r}", expected=_EXPECTED)


def _conflicts(codes: Sequence[_Code]) -> Iterator[InputError]:
    first = codes[0]
    by_target: dict[TargetId, _Code] = {}
    for code in codes:
        other = by_target.setdefault(code.target, code)
        if other is not code:
            found = f"a code object for {code.target}, like {other.path}"
            yield InputError(code.path, found, expected="one code object for each target")
        if code.version != first.version:
            found = f"a code object with version {code.version}, but {first.path} has version {first.version}"
            remedy = "Compile all code objects with the same -mcode-object-version."
            yield InputError(code.path, found, expected="the same version throughout the bundle", remedy=remedy)
    for one, target in ambiguous_targets(tuple(by_target)):
        found = f"for {target}, but {by_target[one].path} is for {one}: one sets features that the other doesn't"
        yield InputError(
            by_target[target].path,
            found,
            expected="each feature to be set in all targets for a processor, or in no target",
        )


def _version(raw: Sequence[Data], raw_size: int, output: Path, storage: Storage) -> int:
    """Return the header version of the compressed bundle, or 0 for a plain bundle."""
    if storage.compress:
        return choose_version(raw_size, rocm=storage.rocm, wanted=storage.version, source=str(output))
    if len(raw[0]) > RUNTIME_HEADER_LIMIT:
        found = f"needs a header of {count(len(raw[0]), 'byte')}"
        expected = f"at most {RUNTIME_HEADER_LIMIT}, the part of a plain bundle that the runtime reads"
        raise InputError(output, found, expected=expected, remedy="Compress the bundle (--compress).")
    return 0
