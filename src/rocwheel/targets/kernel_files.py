"""Which GPU a kernel file or database is for: by its path and a table, checked against what it contains."""

from __future__ import annotations

import enum
import posixpath
import re
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.code_objects import FEATURES, TargetId, known_processors, parse_target_id, processor_of
from rocwheel.binary.kernel_databases import (
    TABLE_SUFFIXES,
    database_processors,
    image_processors,
    is_database,
    is_image,
    table_processors,
)
from rocwheel.binary.kind import is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError
from rocwheel.targets.catalog import Generic, load_catalog
from rocwheel.targets.errors import UnknownTargetError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from rocwheel.core.reading import Data


T = TypeVar("T")

_PLACEHOLDER = re.compile(r"(\{[a-z_]+\}|\*)")
_FEATURE = rf"(?:[-_:](?:{'|'.join(FEATURES)})[-+p_])"
"""A feature of a target in a file name; where names can't hold signs, ``p`` stands for plus and ``_`` for minus."""


@cache
def processors_pattern() -> str:
    """Return the expression of every processor; of names that begin alike, the longest comes first."""
    return "|".join(map(re.escape, sorted(known_processors(), key=lambda name: (-len(name), name))))


@cache
def _placeholders() -> dict[str, str]:
    start, end = r"(?<![0-9a-zA-Z])", r"(?=[._/]|$)"
    processor = f"(?:{processors_pattern()})(?:[-_]strict)?"
    units = "(?:[0-9a-f]{2,3})?"
    return {
        "*": "[^/]*",
        "{target}": f"{start}(?P<target>{processor}){_FEATURE}*{end}",
        "{target_cu}": f"{start}(?P<target>{processor}){units}{end}",
        "{family}": f"{start}(?P<target>{processor}|gfx[0-9]+(?:x{{1,2}}|_[0-9]+)){_FEATURE}*{end}",
    }


class PathPattern:
    """A pattern of the table, ready to be matched against many paths."""

    def __init__(self, pattern: str) -> None:
        self._begin = re.split(r"[*{]", pattern, maxsplit=1)[0]
        self._expression = re.compile(f"(?:.*/)?{_translate(pattern)}", re.DOTALL)

    def match(self, path: str) -> re.Match[str] | None:
        """Return the match of a whole relative path; most paths are ruled out by looking for how the pattern begins."""
        return self._expression.fullmatch(path) if self._begin in path else None


def compile_patterns(patterns: tuple[str, ...]) -> tuple[PathPattern, ...]:
    """Return patterns of the table, ready to be matched."""
    return tuple(map(PathPattern, patterns))


def _translate(pattern: str) -> str:
    *folders, last = pattern.split("/")
    text = "".join("(?:.*?/)??" if segment == "**" else f"{_translate_segment(segment)}/" for segment in folders)
    return text + (".+" if last == "**" else _translate_segment(last))


def _translate_segment(segment: str) -> str:
    placeholders = _placeholders()
    return "".join(placeholders.get(part) or re.escape(part) for part in _PLACEHOLDER.split(segment))


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    sources: tuple[str, ...]
    """Names of the row's sources, explained in `KernelTable.sources`."""


