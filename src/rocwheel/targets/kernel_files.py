"""Determines the GPU of a kernel file or database from its path, and checks the path against the content."""

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
"""A target's feature in a file name; ``p`` represents plus and ``_`` represents minus where signs aren't possible."""


@cache
def processors_pattern() -> str:
    """Return the regular expression for all processors; longer names come before their own prefixes."""
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
    """A pattern from the table, compiled for matching many paths."""

    def __init__(self, pattern: str) -> None:
        self._begin = re.split(r"[*{]", pattern, maxsplit=1)[0]
        self._expression = re.compile(f"(?:.*/)?{_translate(pattern)}", re.DOTALL)

    def match(self, path: str) -> re.Match[str] | None:
        """Return the match of a whole relative path; a search for the fixed beginning quickly excludes most paths."""
        return self._expression.fullmatch(path) if self._begin in path else None


def compile_patterns(patterns: tuple[str, ...]) -> tuple[PathPattern, ...]:
    """Return the patterns from the table in compiled form."""
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
    """The names of the row's sources. `KernelTable.sources` explains them."""


class Rule(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files for one target or family."""

    files: tuple[str, ...]
    """Patterns in the syntax that the table explains; a placeholder provides the target."""
    target: str = ""
    """The target of files whose pattern has no placeholder."""
    fixed: str = ""
    """Why a copy under another target's name doesn't work, or an empty string if only the file name counts."""


class Difference(enum.Enum):
    """The action that a merge takes if shards contain different versions of a file for all GPUs."""

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
    """The behavior of a library if the folder that it opens is missing or has no kernels for a GPU."""

    FAILS = "fails"
    COMPILES = "compiles"


class Opener(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The folder that a library opens to find its kernels, and the files that it looks for in the folder."""

    libraries: tuple[str, ...]
    """File names without version and suffix."""
    folders: tuple[str, ...]
    """Patterns relative to the library's own folder; the library opens the first folder that exists.

    Messages about a missing folder show the last pattern without its wildcard.
    """
    index: tuple[str, ...] = ()
    """Patterns for file names. At least one of these files must exist for the processor."""
    merged: tuple[str, ...] = ()
    """The names of files that each serve as the index for all processors."""
    code: tuple[str, ...]
    """The suffixes of files with kernels."""
    for_all: tuple[str, ...] = ()
    """The names of files with code that are opened for any GPU."""
    without: Without
    needed: bool
    """Whether the library has no kernels for any GPU if the folder is missing."""
    everywhere: bool = False
    """Whether the library is built for every GPU that a release supports, so that missing kernels are an error."""


class SelfContained(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Libraries that look like openers but don't open a folder, because the library file contains all their kernels."""

    libraries: tuple[str, ...]


class Family(_Row, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A common name for several targets, as in AOTriton's images and their packages."""

    targets: tuple[str, ...]
    spelled: tuple[str, ...] = ()
    """The names used in file names, if they differ from the name."""


class KernelTable(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"rules": "rule", "openers": "opener", "families": "family", "self_contained": "self-contained"},
):
    """The complete table, in file order. The first row that matches applies."""

    suffixes: tuple[str, ...]
    sources: dict[str, str]
    rules: tuple[Rule, ...]
    openers: tuple[Opener, ...]
    self_contained: tuple[SelfContained, ...]
    shared: tuple[Shared, ...]
    families: tuple[Family, ...]


@cache
def load_table() -> KernelTable:
    """Return the table that ships with rocwheel."""
    return read_table("rocwheel.targets", "kernel_files.toml", KernelTable)


@cache
def _pattern() -> re.Pattern[str]:
    """Return the pattern for a processor and its features.

    MIOpen appends the number of compute units in hexadecimal: ``gfx90a6e`` is gfx90a with 110 compute units.
    """
    features = f"(?:[-:](?:{'|'.join(FEATURES)})[+-])*"
    processor = f"((?:{processors_pattern()})(?:[-_]strict)?)"
    end = "(?=[0-9a-f]{2,3}(?![0-9a-z])|(?![0-9a-z]))"
    return re.compile(f"(?<![0-9a-z]){processor}({features}){end}")


def targets_in_path(path: str) -> tuple[TargetId, ...]:
    """Return the distinct targets in a relative path, or an empty tuple for files for all GPUs."""
    matches = _pattern().finditer(path.replace("\\", "/"))
    found = (match[1].replace("_", "-") + re.sub(r"-(?=[sx])", ":", match[2]) for match in matches)
    return tuple(dict.fromkeys(parse_target_id(text, source=path) for text in found))


def without_targets(path: str) -> str:
    """Return a relative path with each target replaced by ``*``; files that differ only in target get the same path."""
    return _pattern().sub("*", path)


def is_kernel_file(path: str) -> bool:
    """Return whether a file with this name belongs to a kernel library and is for the target in its name.

    Headers, CMake files, and licenses may also have targets in their names, but are for all targets.
    """
    return path.endswith(load_table().suffixes)


def kernel_targets(path: str) -> frozenset[str]:
    """Return the targets in the name of a kernel file, or an empty set for other files."""
    return frozenset(map(str, targets_in_path(path))) if is_kernel_file(path) else frozenset()


def kpack_target(name: str, *, source: str) -> TargetId:
    """Return the only target of a kpack file, which is at the end of the file's name.

    Raises `InputError` from ``source`` if the end of the name isn't a GPU target. The target need not be in the
    catalog.
    """
    target = parse_target_id(name.removesuffix(".kpack").rpartition("_")[2], source=source)
    if not target.processor.startswith("gfx"):
        raise UnknownTargetError(target.processor, load_catalog().processors, source=source)
    return target


def library_of(path: str) -> str:
    """Return the library of a file with code: a kernel file's folder, a pattern for ``.kpack`` files, or the file.

    Targets are removed, so files for several targets have the same library.
    """
    if path.endswith(".kpack"):
        return without_targets(path)
    return posixpath.dirname(without_targets(path)) + "/" if is_kernel_file(path) else path


class KernelFile(msgspec.Struct, frozen=True):
    """A file that belongs to the package for one target or family."""

    target: str
    """A processor without features (``gfx90a`` or ``gfx1250-strict``), or a family's name (``gfx12_0``)."""
    rule: str
    """The name of the row in the table."""


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
    """Return the target of the file at a relative path, or `None` if no rule matches and the file is for all GPUs.

    The path may be relative to any folder above the library's folder. Both slashes and backslashes separate segments.
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
    """Return the family with a given name or file name form, such as ``gfx120x``, or `None` for other names."""
    return _families().get(name)


def fixed_reason(kernels: KernelFile) -> str:
    """Return why a copy of a file under another target's name can't serve that target's GPUs; empty if it can."""
    return next((rule.fixed for rule in load_table().rules if rule.name == kernels.rule), "")


def shared_row(path: str) -> Shared | None:
    """Return the row for a kernel library file that is for all GPUs, or `None` for other files."""
    path = path.replace("\\", "/")
    return next((row for row, patterns in _shared() if any(pattern.match(path) for pattern in patterns)), None)


def is_unknown_kernel_file(path: str) -> bool:
    """Return whether a file is named like a kernel file but doesn't match any row in the table.

    Such a file stays in the host package, and splits and merges report it.
    """
    return is_kernel_file(path) and classify_path(path) is None and shared_row(path) is None


def processors_of_name(path: str) -> frozenset[str]:
    """Return the processors in a kernel file's name, whether or not a rule covers it; empty for other files."""
    found = classify_path(path)
    if found is not None:
        return frozenset((found.target,))
    if not is_unknown_kernel_file(path):
        return frozenset()
    return frozenset(target.processor for target in targets_in_path(path))


class MismatchError(InputError):
    """An error for a kernel file whose name is for one target but whose content is for other targets."""

    def __init__(self, source: str, named: str, contained: tuple[str, ...]) -> None:
        self.named = named
        self.contained = contained
        super().__init__(
            source,
            f"is named for {named}, but contains code for {', '.join(contained)}",
            expected="code for the target in the name",
            remedy="Rename or rebuild the file.",
        )


def check_kernel_file(data: Data, path: str, *, name: str = "") -> tuple[InputError, ...]:
    """Return the problems with a kernel file at a relative ``path``; ``name`` identifies the file in messages.

    The result is empty for other files, for files without code, and if the targets are unknown. Code for a generic
    processor is valid in files for any of its members. An unreadable file is also a problem.
    """
    source = name or path
    found = classify_path(path)
    if found is None:
        return ()
    try:
        if found.rule == "kpack":
            read_archive(data, name=source)  # regardless of its first bytes
        contained = processors_in(data, name=source)
    except InputError as e:
        return (e,)
    suiting = _suiting(found.target)
    others = tuple(processor for processor in contained if processor not in suiting)
    if path.endswith(TABLE_SUFFIXES):
        asked = table_processors(data, path)
        # A table may also have rows for other hardware.
        others = () if _is_served(asked, suiting, found.target) else asked
    return (MismatchError(source, found.target, others),) if suiting and others else ()


def _is_served(asked: tuple[str, ...], suiting: frozenset[str], target: str) -> bool:
    """Return whether a table that requires these processors serves ``target``, or the hardware that it represents."""
    row = load_catalog().processors.get(target)
    meant = {*suiting, target.removesuffix("-strict"), *(row.members if isinstance(row, Generic) else ())}
    return not asked or not meant.isdisjoint(asked)


def processors_in(data: Data, *, name: str) -> tuple[str, ...]:
    """Return the known processors for which a file has code, sorted, or an empty tuple for text and tables.

    In databases with many kernels, only some kernels are read (see `database_processors`). Raises `InputError` for
    damaged files, and `WorkError` if there is no space for a database.
    """
    if is_database(data):
        return database_processors(data, name=name)
    if is_image(data):
        return image_processors(data, name=name)
    if is_kpack(data):
        return tuple(sorted({processor_of(target) for target in read_archive(data, name=name).targets}))
    return tuple(sorted({target.processor for target in device_targets(data, name=name)}))


def _suiting(target: str) -> frozenset[str]:
    """Return the processors whose code may be in a file for ``target``, or an empty set if they are unknown."""
    family = find_family(target)
    if family is None and target.removesuffix("-strict") not in load_catalog().processors:
        return frozenset()
    names = frozenset(family.targets if family else (target,))
    generics = (row for row in load_catalog().processors.values() if isinstance(row, Generic))
    return names | {row.name for row in generics if names & frozenset(row.members)}


def kernel_folder(path: str) -> str | None:
    """Return a kernel file's folder, whose files are reported together, or `None` for a separate file."""
    end = max(path.rfind("/"), path.rfind("!"))
    return path[:end] if end > 0 and is_kernel_file(path[end + 1 :]) else None


def group_kernel_files(
    items: Iterable[T], path_of: Callable[[T], str], answer_of: Callable[[T], Hashable] = lambda _: None
) -> list[tuple[str | None, list[T]]]:
    """Group files for reports: kernel files in the same folder with the same result, together with their folder.

    Every other file, including a single kernel file, is separate and has no folder.
    """
    groups: dict[Hashable, list[T]] = {}
    for number, item in enumerate(items):
        folder = kernel_folder(path_of(item))
        groups.setdefault(number if folder is None else (folder, answer_of(item)), []).append(item)
    return [(kernel_folder(path_of(each[0])) if len(each) > 1 else None, each) for each in groups.values()]
