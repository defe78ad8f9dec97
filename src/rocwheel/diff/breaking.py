"""Determines which changes break a package's users, with a table of rules. The rules are pure functions."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier
from packaging.utils import canonicalize_name

from rocwheel.core.messages import first_of
from rocwheel.diff.changes import Comparison, FileChange, PackageChange, Status
from rocwheel.targets.kernel_files import kernel_targets
from rocwheel.wheels.requirements import read_specifier, readable_requirements
from rocwheel.wheels.tags import lowest_glibc, parse_platforms

if TYPE_CHECKING:
    from rocwheel.diff.changes import FieldChange

_PYTHONS = tuple(f"3.{minor}.{patch}" for minor in range(40) for patch in (0, 1, 30))
_MOST_NAMES = 5


def _lost_entry_points(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the removed commands and other entry points."""
    for change in _changes(package, "Entry point"):
        if change.went:
            yield "", _names("no longer has the entry point", change.went)


def _lost_extras(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the removed extras. Names are compared as in installers (:pep:`685`)."""
    for change in _changes(package, "Provides-Extra"):
        came = {canonicalize_name(name) for name in change.came}
        if lost := [name for name in change.went if canonicalize_name(name) not in came]:
            yield "", _names("no longer has the extra", lost)


def _lost_pythons(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the Python releases that neither Requires-Python nor the wheel's tags allow anymore."""
    for change in _changes(package, "Requires-Python"):
        before, after = "".join(change.went), "".join(change.came)
        if lost := [python for python in _PYTHONS if _admits(before, python) and not _admits(after, python)]:
            yield (
                "",
                f"requires Python {after}, but previously required {before or 'no version'}: {lost[0]} is excluded",
            )
    for field, now in (("Python tag", package.new_pythons), ("ABI tag", package.new_abis)):
        for change in _changes(package, field):
            lost = [tag for tag in change.went if not tag.startswith(("py2", "cp2"))]
            if lost and not {"py3", "none", "abi3"} & {*change.came, *now}:
                yield "", _names(f"no longer has the {field}", lost)


def _raised_glibc(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield a wheel's new minimum glibc version for a machine."""
    for machine, before, after in _machines(package):
        if before is not None and after is not None and after > before:
            old, new = (".".join(map(str, glibc)) for glibc in (before, after))
            yield "", f"needs glibc {new} on {machine}, but previously needed {old}"


def _lost_platforms(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the removed platform tags without a replacement for the same system and machine."""
    for change in _changes(package, "Platform tag"):
        came = [tag for text in change.came for tag in parse_platforms(text)]
        places = {(tag.system, tag.machine) for tag in came}
        if any(tag.system == "any" for tag in came):
            continue
        lost = [
            text for text in change.went for tag in parse_platforms(text) if (tag.system, tag.machine) not in places
        ]
        kept = [text for text in lost if not _is_covered(text, package)]
        if kept:
            yield "", _names("no longer has the platform tag", kept)


def _new_requirements(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield the requirements that are new, or that apply in more cases than before."""
    for change in _changes(package, "Requires-Dist"):
        before = {_name_and_marker(text) for text in (*package.old_requires, *change.went)}
        if added := [text for text in change.came if not _is_extra(text) and not _was_required(text, before)]:
            yield "", _names("requires", added)


def _changes(package: PackageChange, field: str) -> list[FieldChange]:
    return [change for change in package.fields if change.field == field]


def _admits(specifier: str, python: str) -> bool:
    try:
        return read_specifier(specifier).contains(python, prereleases=True)
    except InvalidSpecifier:
        return True  # installers ignore unreadable requirements


def _is_extra(requirement: str) -> bool:
    return "extra" in requirement.partition(";")[2]


def _was_required(requirement: str, before: set[tuple[str, str]]) -> bool:
    name, marker = _name_and_marker(requirement)
    return not before.isdisjoint({(name, ""), (name, marker)})


def _name_and_marker(requirement: str) -> tuple[str, str]:
    """Return the required name and its condition, which is empty for an unconditional requirement."""
    read = readable_requirements([requirement.replace("==VERSION", "")])
    return (canonicalize_name(read[0].name), str(read[0].marker or "")) if read else (requirement, "")


def _machines(package: PackageChange) -> Iterator[tuple[str, tuple[int, int] | None, tuple[int, int] | None]]:
    """Yield each machine with the wheel's old and new minimum glibc version."""
    before, after = package.old_platforms, package.new_platforms
    for machine in dict.fromkeys(
        tag.machine for text in before for tag in parse_platforms(text) if tag.system == "glibc"
    ):
        yield (
            machine,
            lowest_glibc(tag for text in before for tag in parse_platforms(text) if tag.machine == machine),
            lowest_glibc(tag for text in after for tag in parse_platforms(text) if tag.machine == machine),
        )


def _is_covered(text: str, package: PackageChange) -> bool:
    """Return whether another tag with the same system and machine remains."""
    gone = {(tag.system, tag.machine) for tag in parse_platforms(text)}
    return any((tag.system, tag.machine) in gone for other in package.new_platforms for tag in parse_platforms(other))


class Severity(str, enum.Enum):
    """The severity of a finding. An error is a loss that affects users."""

    ERROR = "error"
    WARNING = "warning"


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, its promise to users, and a function that yields each violation's file and facts."""

    name: str
    severity: Severity
    demand: str
    find: Callable[[PackageChange], Iterable[tuple[str, str]]]


class Finding(msgspec.Struct, frozen=True):
    """A violation of a rule.

    ``found`` completes a sentence that begins with the file, or with the package if there is no file.
    """

    rule: str
    severity: Severity
    package: str
    file: str
    found: str


_SHARED_LIBRARY = re.compile(r"(^|/)[^/]+(\.so(\.\d+)*|\.dll)$")
_EXTENSION_MODULE = re.compile(r"\.(cpython-[^/]*|abi3|pypy[^/]*)\.so$|(^|/)_[^/.]+\.so$|\.pyd$")
_HASHED = re.compile(r"-[0-9a-f]{8}(\.so(\.\d+)*|\.\d[^/]*)$|-[0-9a-f]{32}\.dll$")
_HEADER = re.compile(r"\.(h|hpp|hh|hxx|inc|inl|cuh|cmake|pc|a|lib)$")
_MODULE = re.compile(r"\.(py|pyi|pyd)$|\.(cpython-[^/]*|abi3|pypy[^/]*)\.so$")
_METADATA = re.compile(r"^[^/]+\.(dist-info|egg-info)/|^PKG-INFO$")
_PROGRAM = re.compile(r"(^|/)bin/[^/]+$")


def is_private(path: str) -> bool:
    """Return whether only the package itself uses a library.

    Examples are copies from a repair, and extension modules.
    """
    return _is_copy(path) or _EXTENSION_MODULE.search(path) is not None


def _is_copy(path: str) -> bool:
    folders = path.split("/")[:-1]
    return any(folder.endswith(".libs") for folder in folders) or _HASHED.search(path) is not None


def _went(package: PackageChange) -> Iterator[FileChange]:
    """Yield the removed files that weren't moved. For a removed package, one finding is enough."""
    if package.status is not Status.WENT:
        yield from (file for file in package.files if file.status is Status.WENT and not file.moved_to)


def _public_libraries(package: PackageChange) -> Iterator[FileChange]:
    for file in package.files:
        if file.status is Status.CHANGED and file.library and file.library.is_library and not is_private(file.old_path):
            yield file


def _is_library(file: FileChange) -> bool:
    has_name = _SHARED_LIBRARY.search(file.old_path) is not None
    is_one = file.library.is_library if file.library else file.old_link is not None
    return has_name and is_one and not is_private(file.old_path)


def _lost_packages(package: PackageChange) -> Iterator[tuple[str, str]]:
    if package.status is Status.WENT and package.name:
        yield "", f"was removed (version {package.old_version})"
    if package.new_name:
        yield "", f"is now called {package.new_name}"


def _lost_libraries(package: PackageChange) -> Iterator[tuple[str, str]]:
    for file in filter(_is_library, _went(package)):
        soname = file.library.old_soname if file.library else ""
        yield (
            file.old_path,
            f"was removed (a library with the SONAME {soname})"
            if soname
            else "was removed (another name of a library)",
        )


def _moved_files(package: PackageChange) -> Iterator[tuple[str, str]]:
    for file in package.files if package.status is not Status.WENT else ():
        if file.moved_to:
            yield file.old_path, f"is now in {file.moved_to}"


def _other_sonames(package: PackageChange) -> Iterator[tuple[str, str]]:
    for file in _public_libraries(package):
        library = file.library
        if library and library.old_soname and library.old_soname != library.new_soname:
            yield file.old_path, f"had the SONAME {library.old_soname}, but now has {library.new_soname or 'no SONAME'}"


def _lost_symbols(package: PackageChange) -> Iterator[tuple[str, str]]:
    for file in _public_libraries(package):
        if file.library and file.library.symbols_went:
            yield file.old_path, _names("no longer exports", file.library.symbols_went)


def _lost_weak_symbols(package: PackageChange) -> Iterator[tuple[str, str]]:
    for file in _public_libraries(package):
        if file.library and file.library.weak_symbols_went:
            yield file.old_path, _names("no longer exports the weak symbols", file.library.weak_symbols_went)


def _lost_gpus(package: PackageChange) -> Iterator[tuple[str, str]]:
    if package.targets_went and package.status is not Status.WENT:
        yield "", _names("no longer has code for", package.targets_went)
    for file in package.files:
        if file.status is Status.CHANGED and file.library and file.library.targets_went:
            yield file.old_path, _names("no longer has code for", file.library.targets_went)
    for library in package.kernel_libraries if package.status is not Status.WENT else ():
        if lost := [target for target in library.targets_went if target not in package.targets_went]:
            yield library.library, _names("no longer has kernels for", lost)


def _generic_code(package: PackageChange) -> Iterator[tuple[str, str]]:
    if package.targets_replaced and package.status is not Status.WENT:
        yield "", _names("now uses code for other targets on", package.targets_replaced)
    for file in package.files:
        if file.status is Status.CHANGED and file.library and file.library.targets_replaced:
            yield file.old_path, _names("now uses code for other targets on", file.library.targets_replaced)


def _moved_gpus(package: PackageChange) -> Iterator[tuple[str, str]]:
    if package.targets_moved and package.status is not Status.WENT:
        yield "", _names("now relies on other packages for code for", package.targets_moved)


def _lost_files(pattern: re.Pattern[str]) -> Callable[[PackageChange], Iterator[tuple[str, str]]]:
    def find(package: PackageChange) -> Iterator[tuple[str, str]]:
        for file in _went(package):
            if pattern.search(file.old_path) and not _is_library(file) and not _METADATA.search(file.old_path):
                yield file.old_path, "went"

    return find


def _lost_data(package: PackageChange) -> Iterator[tuple[str, str]]:
    known = (_HEADER, _MODULE, _PROGRAM, _METADATA)
    for file in _went(package):
        is_known = _is_library(file) or _is_copy(file.old_path) or kernel_targets(file.old_path)
        if not is_known and not any(pattern.search(file.old_path) for pattern in known):
            yield file.old_path, "went"


def _lost_kernels(package: PackageChange) -> Iterator[tuple[str, str]]:
    """Yield one finding for all removed kernel files, because there may be thousands."""
    known = (_HEADER, _MODULE, _PROGRAM, _METADATA)
    lost = [
        file.old_path
        for file in _went(package)
        if kernel_targets(file.old_path) and not any(pattern.search(file.old_path) for pattern in known)
    ]
    if lost:
        yield "", _names("no longer has", lost)


def _lost_exec_bits(package: PackageChange) -> Iterator[tuple[str, str]]:
    for file in package.files:
        if file.status is Status.CHANGED and file.old_mode is not None and file.new_mode is not None:
            is_run = file.library is None or not file.library.is_library
            if (
                is_run
                and not _SHARED_LIBRARY.search(file.old_path)
                and file.old_mode & 0o111
                and not file.new_mode & 0o111
            ):
                yield (
                    file.old_path,
                    f"is no longer executable: its mode changed from {file.old_mode:o} to {file.new_mode:o}",
                )


def _names(verb: str, names: Iterable[str]) -> str:
    return f"{verb} {first_of(tuple(names), _MOST_NAMES)}"


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
RULES = (
    Rule("package-gone", _ERROR, "Every distribution remains, with the same name.", _lost_packages),
    Rule("library-gone", _ERROR, "Every shared library remains, with all of its names.", _lost_libraries),
    Rule("soname-changed", _ERROR, "A shared library keeps its SONAME.", _other_sonames),
    Rule("symbol-gone", _ERROR, "A shared library exports the same symbols with the same versions.", _lost_symbols),
    Rule("weak-symbol-gone", _WARNING, "Weak symbols remain. Most users have their own copies.", _lost_weak_symbols),
    Rule("gpu-gone", _ERROR, "Packages and libraries still run on the same GPUs.", _lost_gpus),
    Rule("gpu-moved", _WARNING, "Code for a GPU stays in the same package.", _moved_gpus),
    Rule("gpu-generic", _WARNING, "Generic code doesn't replace code for a specific GPU.", _generic_code),
    Rule("kernels-gone", _WARNING, "Kernel files remain while the library supports their GPU.", _lost_kernels),
    Rule("module-gone", _ERROR, "Every Python module can still be imported.", _lost_files(_MODULE)),
    Rule(
        "header-gone",
        _ERROR,
        "Headers, static libraries, CMake files, and pkg-config files remain.",
        _lost_files(_HEADER),
    ),
    Rule("program-gone", _ERROR, "Programs remain in their bin folders.", _lost_files(_PROGRAM)),
    Rule("file-gone", _WARNING, "All other files remain.", _lost_data),
    Rule("file-moved", _WARNING, "A file stays in the same package.", _moved_files),
    Rule("mode-changed", _ERROR, "Executable files remain executable.", _lost_exec_bits),
    Rule("entry-point-gone", _ERROR, "Commands and other entry points remain.", _lost_entry_points),
    Rule("extra-gone", _ERROR, "All extras remain.", _lost_extras),
    Rule("python-narrowed", _ERROR, "The package installs on the same Python versions.", _lost_pythons),
    Rule("glibc-raised", _ERROR, "A wheel doesn't require a newer glibc.", _raised_glibc),
    Rule("platform-gone", _ERROR, "A wheel installs on the same systems.", _lost_platforms),
    Rule("requirement-added", _WARNING, "A package requires no additional packages.", _new_requirements),
)
"""All rules, in the order of the findings."""


def find_breaks(comparison: Comparison, ignore: Iterable[str] = ()) -> tuple[Finding, ...]:
    """Return the violations of all rules, except for rules that match a pattern in ``ignore``. Errors come first."""
    patterns = tuple(ignore)
    chosen = [rule for rule in RULES if not any(fnmatchcase(rule.name, pattern) for pattern in patterns)]
    found = [
        Finding(rule.name, rule.severity, package.label, file, text)
        for rule in chosen
        for package in comparison.packages
        for file, text in rule.find(package)
    ]
    return tuple(sorted(found, key=lambda finding: finding.severity is not Severity.ERROR))


def idle_patterns(ignore: Iterable[str]) -> list[str]:
    """Return the patterns that match no rule."""
    return [pattern for pattern in ignore if not any(fnmatchcase(rule.name, pattern) for rule in RULES)]
