"""Reads Debian binary packages (deb(5)), including their control fields, relations, and files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import re
import tarfile
import zlib
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from email.parser import HeaderParser
from itertools import zip_longest
from typing import IO, TYPE_CHECKING, Final, cast

import msgspec

from rocwheel.artifacts.artifact import PERMISSIONS, FileKind, path_fault
from rocwheel.binary.bundles.device_code import AR_HEADER_SIZE, parse_ar_header
from rocwheel.binary.kind import AR_MAGIC, is_elf
from rocwheel.core.compression import BOUND, CAUTION, BoundedStream, ExpansionError, most_unpacked, open_xz, zstd
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import count, first_of, quoted
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import open_unchanged
from rocwheel.targets.target_set import GPU_FIELD
from rocwheel.wheels.tar import TAR_ERRORS, SparseMemberError, open_tar_stream, tar_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from email.message import Message
    from pathlib import Path

    from rocwheel.core.progress import Progress
    from rocwheel.wheels.tar import BoundedTar


_OPENERS = cast(
    "dict[str, Callable[[IO[bytes]], IO[bytes]]]",
    {"": lambda file: file, ".gz": gzip.open, ".xz": open_xz, ".bz2": bz2.BZ2File, ".zst": zstd.ZstdFile},
)
_DATA_ERRORS = (*TAR_ERRORS, lzma.LZMAError, zlib.error, zstd.ZstdError, OSError)

_FORMAT = "debian-binary"
_FORMAT_LINE = re.compile(rb"2\.[0-9]+\n")
_LONGEST_FORMAT = 16
"""The maximum size of the member with the format version, in bytes."""
_MEMBERS = f"the members {_FORMAT}, control.tar, and data.tar"


class DebError(InputError):
    """A file is not a usable Debian binary package."""


class DebPart(msgspec.Struct, frozen=True):
    """A member of the ar archive."""

    name: str
    offset: int
    size: int


@contextmanager
def open_tar(path: Path, file: IO[bytes], part: DebPart, progress: Progress) -> Iterator[BoundedTar]:
    """Open the tar ``part`` of the package ``path`` for reading in one pass. ``file`` is the open package."""
    suffix = part.name.partition(".tar")[2]
    window = cast("IO[bytes]", io.BufferedReader(_Window(file, part, progress), 1 << 20))
    with data_errors(path, part.name):
        content = BoundedStream(_OPENERS[suffix](window), most_unpacked(part.size))
        with open_tar_stream(cast("IO[bytes]", content)) as tar:
            yield tar


@contextmanager
def data_errors(path: Path, part: str) -> Iterator[None]:
    """Convert errors of the codec or the tar reader to a `DebError` about ``part`` of a package."""
    try:
        yield
    except SparseMemberError as e:
        raise DebError(path, str(e), expected="complete files") from e
    except ExpansionError as e:
        raise DebError(path, f"{part} {e}", expected=BOUND, remedy=CAUTION) from e
    except _DATA_ERRORS as e:
        raise DebError(path, f"{part} is corrupt or truncated ({e})", remedy="Download the package again.") from e


class _Window(io.RawIOBase):
    """The bytes of an ar member as a file that can only be read forward."""

    def __init__(self, file: IO[bytes], part: DebPart, progress: Progress) -> None:
        super().__init__()
        self._file, self._position, self._left, self._progress = file, part.offset, part.size, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))[: self._left]
        self._file.seek(self._position)
        got: int = cast("io.BufferedReader", self._file).readinto(view)
        self._position += got
        self._left -= got
        self._progress.advance(got)
        return got


def read_parts(path: Path, file: IO[bytes]) -> Iterator[DebPart]:
    """Yield the members of the ar archive ``file``. Raises `DebError` if it is damaged or not an ar archive."""
    if file.read(len(AR_MAGIC)) != AR_MAGIC:
        raise DebError(path, "is not an ar archive", expected="a Debian package (.deb)")
    end = file.seek(0, io.SEEK_END)
    offset = len(AR_MAGIC)
    while offset < end:
        file.seek(offset)
        header = parse_ar_header(file.read(AR_HEADER_SIZE))
        if header is None:
            raise DebError(path, f"has a damaged ar header at byte {offset}", remedy="Download the package again.")
        name = header.name.decode("ascii", "replace").strip().rstrip("/")
        part = DebPart(name, offset + AR_HEADER_SIZE, header.size)
        if part.offset + part.size > end:
            raise DebError(
                path,
                f"is truncated in {part.name} ({count(end - part.offset, 'byte')} left)",
                expected=count(part.size, "byte"),
                remedy="Download the package again.",
            )
        yield part
        offset = part.offset + header.padded_size


def require_format(path: Path, file: IO[bytes], parts: Sequence[DebPart]) -> None:
    """Raise `DebError` unless the first part specifies format version 2. Any minor version is accepted (deb(5))."""
    first = parts[0] if parts else None
    if first is None or first.name != _FORMAT:
        raise DebError(path, f"begins with {first.name}" if first else "is empty", expected=_MEMBERS)
    file.seek(first.offset)
    version = file.read(min(first.size, _LONGEST_FORMAT))
    if not _FORMAT_LINE.match(version):
        found = f"has format {quoted(version.decode('ascii', 'replace'))}"
        raise DebError(path, found, expected="a version such as 2.0 (see deb(5))")


def find_tar(path: Path, parts: dict[str, DebPart], stem: str) -> DebPart:
    """Return a package's member named ``stem``, with any compression. Raises `DebError` if there is no such member."""
    for name, part in parts.items():
        if name.startswith(stem):
            if name.removeprefix(stem) in _OPENERS:
                return part
            raise DebError(
                path,
                f"{name} has an unknown compression format",
                expected=", ".join(stem + suffix for suffix in _OPENERS),
            )
    raise DebError(path, f"does not contain {stem}", expected=_MEMBERS)


