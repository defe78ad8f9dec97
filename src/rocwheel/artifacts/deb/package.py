"""Reading Debian binary packages, deb(5): the control fields and the files of a package."""

from __future__ import annotations

import posixpath
import re
import tarfile
from contextlib import ExitStack, contextmanager
from email.parser import HeaderParser
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.artifacts.deb.gpu_field import GPU_FIELD
from rocwheel.artifacts.deb.machines import HEAD_SIZE
from rocwheel.artifacts.deb.parts import DebError, DebPart, data_errors, find_tar, open_tar, read_parts, require_format
from rocwheel.artifacts.deb.relations import Choice, parse_choices
from rocwheel.artifacts.model.artifact import PERMISSIONS, FileKind
from rocwheel.artifacts.model.paths import path_fault
from rocwheel.core.errors import read_error
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import open_unchanged
from rocwheel.distributions.tar.stream import tar_members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Deb", "DebContent", "DebControl", "DebError", "DebMember", "open_deb", "parse_control"]

_MAX_CONTROL = 1 << 20
_REBUILD = re.compile(r"\+b[0-9]+$")
"""What Debian appends to the version of packages that it builds again from the same source."""

_KINDS = {
    tarfile.REGTYPE: FileKind.FILE,
    tarfile.AREGTYPE: FileKind.FILE,
    tarfile.LNKTYPE: FileKind.FILE,
    tarfile.SYMTYPE: FileKind.SYMLINK,
    tarfile.DIRTYPE: FileKind.DIRECTORY,
}


class DebControl(msgspec.Struct, frozen=True):
    """What a package says about itself in its control file, deb-control(5), and in its shlibs file, deb-shlibs(5)."""

    package: str
    version: str
    architecture: str
    source: str = ""
    """The source package that it was built from."""
    source_version: str = ""
    """Without the suffix of a rebuild, so that it is the same for all packages of one build of a source."""
    maintainers: tuple[str, ...] = ()
    """The maintainer, and the original one where a distribution derived from Debian names both."""
    origin: str = ""
    """The distribution that it says it is from; Debian's own packages don't say it."""
    depends: tuple[Choice, ...] = ()
    """``Depends`` and ``Pre-Depends``."""
    provides: tuple[Choice, ...] = ()
    sonames: tuple[str, ...] = ()
    """The shared libraries that the package offers to others."""
    gpu_targets: str = ""
    """What `GPU_FIELD` says."""

    @property
    def upstream_version(self) -> str:
        """The version without epoch, Debian revision and repack suffix: ``5.2.3`` for ``1:5.2.3+dfsg-8``."""
        without_epoch = self.version.partition(":")[2] or self.version
        return without_epoch.rpartition("-")[0].partition("+")[0] or without_epoch.partition("+")[0]


class DebContent:
    """The bytes of a member, read forward."""

    def __init__(self, path: Path, part: str, file: IO[bytes]) -> None:
        self._path, self._part, self._file = path, part, file
        self.head = b""
        """The first bytes, as far as they were read: what tells the machine of a binary."""

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, none at the end; raises `DebError` when the data is corrupt or cut off."""
        with data_errors(self._path, self._part):
            piece = self._file.read(size)
        self.head += piece[: HEAD_SIZE - len(self.head)]
        return piece


class DebMember(msgspec.Struct, frozen=True):
    """One file, link or directory of a package; the bytes of a file can be read until the next member is asked for."""

    path: str
    """Relative to the root of the file system, without ``./``."""
    kind: FileKind
    mode: int
    """Permission bits only."""
    size: int
    link: str | None = None
    """The raw text of a symlink."""
    same_as: str | None = None
    """The path of the earlier member that this one is a hard link to; it has no bytes of its own then."""
    content: DebContent | None = None


class Deb:
    """An open package: its control fields, and its files as one forward pass."""

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
        """Read the members of ``data.tar`` in their order.

        Raises `DebError` for data that is cut off or corrupt, and for members that no package should hold: absolute
        paths, paths with ``..``, device nodes.
        """
        with open_tar(self.path, self._file, self._data, self._progress) as tar:
            for info in tar_members(tar):
                if path := _checked_path(self.path, info.name):
                    yield self._member(tar, info, path)

    def _member(self, tar: tarfile.TarFile, info: tarfile.TarInfo, path: str) -> DebMember:
        kind = _KINDS.get(info.type)
        if kind is None:
            raise DebError(self.path, f"{info.name} is a device node or pipe", expected="files, links and folders")
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
                        raise DebError(self.path, f"its {name} file has {count(info.size, 'byte')}", expected=expected)
                    texts[name] = file.read().decode("utf-8", "replace")
        if "control" not in texts:
            raise DebError(self.path, "holds no control file", expected="control in control.tar")
        return parse_control(self.path, texts["control"], texts.get("shlibs", ""))


@contextmanager
def open_deb(path: Path, *, progress: Progress = SILENT) -> Iterator[Deb]:
    """Open a package; ``progress`` advances by the bytes read from the file.

    Raises `DebError` when the file can't be read, is not an ar archive, is cut off, or lacks a member.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_unchanged(path))
        except OSError as e:
            raise read_error(path, e, kind=DebError) from e
        yield Deb(path, file, progress)


def parse_control(path: Path, text: str, shlibs: str = "") -> DebControl:
    """Read the control file of a package, and its shlibs file; raises `DebError` for one that lacks a needed field."""
    fields = HeaderParser().parsestr(text)
    missing = [name for name in ("Package", "Version", "Architecture") if not fields.get(name)]
    if missing:
        raise DebError(path, f"its control file lacks {', '.join(missing)}")
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
        depends=parse_choices(", ".join(filter(None, (fields.get("Pre-Depends"), fields.get("Depends"))))),
        provides=parse_choices(fields.get("Provides", "")),
        sonames=tuple(sorted(_sonames(shlibs))),
        gpu_targets=fields.get(GPU_FIELD, "").strip(),
    )


def _sonames(shlibs: str) -> set[str]:
    """Return the SONAMEs of lines ``[type:] library version dependencies``: ``libz.so.1`` or ``libdb-5.3.so``."""
    names: set[str] = set()
    for line in shlibs.split("\n"):
        fields = line.partition("#")[0].split()
        if fields and fields[0].endswith(":"):  # Such as udeb:, which says the same for Debian's installer.
            fields = fields[1:]
        if len(fields) > 1:
            names |= {f"{fields[0]}.so.{fields[1]}", f"{fields[0]}-{fields[1]}.so"}
    return names


def _checked_path(path: Path, name: str) -> str:
    """Return a member's path in plain form, empty for the root itself."""
    plain = name.removeprefix(".").removeprefix("/") if name.startswith("./") or name == "." else name
    plain = plain.removesuffix("/")
    if plain and (fault := path_fault(plain)):
        raise DebError(path, f"the path {name!r} {fault}", expected="paths inside the package")
    return plain
