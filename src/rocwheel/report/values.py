"""The contents of a report as plain values, for the JSON and the page. All sizes are in bytes."""

from __future__ import annotations

import enum

import msgspec

from rocwheel.targets.target_set import text_sort_key


class Copy(msgspec.Struct, frozen=True):
    """A file in a package. ``package`` is an index in the list of packages."""

    package: int
    path: str


class Copies(msgspec.Struct, frozen=True):
    """Files with the same contents. ``wasted`` is the size of one copy in each package except the first."""

    size: int
    wasted: int
    files: tuple[Copy, ...]


HOST = ""
"""The target for everything that isn't code for a GPU."""


def part_sort_key(target: str) -> tuple[bool, tuple[tuple[int, int, int, str], str]]:
    """Return the sort key for targets of parts: `HOST` first, and then the numbers of the processors."""
    return target != HOST, text_sort_key(target)


class Kind(str, enum.Enum):
    """The kind of a package."""

    WHEEL = "wheel"
    SDIST = "sdist"
    INSTALLED = "installed"
    ARTIFACT = "artifact"
    FILES = "files"
    UNREADABLE = "unreadable"


class Part(msgspec.Struct, frozen=True):
    """The bytes of a file for one GPU target, or for `HOST`."""

    target: str
    size: int
    packed: int | None = None
    """The share of the file's packed size, in proportion to ``size``, because wheels aren't compressed by target."""


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A file."""

    package: int
    """The index of the file's package in the list of packages."""
    component: str
    path: str
    size: int
    """The unpacked size, or 0 if the file is only another name for a file that was already counted."""
    packed: int | None = None
    """The size in the wheel, or `None` if the file isn't packed."""
    parts: tuple[Part, ...] = ()
    """The parts for each target, whose sizes add up to the file's size.

    Empty for a file that contains only host code.
    """
    link: str | None = None
    """The target of a symlink."""
    same_as: str = ""
    """The path of the file that this file is a hard link to."""
    problem: str = ""
    """The reason that the file couldn't be read."""


class PackageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel, an sdist, an installed distribution, an artifact, or files without a package."""

    label: str
    """The name of the package, or the name of the file if several packages have the same name."""
    kind: Kind
    source: str
    version: str = ""
    files: int = 0
    size: int = 0
    """The total size of the package's files."""
    packed: int | None = None
    """The size of the wheel or sdist, or `None` if the package isn't packed."""
    rest: int | None = None
    """The part of ``packed`` that belongs to no file: the headers and directory of a wheel, or all of an sdist."""
    targets: tuple[str, ...] = ()
    """The GPU targets of the code in the package's files."""
    problem: str = ""
    """The reason that the package couldn't be read."""


class Totals(msgspec.Struct, frozen=True):
    """The totals. ``packed`` is `None` if nothing is packed."""

    packages: int = 0
    files: int = 0
    size: int = 0
    packed: int | None = None
    targets: tuple[str, ...] = ()
    unreadable: int = 0


class Load(msgspec.Struct, frozen=True):
    """A library that a file loads: the requested name, and the file that the loader finds.

    ``path`` and ``package`` are empty for a system library. ``package`` is empty for a file without a distribution.
    """

    name: str
    path: str = ""
    package: str = ""
    is_missing: bool = False


class Loading(msgspec.Struct, frozen=True):
    """A library or program, and its direct dependencies, in order."""

    path: str
    package: str
    is_library: bool
    loads: tuple[Load, ...]


class FoundFault(msgspec.Struct, frozen=True):
    """A finding of the audit. ``path`` is empty for a finding about an entire package."""

    rule: str
    severity: str
    package: str
    path: str
    found: str
    remedy: str


class LostCode(msgspec.Struct, frozen=True):
    """Targets for which a library's archives or kernel folder have no code, even though the library supports them."""

    path: str
    package: str
    targets: tuple[str, ...]


class Graph(msgspec.Struct, frozen=True):
    """The files with the libraries that they load, and the audit's findings."""

    files: tuple[Loading, ...] = ()
    findings: tuple[FoundFault, ...] = ()
    problem: str = ""
    """The reason that there is no graph."""
    lost: tuple[LostCode, ...] = ()


class SizeChange(str, enum.Enum):
    """The change in the size of an item."""

    CAME = "came"
    GREW = "grew"
    SAME = "same"
    SHRANK = "shrank"
    WENT = "went"


class PackageGrowth(msgspec.Struct, frozen=True):
    """The size change of a package. For a state without the package, values are 0 or `None`."""

    label: str
    fate: SizeChange
    old_size: int
    size: int
    old_packed: int | None
    packed: int | None


class FileGrowth(msgspec.Struct, frozen=True):
    """The size change of a file. The path is empty for a state without the file."""

    package: str
    fate: SizeChange
    old_path: str
    path: str
    old_size: int
    size: int
    old_packed: int | None
    packed: int | None


class TargetGrowth(msgspec.Struct, frozen=True):
    """The size change of the code for a GPU target. Sizes are 0 if there is no code."""

    target: str
    old_size: int
    size: int


class Against(msgspec.Struct, frozen=True):
    """The size differences from an older state. Items without a difference are omitted."""

    path: str
    totals: Totals = Totals()
    """The totals of the older state."""
    packages: tuple[PackageGrowth, ...] = ()
    files: tuple[FileGrowth, ...] = ()
    """The files, largest differences first."""
    targets: tuple[TargetGrowth, ...] = ()
    problem: str = ""
    """The reason that the older state can't be read. In this case, all other fields are empty."""


class Code(str, enum.Enum):
    """The kind of code that a library contains for a GPU, from best to worst."""

    EXACT = "exact"
    PARTLY = "partly"
    """Code for only some of the GPU's feature settings (XNACK, SRAMECC)."""
    GENERIC = "generic"
    SPIRV = "spirv"
    MISSING = "missing"


class MatrixRow(msgspec.Struct, frozen=True):
    """A library, or the files of a kernel library. Several packages may contain these files."""

    library: str
    """The path of the library, or of the folder of kernel files, with a star instead of a target."""
    packages: tuple[str, ...]
    targets: tuple[str, ...]
    """The targets of the library's code, in the notation that the library uses."""
    codes: tuple[Code, ...]
    """The code for each GPU in the matrix."""


class Matrix(msgspec.Struct, frozen=True):
    """All libraries with device code, and all GPUs for which at least one of them has code."""

    gpus: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


class Action(str, enum.Enum):
    """An action on device code."""

    COMPRESS = "compress"
    SPLIT = "split"
    PRUNE = "prune"


class Saving(msgspec.Struct, frozen=True):
    """The sizes before and after an action. If there is a target, the action is for that GPU.

    The sizes before the action are always the totals of the report. Packed sizes are the total sizes of all wheels and
    sdists, or `None` if nothing is packed.
    """

    action: Action
    target: str
    size: int
    size_after: int
    packed: int | None
    packed_after: int | None


class Savings(msgspec.Struct, frozen=True):
    """The possible savings.

    To determine the savings, ``measured`` bytes of the ``of`` bytes in bundles were compressed.
    """

    is_estimated: bool
    measured: int
    of: int
    rows: tuple[Saving, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The complete contents of a report."""

    paths: tuple[str, ...]
    totals: Totals
    packages: tuple[PackageFacts, ...]
    files: tuple[FileFacts, ...]
    matrix: Matrix
    duplicates: tuple[Copies, ...] = ()
    graph: Graph = Graph()
    savings: Savings | None = None
    """The possible savings, or `None` if there is no device code."""
    against: Against | None = None
    """The comparison, or `None` if there is no older state."""