HEAD_SIZE: Final = 20
"""The number of bytes at the start of an ELF file that identify its machine."""

_ARCHITECTURES: Final = {
    3: "i386",
    8: "mips64el",
    21: "ppc64el",
    22: "s390x",
    40: "armhf",
    62: "amd64",
    183: "arm64",
    243: "riscv64",
    258: "loong64",
}
"""The Debian architecture of each processor that packages are for. Other ELF machines are GPUs or virtual machines."""
_BESIDE: Final = {"amd64": "i386", "arm64": "armhf", "armel": "armhf", "x32": "amd64"}
"""Other architectures that a package may contain code for, because the same processors can run that code."""


def foreign_architecture(head: bytes, declared: str) -> str:
    """Return the architecture of an ELF file that begins with ``head`` if it doesn't match ``declared``.

    Returns an empty string for other files, for code that is not for a processor, or if ``declared`` is unknown.
    """
    if len(head) < HEAD_SIZE or not is_elf(head) or declared not in {*_ARCHITECTURES.values(), *_BESIDE}:
        return ""
    found = _ARCHITECTURES.get(int.from_bytes(head[18:20], "big" if head[5] == 2 else "little"), "")
    return "" if found in (declared, _BESIDE.get(declared)) else found


class ForeignCode:
    """Collects the files in a package that contain code for architectures other than the declared one."""

    def __init__(self, package: Path, declared: str) -> None:
        self._package, self._declared = package, declared
        self._files: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, path: str, head: bytes) -> None:
        """Check the first bytes of a file, and record the file if its architecture is wrong."""
        if architecture := foreign_architecture(head, self._declared):
            self._files[architecture].append(path)

    def problems(self, remedy: str) -> list[InputError]:
        """Return an error for each wrong architecture."""
        lead = f"is a package for {self._declared}, but contains code for"
        return [
            InputError(self._package, f"{lead} {architecture}: {first_of(paths)}", remedy=remedy)
            for architecture, paths in sorted(self._files.items())
        ]


_RELATION = re.compile(
    r"\s*([^\s(\[<:]+)(?::[A-Za-z0-9][A-Za-z0-9-]*)?(?=[\s(\[<]|\Z)\s*(?:\(\s*(<<|<=|=|>=|>>|<|>)\s*([^)\s]+)\s*\))?"
)
"""A package, optionally followed by a colon and an architecture, and optionally by an operator and a version."""
_ACCEPTED = {"<<": (-1,), "<=": (-1, 0), "<": (-1, 0), "=": (0,), ">=": (0, 1), ">": (0, 1), ">>": (1,)}
"""The comparison results that satisfy each operator. ``<`` and ``>`` are old names for ``<=`` and ``>=``."""

