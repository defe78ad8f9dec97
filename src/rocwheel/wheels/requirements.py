"""Evaluates the requirements of distributions, including markers for Python and the machine (:pep:`508`)."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice, product
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec
from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.wheels.file_names import without_label
from rocwheel.wheels.sdist import read_sdist_file
from rocwheel.wheels.tags import parse_platforms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from packaging.tags import Tag
    from packaging.version import Version


def prefix_match(version: Version, numbers: int) -> str:
    """Return the pattern, such as ``1.2.*``, for all versions with the same first ``numbers`` parts of the release.

    A release with fewer parts is padded with zeros. According to :pep:`440`, installers skip pre-releases that match.
    """
    epoch = f"{version.epoch}!" if version.epoch else ""
    release = (*version.release, *[0] * numbers)[:numbers]
    return f"{epoch}{'.'.join(map(str, release))}.*"


def release_match(version: Version, numbers: int) -> str:
    """Return `prefix_match` for a final release, or the exact public version for a pre-release.

    A prefix match can't be restricted to a pre-release (:pep:`440`).
    """
    return version.public if version.is_prerelease else prefix_match(version, numbers)


def exact_pattern(version: Version) -> str:
    """Return a regular expression for the versions that are accepted by ``==`` with ``version``.

    :pep:`440` ignores trailing zeros in a release, and local versions that the requirement doesn't mention.
    """
    numbers = version.base_version
    rest = re.escape(version.public.removeprefix(numbers))
    local = re.escape(f"+{version.local}") if version.local else r"(\+.*)?"
    return re.escape(re.sub(r"(\.0)+$", "", numbers)) + r"(\.0)*" + rest + local + "$"


_WINDOWS_MACHINES = {"amd64": "AMD64", "arm64": "ARM64"}
_MINORS = range(8, 16)
"""The minor versions of Python 3 that are checked for a wheel that supports any Python version."""
_MACHINES = ("x86_64", "aarch64", "ppc64le", "riscv64")
_PLATFORMS = (*(("linux", machine) for machine in _MACHINES), ("win32", "AMD64"), ("darwin", "arm64"))
Interpreter = tuple[int, tuple[str, str]]
"""A minor version of Python 3, and the values of ``sys_platform`` and ``platform_machine``."""
ALL_INTERPRETERS: tuple[Interpreter, ...] = tuple(product(_MINORS, _PLATFORMS))
"""The interpreters that are checked for a wheel that supports any Python version and platform."""
_NAMES = {"linux": ("Linux", "posix"), "win32": ("Windows", "nt"), "darwin": ("Darwin", "posix")}


@cache
def marker_holds(marker: str, extra: str, filename: str) -> bool:
    """Return whether ``marker``, with ``extra``, is true for any Python and platform that ``filename`` supports."""
    return marker_holds_for(marker, extra, _interpreters_of(PurePath(filename).name))


def marker_holds_for(marker: str, extra: str, interpreters: Iterable[Interpreter]) -> bool:
    """Return whether ``marker``, with ``extra``, is true for one of the interpreters."""
    parsed = Marker(marker)
    return any(parsed.evaluate({**_environment(minor, *platform), "extra": extra}) for minor, platform in interpreters)


@cache
def _interpreters_of(filename: str) -> tuple[Interpreter, ...]:
    try:
        tags = parse_wheel_filename(without_label(filename))[3]
    except InvalidWheelFilename:
        return ALL_INTERPRETERS
    found = {one for tag in tags for one in product(tag_minors(tag), platforms_of_tag(tag.platform))}
    return tuple(sorted(found))


def tag_minors(tag: Tag) -> tuple[int, ...]:
    """Return the minor versions of Python 3 that a tag supports, or all known versions if it doesn't specify one."""
    match = re.fullmatch(r"(?:cp|py)3(\d+)", tag.interpreter)
    if match is None:
        return tuple(_MINORS)
    minor = int(match[1])
    only = tag.interpreter.startswith("cp") and tag.abi != "abi3"
    return (minor,) if only else tuple(sorted({minor, *(later for later in _MINORS if later > minor)}))


def platforms_of_tag(tag: str) -> tuple[tuple[str, str], ...]:
    """Return the values of ``sys_platform`` and ``platform_machine`` that one platform tag supports.

    Returns all known values for the tag ``any`` and for unknown tags.
    """
    (platform,) = parse_platforms(tag)
    if platform.is_linux:
        return (("linux", platform.machine),)
    if platform.system == "macos":
        return tuple(("darwin", machine) for machine in ("arm64", "x86_64"))
    if platform.system == "windows":
        return (("win32", _WINDOWS_MACHINES.get(platform.machine, platform.machine)),)
    return _PLATFORMS


