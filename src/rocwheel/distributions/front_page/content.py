"""What the front page of an index says, as plain values."""

from __future__ import annotations

import msgspec

__all__ = [
    "FamilyOffer",
    "FrontPage",
    "Gpu",
    "GpuCard",
    "InstallLine",
    "KeptProject",
    "ListedFamily",
    "ListedFile",
    "ListedProject",
    "NamedPackage",
    "YankedPackage",
]


class Gpu(msgspec.Struct, frozen=True):
    """A GPU target, as those who know GPUs describe it."""

    target: str
    """The processor, such as ``gfx1100``."""
    kind: str = ""
    """``data-centre``, ``desktop``, ``integrated``, or empty when not known."""
    products: tuple[str, ...] = ()
    """The names that it is sold under."""
    others: tuple[str, ...] = ()
    """Generic processors whose code runs on it, and families that it is in, the smallest first."""


class InstallLine(msgspec.Struct, frozen=True):
    """Something to install for a GPU."""

    requirement: str
    """What pip and uv take, such as ``rocm[libraries,device-gfx1100]``: ASCII letters, digits, ``-[],.`` alone."""
    size: int
    """Bytes to download at most, with all that it requires from the index."""
    more: tuple[str, ...] = ()
    """Further extras that are not for single GPUs; one that some systems alone have names these: ``devel (Linux)``."""


class NamedPackage(msgspec.Struct, frozen=True):
    """A package that has code for a GPU."""

    project: str
    size: int
    """Of its largest file, in bytes."""


class YankedPackage(msgspec.Struct, frozen=True):
    """A package all of whose files are yanked, so that installers refuse what needs it."""

    project: str
    version: str
    reason: str = ""


class FamilyOffer(msgspec.Struct, frozen=True):
    """What the index of a family, below this one, has for a GPU."""

    family: str
    lines: tuple[InstallLine, ...]
    yanked: tuple[YankedPackage, ...] = ()


class GpuCard(msgspec.Struct, frozen=True):
    """What there is for a GPU."""

    gpu: Gpu
    lines: tuple[InstallLine, ...]
    packages: tuple[NamedPackage, ...]
    yanked: tuple[YankedPackage, ...] = ()
    """What would be in further lines, or be named, if it were not yanked."""
    families: tuple[FamilyOffer, ...] = ()
    """The indexes of families that have something of their own for it; their lines stand for those of this index."""
    systems: tuple[str, ...] = ()
    """The systems that packages with its code are for, such as ``Windows``; empty where the index is for one alone."""


class ListedFile(msgspec.Struct, frozen=True):
    """A file of a project."""

    name: str
    version: str
    size: int
    requires_python: str = ""
    yanked: str | None = None
    """The reason, empty for none; `None` for a file that is not yanked."""
    uploaded: str = ""
    """The day since when the index has it, such as ``2026-01-31``, in UTC; empty when not known."""


class ListedProject(msgspec.Struct, frozen=True):
    """A project: the version that installers take, and its files."""

    name: str
    version: str
    summary: str
    files: tuple[ListedFile, ...]
    """Those of the version, and all that are yanked."""
    others: tuple[str, ...] = ()
    """Other versions, the newest first."""
    targets: tuple[str, ...] = ()
    """The GPU targets that its files say they have code for."""

    @property
    def yanked(self) -> str | None:
        """The reason for which all files of the version are yanked, empty for none; `None` where some are not."""
        reasons = [file.yanked for file in self.files if file.version == self.version]
        return None if None in reasons else next(filter(None, reasons), "")

    @property
    def size(self) -> int:
        """Bytes of the largest file of the version."""
        return max((file.size for file in self.files if file.version == self.version), default=0)


class KeptProject(msgspec.Struct, frozen=True):
    """A project that is listed as an earlier page has it."""

    row: str
    """Markup."""


class ListedFamily(msgspec.Struct, frozen=True):
    """The index of a family, in a folder of its name below this one."""

    name: str
    """As the folder is called; any text."""
    project_count: int
    """0 where it is not known."""


class FrontPage(msgspec.Struct, frozen=True):
    """The whole page."""

    projects: tuple[ListedProject | KeptProject, ...]
    cards: tuple[GpuCard, ...]
    absent: tuple[Gpu, ...]
    """GPUs that people own and that nothing here is for."""
    file_count: int
    """Of all files in the index, those of other versions among them."""
    total_size: int
    """Their bytes."""
    url: str = ""
    """Where the index will be; empty when not known."""
    family: str = ""
    """Whose index it is, below that of all; empty for that one."""
    families: tuple[ListedFamily, ...] = ()
    """Whose indexes are below this one."""