_Run = tuple[tuple[int, ...], tuple[int, str]]
"""Character ranks, and a number as its length and digits, because it might be too long for Python to convert."""
_NOTHING: _Run = ((0,), (0, ""))


class Relation(msgspec.Struct, frozen=True):
    """A package in a relation field, such as ``libc6 (>= 2.38)``."""

    package: str
    operator: str = ""
    """The comparison operator; empty if any version is acceptable."""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.package} ({self.operator} {self.version})" if self.operator else self.package

    def accepts(self, version: str) -> bool:
        """Return whether a version of the package satisfies the relation."""
        return not self.operator or compare_versions(version, self.version) in _ACCEPTED[self.operator]

    def is_met_by(self, package: str, version: str, provides: Iterable[Alternatives]) -> bool:
        """Return whether a package is the requested package or provides it.

        A package that is provided without a version doesn't satisfy a relation that specifies a version.
        """
        if package == self.package and self.accepts(version):
            return True
        offers = (offer for choice in provides for offer in choice.relations if offer.package == self.package)
        return any(not self.operator or (offer.operator == "=" and self.accepts(offer.version)) for offer in offers)


class Alternatives(msgspec.Struct, frozen=True):
    """An entry of a relation field, which lists alternative packages. One of them is sufficient."""

    relations: tuple[Relation, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.relations))

    def is_met_by(self, package: str, version: str, provides: Iterable[Alternatives]) -> bool:
        """Return whether a package is one of the alternatives or provides one of them."""
        return any(relation.is_met_by(package, version, provides) for relation in self.relations)

    @property
    def names(self) -> str:
        """The package names without versions."""
        return " | ".join(relation.package for relation in self.relations)


def parse_choices(field: str) -> tuple[Alternatives, ...]:
    """Parse a relation field, such as ``a (>= 1), b | c:any``. Text that is not a relation is skipped."""
    choices = (Alternatives(tuple(_relations(entry.split("|")))) for entry in field.split(","))
    return tuple(choice for choice in choices if choice.relations)


def _relations(texts: Iterable[str]) -> Iterable[Relation]:
    for text in texts:
        if match := _RELATION.match(text):
            yield Relation(match[1], match[2] or "", match[3] or "")


def compare_versions(one: str, other: str) -> int:
    """Return -1, 0, or 1 if ``one`` is lower than, equal to, or higher than ``other``, according to dpkg's rules.

    First, the epochs are compared as numbers, then the parts before the last hyphen, and then the parts after it.
    """
    for mine, its in zip(_version_parts(one), _version_parts(other), strict=True):
        if result := _compare_part(mine, its):
            return result
    return 0