def _environment(minor: int, platform: str, machine: str) -> dict[str, str]:
    system, os_name = _NAMES[platform]
    return {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.0",
        "implementation_version": f"3.{minor}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": platform,
        "platform_system": system,
        "platform_machine": machine,
        "os_name": os_name,
    }


_REFUSAL = "is.not.in.this.release"


_BRACKET = re.compile("[()]")
_MOST_NESTED = 32
"""The maximum depth of brackets. ``packaging`` recurses for each level; markers from real builds have at most three."""

_LONG_NUMBER = re.compile(r"\d{4001}")
"""Matches a number that is too long: Python converts at most 4,300 digits.

``packaging`` accepts more digits, but fails when it compares such versions.
"""
_TOO_LONG = "a number with more than 4,000 digits"


class RequirementError(ValueError):
    """An error with the reason why a Requires-Dist is malformed, or why its marker can't be evaluated."""


def read_requirement(text: str) -> Requirement:
    """Parse a requirement without evaluating its marker.

    Raises `RequirementError` with the reason if the requirement is malformed.
    """
    # The maximum depth of open brackets, including brackets in quotes.
    depth = most = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket == "(" else -1
        most = max(most, depth)
    if most > _MOST_NESTED:
        message = f"more than {_MOST_NESTED} nested brackets"
        raise RequirementError(message)
    if _LONG_NUMBER.search(text):
        raise RequirementError(_TOO_LONG)
    try:
        return Requirement(text)
    except InvalidRequirement as e:
        raise RequirementError(str(e)) from e


def read_specifier(text: str) -> SpecifierSet:
    """Parse a version specifier, such as Requires-Python. Raises `InvalidSpecifier` if it is malformed."""
    if _LONG_NUMBER.search(text):
        raise InvalidSpecifier(_TOO_LONG)
    return SpecifierSet(text)


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement whose marker can be evaluated. Raises `RequirementError` for any other text."""
    try:
        requirement = read_requirement(text)
        applies(requirement)
    except RequirementError as e:
        message = f"a malformed Requires-Dist ({shortened(str(e))})"
        raise RequirementError(message) from e
    except UndefinedComparison as e:
        message = f"a Requires-Dist with a marker that can't be evaluated ({shortened(str(e))})"
        raise RequirementError(message) from e
    except UndefinedEnvironmentName as e:
        message = f"a Requires-Dist with a marker that is only for lock files ({shortened(str(e.args[0]))})"
        raise RequirementError(message) from e
    # The text of a requirement from the end of its URL, which may contain any characters, or from the first ``;``.
    if "\\" in (text.partition(requirement.url)[2] if requirement.url else text.partition(";")[2]):
        message = (
            "a malformed Requires-Dist (the marker has a backslash)"  # packaging evaluates a backslash as Python does
        )
        raise RequirementError(message)
    if not all(specifier.version for specifier in requirement.specifier):
        message = "a malformed Requires-Dist (no version after ===)"  # packaging accepts this, but no version matches
        raise RequirementError(message)
    return requirement


def readable_requirements(texts: Iterable[str]) -> list[Requirement]:
    """Return the requirements that `parse_requirement` accepts; all others are skipped.

    Callers share the results, so they must not change them.
    """
    found = (_parse_known(text) if len(text) <= _LONGEST_KNOWN else _try_parse(text) for text in texts)
    return [requirement for requirement in found if requirement is not None]


_LONGEST_KNOWN = 512
_MOST_KNOWN = 8192


def _try_parse(text: str) -> Requirement | None:
    with suppress(RequirementError):
        return parse_requirement(text)
    return None


_parse_known = lru_cache(maxsize=_MOST_KNOWN)(_try_parse)


_LITERAL = re.compile(r"""\"([^"]*)\"|'([^']*)'""")


def named_extras(requirement: Requirement) -> frozenset[str]:
    """Return the texts in a marker, in the normalized form of an extra.

    The marker's value is the same for all other extras.
    """
    found = _LITERAL.findall(str(requirement.marker or ""))
    texts = (canonicalize_name(one or other) for one, other in found)
    return frozenset(word for text in texts for word in (text, *re.split(r"[\s,]+", text)))


class _ByExtra(msgspec.Struct, frozen=True):
    every: tuple[Requirement, ...]
    named: dict[str, list[Requirement]]
    """The requirements whose markers mention an extra, keyed by extra."""


@lru_cache(maxsize=256)
def _by_extra(texts: tuple[str, ...]) -> _ByExtra:
    every = tuple(readable_requirements(texts))
    return _ByExtra(every, group_by_extra(every))


def group_by_extra(requirements: Iterable[Requirement]) -> dict[str, list[Requirement]]:
    """Return the requirements whose markers mention an extra, keyed by extra."""
    found: dict[str, list[Requirement]] = {}
    for requirement in requirements:
        for extra in named_extras(requirement):
            found.setdefault(extra, []).append(requirement)
    return found