class Rule(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that are for one target, or for a family of them."""

    files: tuple[str, ...]
    """Patterns as the table explains them; the target is that of a placeholder."""
    target: str = ""
    """The target of files whose pattern has no placeholder."""
    fixed: str = ""
    """Why a copy under another target's name would not do; empty where the library looks files up by name alone."""


class Difference(enum.Enum):
    """What a merge does with a file for all GPUs that isn't the same in all shards."""

    REFUSE = "refuse"
    PRIMARY = "primary"
    LINES = "lines"
    MAPS = "maps"


class Shared(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files of kernel libraries that are for all GPUs."""

    files: tuple[str, ...]
    differs: Difference
    reason: str


class Without(enum.Enum):
    """What a library does where the folder that it opens has no kernels for a GPU, or is absent."""

    FAILS = "fails"
    COMPILES = "compiles"


class Opener(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which folder a library opens for its kernels, and what it looks for there."""

    libraries: tuple[str, ...]
    """File names without version and ending."""
    folders: tuple[str, ...]
    """Patterns, relative to the library's own folder; the first one that exists is opened.

    The last one without a wildcard is where messages say that a folder is absent.
    """
    index: tuple[str, ...] = ()
    """Patterns of the names of files of which one must be there for the processor."""
    merged: tuple[str, ...] = ()
    """Names of files each of which is the index for all processors."""
    code: tuple[str, ...]
    """The endings of files that hold kernels."""
    for_all: tuple[str, ...] = ()
    """Names of files with code that are opened whichever GPU it is."""
    without: Without
    needed: bool
    """Whether the library finds no kernel for any GPU where the folder is absent."""
    everywhere: bool = False
    """Whether it is built for every GPU that a release is for, so that one without kernels has lost them."""


class SelfContained(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Libraries that one might take for openers, and that open no folder: all their kernels are in the file."""

    libraries: tuple[str, ...]


class Family(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A name for several targets at once, as AOTriton's images and their packages have it."""

    targets: tuple[str, ...]
    spelled: tuple[str, ...] = ()
    """What files call it where that isn't its name."""


class KernelTable(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"rules": "rule", "openers": "opener", "families": "family", "self_contained": "self-contained"},
):
    """The whole table, in the order of the file: the first row that fits wins."""

    suffixes: tuple[str, ...]
    sources: dict[str, str]
    rules: tuple[Rule, ...]
    openers: tuple[Opener, ...]
    self_contained: tuple[SelfContained, ...]
    shared: tuple[Shared, ...]
    families: tuple[Family, ...]


@cache
def load_table() -> KernelTable:
    """Return the table that comes with rocwheel."""
    return read_table("rocwheel.targets", "kernel_files.toml", KernelTable)


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern of a processor and its features.

    MIOpen appends the number of compute units, in hexadecimal: ``gfx90a6e`` is gfx90a with 110 of them.
    """
    features = f"(?:[-:](?:{'|'.join(FEATURES)})[+-])*"
    processor = f"((?:{processors_pattern()})(?:[-_]strict)?)"
    end = "(?=[0-9a-f]{2,3}(?![0-9a-z])|(?![0-9a-z]))"
    return re.compile(f"(?<![0-9a-z]){processor}({features}){end}")


def targets_in_path(path: str) -> tuple[TargetId, ...]:
    """Return the targets that a relative path names, each once; none for files that are for any."""
    matches = _pattern().finditer(path.replace("\\", "/"))
    found = (match[1].replace("_", "-") + re.sub(r"-(?=[sx])", ":", match[2]) for match in matches)
    return tuple(dict.fromkeys(parse_target_id(text, source=path) for text in found))


def without_targets(path: str) -> str:
    """Return a relative path with each target as ``*``, which files that do the same for several targets share."""
    return _pattern().sub("*", path)


def is_kernel_file(path: str) -> bool:
    """Return whether a file of this name belongs to a kernel library, so that a target in its name says what it is for.

    Headers, CMake files and licenses may name targets, too, but are for all of them.
    """
    return path.endswith(load_table().suffixes)


def kernel_targets(path: str) -> frozenset[str]:
    """Return the targets that the name of a kernel file says it is for; none for other files."""
    return frozenset(map(str, targets_in_path(path))) if is_kernel_file(path) else frozenset()


def kpack_target(name: str, *, source: str) -> TargetId:
    """Return the one target that a kpack file holds the code of, which its name ends with.

    Raises `InputError`, led by ``source``, when that is not the target of a GPU. The catalog need not know it.
    """
    target = parse_target_id(name.removesuffix(".kpack").rpartition("_")[2], source=source)
    if not target.processor.startswith("gfx"):
        raise UnknownTargetError(target.processor, load_catalog().processors, source=source)
    return target


def library_of(path: str) -> str:
    """Return what a file with code belongs to: of kernel files their folder, of ``.kpack`` files a pattern, or itself.

    Targets are left out of it, so that files for several of them are of one library.
    """
    if path.endswith(".kpack"):
        return without_targets(path)
    return posixpath.dirname(without_targets(path)) + "/" if is_kernel_file(path) else path


class KernelFile(msgspec.Struct, frozen=True):
    """A file that belongs to the package of one target, or of a family of them."""

    target: str
    """A processor without features, ``gfx90a`` or ``gfx1250-strict``, or the name of a family, ``gfx12_0``."""
    rule: str
    """The name of the table's row."""


@cache
def _rules() -> tuple[tuple[str, str, tuple[PathPattern, ...]], ...]:
    return tuple((rule.name, rule.target, compile_patterns(rule.files)) for rule in load_table().rules)


@cache
def _shared() -> tuple[tuple[Shared, tuple[PathPattern, ...]], ...]:
    return tuple((row, compile_patterns(row.files)) for row in load_table().shared)


@cache
def _families() -> dict[str, Family]:
    return {spelling: family for family in load_table().families for spelling in (family.name, *family.spelled)}


def classify_path(path: str) -> KernelFile | None:
    """Return what a file with a relative path is for; None where no rule knows it: then it is for all GPUs.

    The path may begin anywhere above the library's folder. Both kinds of slashes separate segments.
    """
    path = path.replace("\\", "/")
    if "gfx" not in path:
        return None
    for name, target, patterns in _rules():
        for pattern in patterns:
            if match := pattern.match(path):
                return KernelFile(_base_target(target or match["target"]), name)
    return None


def _base_target(spelling: str) -> str:
    family = find_family(spelling)
    return family.name if family else spelling.replace("_strict", "-strict")


def find_family(name: str) -> Family | None:
    """Return the family of a name or of its spelling in files, such as ``gfx120x``; none for processors and others."""
    return _families().get(name)


def fixed_reason(kernels: KernelFile) -> str:
    """Return why a copy of a file under another target's name would not serve its GPUs; empty where it may."""
    return next((rule.fixed for rule in load_table().rules if rule.name == kernels.rule), "")


def shared_row(path: str) -> Shared | None:
    """Return the row of a kernel library's file that is for all GPUs; none for other files."""
    path = path.replace("\\", "/")
    return next((row for row, patterns in _shared() if any(pattern.match(path) for pattern in patterns)), None)


def is_unknown_kernel_file(path: str) -> bool:
    """Return whether a file is named like a kernel file and no row of the table knows it.

    Such a file stays in the host package; who splits or merges lists it.
    """
    return is_kernel_file(path) and classify_path(path) is None and shared_row(path) is None


def processors_of_name(path: str) -> frozenset[str]:
    """Return the processors that a kernel file is for by its name, whether a rule knows it or not; none for others."""
    found = classify_path(path)
    if found is not None:
        return frozenset((found.target,))
    if not is_unknown_kernel_file(path):
        return frozenset()
    return frozenset(target.processor for target in targets_in_path(path))


class MismatchError(InputError):
    """A kernel file that is for one target by its name, and for others by its content."""

    def __init__(self, source: str, named: str, contained: tuple[str, ...]) -> None:
        self.named = named
        self.contained = contained
        super().__init__(
            source,
            f"is for {named} by its name, and contains code for {', '.join(contained)}",
            expected="code for what the name says",
            remedy="Rename it, or build it again.",
        )


def check_kernel_file(data: Data, path: str, *, name: str = "") -> tuple[InputError, ...]:
    """Return what is wrong with a kernel file at a relative ``path``, which messages call ``name``.

    A file of another kind, without code, or whose targets can't be known has no problems. Code for a generic processor
    suits the name of each of its members. A file that can't be read is a problem, too.
    """
    source = name or path
    found = classify_path(path)
    if found is None:
        return ()
    try:
        if found.rule == "kpack":
            read_archive(data, name=source)  # whatever it begins with
        contained = processors_in(data, name=source)
    except InputError as e:
        return (e,)
    suiting = _suiting(found.target)
    others = tuple(processor for processor in contained if processor not in suiting)
    if path.endswith(TABLE_SUFFIXES):
        asked = table_processors(data, path)
        # A table may have rows for other hardware, too.
        others = () if _is_served(asked, suiting, found.target) else asked
    return (MismatchError(source, found.target, others),) if suiting and others else ()


def _is_served(asked: tuple[str, ...], suiting: frozenset[str], target: str) -> bool:
    """Return whether a table that asks for these processors serves ``target``, or the hardware that it stands for."""
    row = load_catalog().processors.get(target)
    meant = {*suiting, target.removesuffix("-strict"), *(row.members if isinstance(row, Generic) else ())}
    return not asked or not meant.isdisjoint(asked)


def processors_in(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the processors that a file has code for, sorted; none for text, tables, and processors not known.

    Of databases with many kernels, a part is looked at (see `database_processors`). Raises `InputError` for damaged
    files, and `WorkError` where a database has no room.
    """
    if is_database(data):
        return database_processors(data, name=name)
    if is_image(data):
        return image_processors(data, name=name)
    if is_kpack(data):
        return tuple(sorted({processor_of(target) for target in read_archive(data, name=name).targets}))
    return tuple(sorted({target.processor for target in device_targets(data, name=name)}))


def _suiting(target: str) -> frozenset[str]:
    """Return the processors whose code may be in a file for ``target``; none where that is not known."""
    family = find_family(target)
    if family is None and target.removesuffix("-strict") not in load_catalog().processors:
        return frozenset()
    names = frozenset(family.targets if family else (target,))
    generics = (row for row in load_catalog().processors.values() if isinstance(row, Generic))
    return names | {row.name for row in generics if names & frozenset(row.members)}


def kernel_folder(path: str) -> str | None:
    """Return the folder of a kernel file, whose files count together; none for what is told by itself."""
    end = max(path.rfind("/"), path.rfind("!"))
    return path[:end] if end > 0 and is_kernel_file(path[end + 1 :]) else None


def group_kernel_files(
    items: Iterable[T], path_of: Callable[[T], str], answer_of: Callable[[T], Hashable] = lambda _: None
) -> list[tuple[str | None, list[T]]]:
    """Return what is told of files: several kernel files of a folder with the same answer together, with their folder.

    Each other file is by itself, without a folder; so is a kernel file that nothing joins.
    """
    groups: dict[Hashable, list[T]] = {}
    for number, item in enumerate(items):
        folder = kernel_folder(path_of(item))
        groups.setdefault(number if folder is None else (folder, answer_of(item)), []).append(item)
    return [(kernel_folder(path_of(each[0])) if len(each) > 1 else None, each) for each in groups.values()]
