"""Files that are split together, and what becomes of each: values that those who write folders or wheels share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import TargetId
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import DEFAULT_LEVEL
from rocwheel.core.patch import FilePatch
from rocwheel.core.reading import FileRange
from rocwheel.device.splitting.planning.library import LibraryPlan
from rocwheel.device.splitting.planning.names import ARCHIVE_FOLDER
from rocwheel.targets.catalog.catalog import load_catalog, sort_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.device.splitting.planning.library import PlannedArchive

__all__ = ["DeviceFile", "HostFile", "LackingCode", "NamedFile", "SplitChoice", "SplitPlan"]


_NOTABLE = 1 << 20


class NamedFile(msgspec.Struct, frozen=True):
    """A file below a root: its path from there, with ``/``, and its bytes."""

    path: str
    content: FileRange
    shown: str = ""
    """What messages call it; its path from the root, if empty."""

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.shown or self.path


class SplitChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept, and how archives store it."""

    keep: tuple[TargetId, ...] = ()
    """The targets whose code is kept; all, if there are none."""
    scheme: Scheme = Scheme.ZSTD
    level: int = DEFAULT_LEVEL
    archives: str = ARCHIVE_FOLDER
    """The folder below the root that archives go to."""


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the host folder: as it is, or a library whose code goes into archives."""

    path: str
    content: FileRange
    library: LibraryPlan | None = None
    """Which archives its code goes to; none for a file that stays as it is."""
    patch: FilePatch | None = None
    """What makes the host file of it; none for a file that stays as it is."""
    remark: str = ""
    """Why device code stays in it; empty where none does."""

    @property
    def size(self) -> int:
        """Bytes of the host file."""
        return self.content.size if self.patch is None else self.patch.size

    @property
    def zeros(self) -> int:
        """How many bytes of zeros take the place of its code in the host file; 0 for less than a mebibyte."""
        if self.library is None:
            return 0
        left = self.library.fat.section.size - (self.content.size - self.size)
        return left if left >= _NOTABLE else 0


class DeviceFile(msgspec.Struct, frozen=True):
    """A file that goes to the folder of one target as it is: a kernel file, or an archive that was there."""

    path: str
    content: FileRange
    target: str


class LackingCode(msgspec.Struct, frozen=True):
    """A target whose code was to be kept, and the libraries without any code for it, by their paths."""

    target: str
    paths: tuple[str, ...]


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of all files; each is in one of the lists, which are in order of paths."""

    host: tuple[HostFile, ...]
    device: tuple[DeviceFile, ...]
    left_out: tuple[str, ...]
    """Kernel files for targets that are not kept."""
    lacking: tuple[LackingCode, ...] = ()
    """The libraries that have no code for a target to keep, by targets; those without any such are not listed."""

    def iter_archives(self) -> Iterator[PlannedArchive]:
        """Yield the archives to write, library by library."""
        for file in self.host:
            if file.library is not None:
                yield from file.library.archives

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that get files of their own, each once."""
        found = {*(file.target for file in self.device), *(archive.target for archive in self.iter_archives())}
        return tuple(sorted(found, key=sort_key))

    @property
    def packages(self) -> tuple[str, ...]:
        """The targets that device wheels are named for: a target may share the wheel of another one."""
        return tuple(sorted(set(map(load_catalog().package_of, self.targets)), key=sort_key))