def requirements_for_extra(texts: tuple[str, ...], extra: str) -> tuple[Requirement, ...]:
    """Return the readable requirements that may apply with an extra, but not without it; for ``""``, all of them."""
    found = _by_extra(texts)
    if not extra:
        return found.every
    return (*found.named.get(canonicalize_name(extra), ()), *found.named.get("", ()))


_MANY_EXTRAS = 8
"""Above this number of extras, only one of the extras that a marker doesn't mention is checked."""


def applies(requirement: Requirement, extras: Collection[str] = ("",), file_name: str = "") -> bool:
    """Return whether a requirement applies with any of the extras; ``""`` represents no extra.

    For many extras, pass a set of normalized extras.

    With a wheel's ``file_name``, a requirement applies if its marker is true for any Python version and platform in the
    wheel's tags. With any other file name, it applies if the marker is true for any Python version and platform.
    Without a file name, the marker is evaluated on this machine.
    """
    if requirement.marker is None:
        return True
    marker = requirement.marker
    if len(extras) > _MANY_EXTRAS:
        named = named_extras(requirement)
        extras = [
            *(extra for extra in named if extra in extras),
            *islice((extra for extra in extras if extra not in named), 1),
        ]
    try:
        return any(
            marker_holds(str(marker), extra, file_name) if file_name else marker.evaluate({"extra": extra})
            for extra in extras
        )
    except (UndefinedComparison, UndefinedEnvironmentName):
        raise
    except ValueError:
        # The marker uses a kernel version or similar. Older releases of packaging don't compare it as text.
        return True


def refusing_requirement(name: str, version: str, target: str, families: Iterable[str]) -> str:
    """Return a requirement that can't be met, whose version explains the reason: there is no code for a target.

    For an unknown extra, the installer would only print a warning.
    """
    return f"{name}=={version}+{'.'.join([target, _REFUSAL, 'which.has', *families])}"


def is_refusing(requirement: Requirement) -> bool:
    """Return whether a requirement is deliberately impossible to meet, like those from `refusing_requirement`."""
    return any(f".{_REFUSAL}" in specifier.version for specifier in requirement.specifier)


def asked_for(requirement: Requirement) -> list[tuple[str, str]]:
    """Return a requirement's normalized name without an extra, and the name with each of its extras."""
    name = str(canonicalize_name(requirement.name))
    return [(name, extra) for extra in ("", *map(canonicalize_name, requirement.extras))]


def follow_requirements(start: str, brought_by: Callable[[str, str], Iterable[tuple[str, str]]]) -> frozenset[str]:
    """Return the names of all direct and indirect requirements of a distribution, which may require itself."""
    reached: set[tuple[str, str]] = set()
    waiting = [(start, "")]
    while waiting:
        brought = set(brought_by(*waiting.pop())) - reached
        waiting += brought
        reached |= brought
    return frozenset(name for name, _ in reached)


_SECTION = re.compile(r"\[([^:\]]*)(?::(.*))?\]")


def parse_requires_txt(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the extra, marker, and requirement from each line. Sections determine the extra and marker."""
    extra = marker = ""
    for line in map(str.strip, text.splitlines()):
        section = _SECTION.fullmatch(line)
        if section:
            extra, marker = section[1], section[2] or ""
        elif line:
            yield extra, marker, line


def to_requires_dist(extra: str, marker: str, requirement: str) -> str:
    """Convert a line of ``requires.txt`` to the form of Requires-Dist in core metadata."""
    text, _, own = requirement.partition(";")
    parts = [f"({part.strip()})" for part in (own, marker) if part.strip()]
    parts += [f'extra == "{extra}"'] if extra else []
    return f"{text.strip()} ; {' and '.join(parts)}" if parts else text.strip()


_LEGACY = ("setuptools>=40.8.0",)
"""The build requirements that installers assume for an sdist that doesn't specify any."""


class _BuildSystem(msgspec.Struct):
    requires: tuple[str, ...] = _LEGACY


class _Project(msgspec.Struct, rename="kebab"):
    build_system: _BuildSystem = msgspec.field(default_factory=_BuildSystem)


def read_build_requires(path: Path) -> tuple[str, ...]:
    """Return an sdist's build requirements from its ``pyproject.toml``.

    Raises `InputError` if ``pyproject.toml`` can't be parsed, and `OSError` if the sdist can't be read.
    """
    data = read_sdist_file(path, "pyproject.toml")
    try:
        return decode_toml(data or b"", _Project).build_system.requires
    except msgspec.DecodeError as e:
        place = f"{path}!pyproject.toml"
        raise InputError(place, f"can't be read ({e})", expected="the format of PEP 518") from e
