"""What a report says, as plain values; JSON and the page are made of them. All sizes are in bytes."""

from __future__ import annotations

import enum

import msgspec

from rocwheel.targets.target_set import text_sort_key


class Copy(msgspec.Struct, frozen=True):
    """A file of a package, by the place of that in the list of packages."""

    package: int
    path: str


class Copies(msgspec.Struct, frozen=True):
    """Files with the same content; ``wasted`` is what one copy in each package but the first takes."""

    size: int
    wasted: int
    files: tuple[Copy, ...]


HOST = ""
"""The target of what is not code for a GPU."""


def part_sort_key(target: str) -> tuple[bool, tuple[tuple[int, int, int, str], str]]:
    """Return the key that orders the targets of parts: `HOST` first, then by the numbers of the processors."""
    return target != HOST, text_sort_key(target)


class Kind(str, enum.Enum):
    """What a package is."""

    WHEEL = "wheel"
    SDIST = "sdist"
    INSTALLED = "installed"
    ARTIFACT = "artifact"
    FILES = "files"
    UNREADABLE = "unreadable"


class Part(msgspec.Struct, frozen=True):
    """What a file has for one GPU target, or for none: the target is `HOST` then."""

    target: str
    size: int
    packed: int | None = None
    """Its share of what the file takes in the wheel, by size: wheels are not packed by target."""


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One file."""

    package: int
    """The place of its package in the list of these."""
    component: str
    path: str
    size: int
    """Unpacked; 0 for a further name of a file that is counted already."""
    packed: int | None = None
    """In the wheel; none where nothing is packed."""
    parts: tuple[Part, ...] = ()
    """What it has for which target; they add up to the file. Empty for a file that is the host's as a whole."""
    link: str | None = None
    """What it leads to, if it is a symlink."""
    same_as: str = ""
    """The path of the file that it is a further name of (a hard link)."""
    problem: str = ""
    """Why it could not be read."""


class PackageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel, an sdist, an installed distribution, an artifact, or files that belong to none."""

    label: str
    """Its name; where several have the same, that of its file."""
    kind: Kind
    source: str
    version: str = ""
    files: int = 0
    size: int = 0
    """Of its files."""
    packed: int | None = None
    """Of the wheel or sdist itself; none for what is not packed."""
    rest: int | None = None
    """What of ``packed`` no file takes: headers and the directory of a wheel, and all of an sdist."""
    targets: tuple[str, ...] = ()
    """The GPU targets that its files have code for."""
    problem: str = ""
    """Why it could not be read."""


class Totals(msgspec.Struct, frozen=True):
    """Everything together; ``packed`` is none where nothing is packed."""

    packages: int = 0
    files: int = 0
    size: int = 0
    packed: int | None = None
    targets: tuple[str, ...] = ()
    unreadable: int = 0


class Load(msgspec.Struct, frozen=True):
    """A library that a file loads: the name that it asks for, and what the loader finds.

    ``path`` and ``package`` are empty for a library of the system, ``package`` for a file of no distribution.
    """

    name: str
    path: str = ""
    package: str = ""
    is_missing: bool = False


class Loading(msgspec.Struct, frozen=True):
    """A library or program, and what it needs by itself, in its order."""

    path: str
    package: str
    is_library: bool
    loads: tuple[Load, ...]


class FoundFault(msgspec.Struct, frozen=True):
    """A finding of the audit; ``path`` is empty for one about a package as a whole."""

    rule: str
    severity: str
    package: str
    path: str
    found: str
    remedy: str


class LostCode(msgspec.Struct, frozen=True):
    """Targets that a library has code for and finds nothing for: in its archives, or in the folder that it opens."""

    path: str
    package: str
    targets: tuple[str, ...]


class Graph(msgspec.Struct, frozen=True):
    """Which file loads which, and what the audit finds."""

    files: tuple[Loading, ...] = ()
    findings: tuple[FoundFault, ...] = ()
    problem: str = ""
    """Why there is none."""
    lost: tuple[LostCode, ...] = ()


class SizeChange(str, enum.Enum):
    """What became of the size of something."""

    CAME = "came"
    GREW = "grew"
    SAME = "same"
    SHRANK = "shrank"
    WENT = "went"


class PackageGrowth(msgspec.Struct, frozen=True):
    """What became of a package; 0 and none stand for a side that lacks it."""

    label: str
    fate: SizeChange
    old_size: int
    size: int
    old_packed: int | None
    packed: int | None


class FileGrowth(msgspec.Struct, frozen=True):
    """What became of a file; the path is empty on a side that lacks it."""

    package: str
    fate: SizeChange
    old_path: str
    path: str
    old_size: int
    size: int
    old_packed: int | None
    packed: int | None


class TargetGrowth(msgspec.Struct, frozen=True):
    """What became of the code for a GPU target; 0 for none."""

    target: str
    old_size: int
    size: int


class Against(msgspec.Struct, frozen=True):
    """What differs in size from an older state: what does not is left out."""

    path: str
    totals: Totals = Totals()
    """Of the older state."""
    packages: tuple[PackageGrowth, ...] = ()
    files: tuple[FileGrowth, ...] = ()
    """Those that differ most first."""
    targets: tuple[TargetGrowth, ...] = ()
    problem: str = ""
    """Why the older state could not be read; all else is empty then."""


class Code(str, enum.Enum):
    """What a library has for a GPU, from the best to the worst."""

    EXACT = "exact"
    PARTLY = "partly"
    """For some settings of its features (XNACK, SRAMECC) alone."""
    GENERIC = "generic"
    SPIRV = "spirv"
    MISSING = "missing"


class MatrixRow(msgspec.Struct, frozen=True):
    """A library, or the files of a kernel library, which several packages may hold."""

    library: str
    """The path; of kernel files that of their folder, and with a star for a target in it."""
    packages: tuple[str, ...]
    targets: tuple[str, ...]
    """What it has code for, as spelled there."""
    codes: tuple[Code, ...]
    """For each GPU of the matrix."""


class Matrix(msgspec.Struct, frozen=True):
    """All libraries with device code, and all GPUs that any of them has code for."""

    gpus: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


class Action(str, enum.Enum):
    """What can be done to device code."""

    COMPRESS = "compress"
    SPLIT = "split"
    PRUNE = "prune"


class Saving(msgspec.Struct, frozen=True):
    """What everything takes now, and after an action: for one GPU, if it names a target.

    What it takes now is the same for all actions: the totals of the report. Packed sizes are those of wheels and sdists
    as a whole, and none where nothing is packed.
    """

    action: Action
    target: str
    size: int
    size_after: int
    packed: int | None
    packed_after: int | None


class Savings(msgspec.Struct, frozen=True):
    """What could be saved; ``measured`` of the bundles' bytes (``of``) were compressed to know it."""

    is_estimated: bool
    measured: int
    of: int
    rows: tuple[Saving, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report says."""

    paths: tuple[str, ...]
    totals: Totals
    packages: tuple[PackageFacts, ...]
    files: tuple[FileFacts, ...]
    matrix: Matrix
    duplicates: tuple[Copies, ...] = ()
    graph: Graph = Graph()
    savings: Savings | None = None
    """None without device code."""
    against: Against | None = None
    """None where nothing older is given."""