def _version_parts(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    upstream, _, revision = (rest if colon else version).rpartition("-")
    return (epoch if colon else "0", upstream, revision) if upstream else (epoch if colon else "0", revision, "")


def _compare_part(one: str, other: str) -> int:
    """Compare runs of digits as numbers, and the text between them based on the rank of each character."""
    pairs = zip_longest(_runs(one), _runs(other), fillvalue=_NOTHING)
    return next(((mine > its) - (mine < its) for mine, its in pairs if mine != its), 0)


def _runs(part: str) -> list[_Run]:
    """Split a part such as ``1.2~a`` into pairs: the ranks of the non-digits, and the number that follows them."""
    found = re.findall(r"([^0-9]*)0*([0-9]*)", part)
    return [((*map(_rank, text), 0), (len(digits), digits)) for text, digits in found]


def _rank(character: str) -> int:
    """Return the rank of a character.

    A tilde sorts before the end of the text (0), and letters before other characters.
    """
    if character == "~":
        return -1
    return ord(character) if character.isascii() and character.isalpha() else ord(character) + 256


_MAX_CONTROL = 1 << 20
_REBUILD = re.compile(r"\+b[0-9]+$")
"""The suffix that Debian appends to a package's version when it rebuilds the package from the same source."""

_KINDS = {
    tarfile.REGTYPE: FileKind.FILE,
    tarfile.AREGTYPE: FileKind.FILE,
    tarfile.LNKTYPE: FileKind.FILE,
    tarfile.SYMTYPE: FileKind.SYMLINK,
    tarfile.DIRTYPE: FileKind.DIRECTORY,
}


class DebControl(msgspec.Struct, frozen=True):
    """The contents of a package's control file (deb-control(5)) and shlibs file (deb-shlibs(5))."""

    package: str
    version: str
    architecture: str
    source: str = ""
    """The name of the source package."""
    source_version: str = ""
    """The version without the rebuild suffix, so that it is the same for all packages from the same source build."""
    maintainers: tuple[str, ...] = ()
    """The maintainer, and the original maintainer if a Debian derivative lists both."""
    origin: str = ""
    """The distribution that the package claims to be from. Debian's own packages don't have this field."""
    depends: tuple[Alternatives, ...] = ()
    """The packages in ``Depends`` and ``Pre-Depends``."""
    provides: tuple[Alternatives, ...] = ()
    recommends: tuple[Alternatives, ...] = ()
    """The packages in ``Recommends`` and ``Suggests``."""
    sonames: tuple[str, ...] = ()
    """The shared libraries that the package provides."""
    gpu_targets: str = ""
    """The value of `GPU_FIELD`."""

    @property
    def name(self) -> str:
        """The package name."""
        return self.package

    @property
    def upstream_version(self) -> str:
        """The version without epoch, Debian revision, and repack suffix, such as ``5.2.3`` for ``1:5.2.3+dfsg-8``."""
        without_epoch = self.version.partition(":")[2] or self.version
        return without_epoch.rpartition("-")[0].partition("+")[0] or without_epoch.partition("+")[0]


class DebContent:
    """The bytes of a member, which can only be read forward."""

    def __init__(self, path: Path, part: str, file: IO[bytes]) -> None:
        self._path, self._part, self._file = path, part, file
        self.head = b""
        """The first bytes that were read, which identify the machine of a binary."""

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, or no bytes at the end.

        Raises `DebError` if the data is corrupt or truncated.
        """
        with data_errors(self._path, self._part):
            piece = self._file.read(size)
        self.head += piece[: HEAD_SIZE - len(self.head)]
        return piece


class DebMember(msgspec.Struct, frozen=True):
    """A file, link, or directory in a package. A file can be read until the next member is requested."""

    path: str
    """The path relative to the root of the file system, without a leading ``./``."""
    kind: FileKind
    mode: int
    """The permission bits."""
    size: int
    link: str | None = None
    """The raw target of a symlink."""
    same_as: str | None = None
    """For a hard link, the path of the earlier member with the same content. The hard link itself has no bytes."""
    content: DebContent | None = None


class Deb:
    """An open package, with its control fields and its files. The files can be read in one forward pass."""

    def __init__(self, path: Path, file: IO[bytes], progress: Progress) -> None:
        self.path = path
        self._file = file
        self._progress = progress
        found = tuple(read_parts(path, file))
        require_format(path, file, found)
        parts = {part.name: part for part in found}
        self._data = find_tar(path, parts, "data.tar")
        self.control = self._read_control(find_tar(path, parts, "control.tar"))

    def members(self) -> Iterator[DebMember]:
        """Read the members of ``data.tar`` in order.

        Raises `DebError` for truncated or corrupt data, and for members that a package should not contain: absolute
        paths, paths with ``..``, and device nodes.
        """
        with open_tar(self.path, self._file, self._data, self._progress) as tar:
            for info in tar_members(tar):
                if path := _checked_path(self.path, info.name):
                    yield self._member(tar, info, path)

    def _member(self, tar: tarfile.TarFile, info: tarfile.TarInfo, path: str) -> DebMember:
        kind = _KINDS.get(info.type)
        if kind is None:
            raise DebError(self.path, f"{info.name} is a device node or pipe", expected="files, links, and folders")
        if info.islnk():
            target = _checked_path(self.path, info.linkname)
            return DebMember(path, kind, info.mode & PERMISSIONS, 0, same_as=target)
        if kind is FileKind.SYMLINK:
            if not info.linkname:
                raise DebError(self.path, f"the link {info.name} has an empty target", expected="a path")
            return DebMember(path, kind, 0o777, 0, link=info.linkname)
        file = tar.extractfile(info)
        content = DebContent(self.path, self._data.name, file) if file else None
        return DebMember(path, kind, info.mode & PERMISSIONS, info.size, content=content)

    def _read_control(self, part: DebPart) -> DebControl:
        texts: dict[str, str] = {}
        with open_tar(self.path, self._file, part, self._progress) as tar:
            for info in tar.forward():
                name = posixpath.normpath(info.name)
                if name in ("control", "shlibs") and (file := tar.extractfile(info)):
                    if info.size > _MAX_CONTROL:
                        expected = f"at most {_MAX_CONTROL}"
                        raise DebError(
                            self.path, f"contains a {name} file with {count(info.size, 'byte')}", expected=expected
                        )
                    texts[name] = file.read().decode("utf-8", "replace")
        if "control" not in texts:
            raise DebError(self.path, "does not contain a control file", expected="a file named control in control.tar")
        return parse_control(self.path, texts["control"], texts.get("shlibs", ""))


@contextmanager
def open_deb(path: Path, *, progress: Progress = SILENT) -> Iterator[Deb]:
    """Open a package. ``progress`` advances by the number of bytes read from the file.

    Raises `DebError` if the file can't be read, is truncated, lacks a member, or is not an ar archive.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_unchanged(path))
        except OSError as e:
            raise read_error(path, e, kind=DebError) from e
        yield Deb(path, file, progress)


def parse_control(path: Path, text: str, shlibs: str = "") -> DebControl:
    """Parse the control and shlibs files of a package. Raises `DebError` if a required field is missing."""
    fields = HeaderParser().parsestr(text)
    missing = [name for name in ("Package", "Version", "Architecture") if not fields.get(name)]
    if missing:
        raise DebError(path, f"has a control file without {', '.join(missing)}")
    source, _, source_version = fields.get("Source", "").partition(" ")
    maintainers = (fields.get("Maintainer"), fields.get("Original-Maintainer"))
    return DebControl(
        package=fields["Package"],
        version=fields["Version"],
        architecture=fields["Architecture"],
        source=source or fields["Package"],
        source_version=source_version.strip("( )") or _REBUILD.sub("", fields["Version"]),
        maintainers=tuple(name for name in maintainers if name),
        origin=fields.get("Origin", "").strip(),
        depends=_read_choices(fields, "Pre-Depends", "Depends"),
        recommends=_read_choices(fields, "Recommends", "Suggests"),
        provides=parse_choices(fields.get("Provides", "")),
        sonames=tuple(sorted(_sonames(shlibs))),
        gpu_targets=fields.get(GPU_FIELD, "").strip(),
    )


def _read_choices(fields: Message, *names: str) -> tuple[Alternatives, ...]:
    return parse_choices(", ".join(filter(None, map(fields.get, names))))


def _sonames(shlibs: str) -> set[str]:
    """Return the SONAMEs from lines of the form ``[type:] library version dependencies``, such as ``libz.so.1``."""
    names: set[str] = set()
    for line in shlibs.split("\n"):
        fields = line.partition("#")[0].split()
        if fields and fields[0].endswith(
            ":"
        ):  # A line with a type, such as udeb:, has the same information for Debian's installer.
            fields = fields[1:]
        if len(fields) > 1:
            names |= {f"{fields[0]}.so.{fields[1]}", f"{fields[0]}-{fields[1]}.so"}
    return names


def _checked_path(path: Path, name: str) -> str:
    """Return a member's normalized path, which is empty for the root."""
    plain = name.removeprefix(".").removeprefix("/") if name.startswith("./") or name == "." else name
    plain = plain.removesuffix("/")
    if plain and (fault := path_fault(plain)):
        raise DebError(path, f"contains {name!r}, whose path {fault}", expected="paths inside the package")
    return plain
