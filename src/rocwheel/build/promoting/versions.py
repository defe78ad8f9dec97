"""Changes the version in release candidates, and finds files that still state the old version.

SDK packages have the version of ROCm. Frameworks, such as PyTorch, have their own version, and include the version of
ROCm in the local version: ``2.9.0+rocm10.0.0rc1``. Development builds have ``+devrocm10.0.0.dev0.COMMIT``, optionally
preceded by the framework's commit. TheRock's ``external-builds/pytorch/build_prod_wheels.py`` defines these forms.

These files state the version: the core metadata, SBOMs, ``_build_info.py``, ``_dist_info.py``, ``version.py``,
``_rocm_init.py``, the manifests of device packages, and the SDK manifest. The files of ROCm itself, such as
``.info/version``, describe ROCm and not the package.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.artifacts.sdk_files import SDK_MANIFEST_PATH
from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.build.promoting.candidates import BUILD_INFO, Candidate, read_build_info
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.environment.sdk_layout import sdk_selector
from rocwheel.wheels.metadata import edit_requirements, parse_core_metadata, set_values, set_version
from rocwheel.wheels.requirements import exact_pattern, is_refusing, readable_requirements
from rocwheel.wheels.sbom import SBOM_NAME, promoted_bill
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

_LOCAL = re.compile(
    r"(?:^|(?<=[.+]))(?:dev)?rocm(?P<version>\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?)(?![^.])"
)
"""The version of ROCm in a normalized local version."""


def rocm_version(version: str, known: Iterable[str] = ()) -> str:
    """Return the version of ROCm in a framework's local version, or an empty string for other versions.

    A version in ``known`` takes precedence. Otherwise, a local part of the ROCm version, such as a commit, couldn't be
    recognized.
    """
    local = version.partition("+")[2]
    match = _LOCAL.search(local)
    if match is None:
        return ""
    rest = f"{local[match.start('version') :]}."
    exact = (one for one in known if "+" in one and rest.startswith(f"{one.replace('+', '.')}."))
    return next(exact, match["version"])


_DIST_INFO = "_dist_info.py"
"""The name of the corresponding module in the reference packages."""
_INITIALIZER = "_rocm_init.py"
_VERSION_MODULES = ("version.py", "_version.py", "git_version_info_installed.py")
"""The modules of frameworks that state the version."""
_CMAKE_VERSION = re.compile(r"config-?version\.cmake$", re.IGNORECASE)
_SDK_TREE = "_rocm"
"""The prefix of folders with files of ROCm."""
_DATA_FOLDER = re.compile(r"^[^/]+\.data/(?:purelib|platlib)/")
_URL_REQUIREMENT = re.compile(r"\s*[\w.-]+\s*(?:\[[^\]]*\]\s*)?@")
_SPECIFIER = re.compile(r"(?P<operator>===?|~=|>=|<=)(?P<space>\s*)(?P<version>[^\s;,)=]+)")
_REQUIRED_NAME = re.compile(r"\s*([\w.-]+)")
_LISTS = ("REQUIRES", "REQUIRES_SELECTED", "EXTRAS", "SELECTED", "BY_PLATFORM")


class VersionChange(msgspec.Struct, frozen=True):
    """The normalized old and new versions of ROCm in a package set."""

    old: str
    new: str
    names: frozenset[str] = frozenset()
    """The normalized names of the distributions in the set."""

    def version(self, text: str) -> str:
        """Return the new version for the old version, or for a local version that contains it.

        Any other version is returned unchanged.
        """
        if _is_same(text, self.old):
            return self.new
        public, plus, local = text.partition("+")
        if rocm_version(text.lower().replace("-", ".").replace("_", "."), [self.old]) != self.old:
            return text
        return public + plus + self.replaced(local.encode()).decode()

    @property
    def is_clear(self) -> bool:
        """Whether every mention of the old version refers to ROCm.

        A final version can also be the version of other software.
        """
        return Version(self.old).is_prerelease or "+" in self.old

    def replaced(self, text: bytes, *, is_clear: bool = True) -> bytes:
        """Return the text with each mention of the old version replaced, or only the mentions in local versions."""
        kind = b"devrocm" if ".dev" in self.new else b"rocm"
        local, plain = kind + self.new.replace("+", ".").encode(), self.new.encode()

        def new(match: re.Match[bytes]) -> bytes:
            return local if match["local"] else plain if is_clear else match[0]

        return _mentions(self.old).sub(new, text)

    def requirement(self, text: str, *, any_name: bool = True) -> str:
        """Return a requirement for a package of the set with the new version. Return other requirements unchanged.

        A requirement is for the set if it is for a distribution in the set or in the SDK. It is also for the set if its
        local version contains the old version of ROCm. With ``any_name``, each requirement for exactly the old version
        is for the set. The same is true for a requirement that uses an impossible local version to reject a GPU
        (`refusing_requirement`).
        """
        head, semicolon, marker = text.partition(";")
        match = _REQUIRED_NAME.match(head)
        if match is None or _URL_REQUIREMENT.match(text):
            return text
        name = canonicalize_name(match[1])
        is_of_set = name in self.names or is_of_sdk(name)

        def changed(specifier: re.Match[str]) -> str:
            version = specifier["version"]
            is_moved = is_of_set or (any_name and specifier["operator"].startswith("==")) or "+" in version
            moved = self.version(version) if is_moved else version
            if is_moved and moved == version and self._is_refusing(version):
                moved = f"{self.new.partition('+')[0]}+{version.partition('+')[2]}"
            return f"{specifier['operator']}{specifier['space']}{moved}"

        return _SPECIFIER.sub(changed, head) + semicolon + marker

    def _is_refusing(self, version: str) -> bool:
        is_old = _is_same(version.partition("+")[0], self.old.partition("+")[0])
        return is_old and any(map(is_refusing, readable_requirements([f"x=={version}"])))

    def metadata(self, data: bytes, own: str) -> bytes:
        """Return METADATA or PKG-INFO with the new version, for a distribution with the old version ``own``.

        Its version, its requirements, and its summary change.
        """
        any_name = own == self.old
        changed = edit_requirements(
            set_version(data, self.version(own)), lambda text: self.requirement(text, any_name=any_name)
        )
        summary = parse_core_metadata(changed)[0].get("summary", "")
        moved = self.replaced(summary.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
        return set_values(changed, "Summary", [moved]) if moved != summary else changed

    def text(self, name: str, data: bytes, own: str) -> bytes:
        """Return the content of a file with the old version replaced by the new one.

        ``name`` is its path in a wheel or sdist, and ``own`` is the old version of that distribution.
        """
        place, _, base = name.rpartition("/")
        if place.endswith(".egg-info"):
            lines = data.decode("utf-8", "surrogateescape").split("\n")
            listed = "\n".join(map(self.requirement, lines)).encode("utf-8", "surrogateescape")
            return self.metadata(data, own) if base == "PKG-INFO" else listed
        if base == BUILD_INFO:
            values = read_build_info(data, name)
            changed = {key: _map(values[key], self.requirement) for key in _LISTS if key in values}
            changed |= {"VERSION": self.new} if values.get("VERSION") == self.old else {}
            return render_literals({**values, **changed}).encode()
        if name.endswith(f".dist-info/{SBOM_NAME}"):
            return promoted_bill(data, own, self.version(own), name)
        if before := _assignment(name):
            pattern = rb"(" + before + rb")([\"'])" + re.escape(self.old.encode()) + rb"\2"
            return re.sub(pattern, lambda match: match[1] + json.dumps(self.new).encode(), data)
        if base == _INITIALIZER:
            # The pattern that a rocwheel initializer compares the version with.
            old, new = (exact_pattern(Version(version)).encode() for version in (self.old, self.new))
            data = data.replace(old, new)
        is_nested = base in _VERSION_MODULES and "/" in _DATA_FOLDER.sub("", place)
        return self.replaced(data, is_clear=self.is_clear or not is_nested)


def _assignment(name: str) -> bytes:
    """Return the pattern of the text before the version in a file of the SDK, or an empty value for other files."""
    place, _, base = name.rpartition("/")
    if base == _DIST_INFO:
        return rb"\b\w+[ \t]*=[ \t]*"
    if place.endswith(".devel_links"):
        return rb'"version":\s*'
    return rb'"rocm_package_version":\s*' if name.endswith(f"/{SDK_MANIFEST_PATH}") else b""


def is_of_sdk(name: str) -> bool:
    """Return whether a normalized name is the name of an SDK package or of the selector."""
    return is_sdk_package(name) or name == canonicalize_name(sdk_selector().distribution)


def says_version(name: str) -> bool:
    """Return whether a file states the version. ``name`` is its path in a wheel or sdist."""
    name = _DATA_FOLDER.sub("", name)
    place, _, base = name.rpartition("/")
    if place.endswith(".dist-info"):
        return False
    of_framework = base in {_INITIALIZER, *_VERSION_MODULES} or _CMAKE_VERSION.search(base)
    return (
        base in {BUILD_INFO, _DIST_INFO}
        or (bool(of_framework) and not name.startswith(_SDK_TREE))
        or (place.endswith(".egg-info") and base in {"PKG-INFO", "requires.txt"})
        or (place.endswith("/.devel_links") and base.endswith(".json"))
        or (place.endswith(".dist-info/sboms") and base.endswith(".json"))
        or name.endswith(f"/{SDK_MANIFEST_PATH}")
    )


def _map(value: Any, change: Callable[[str], str]) -> Any:
    """Apply ``change`` to every string value in nested lists, tuples, and dictionaries."""
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, change) for item in value)
    return change(value) if isinstance(value, str) else value


def _is_same(text: str, version: str) -> bool:
    try:
        return Version(text) == Version(version)
    except ValueError:
        return False


@cache
def _mentions(version: str) -> re.Pattern[bytes]:
    """Return a pattern for mentions of a version of ROCm, including mentions in local versions."""
    text = re.escape(version.encode())
    in_local = text.replace(rb"\+", rb"[-._]")
    end = rb"(?![\w+]|\.(?:\d|dev|post))"
    return re.compile(rb"(?P<local>(?:dev)?rocm)" + in_local + rb"(?!\w|\.\d)" + rb"|(?<![\d.])" + text + end)


_TEXTS = (".py", ".pyi", ".json", ".toml", ".yaml", ".yml", ".cfg", ".cmake", ".pc", ".h")
"""The suffixes of text files where the version matters at run time or in builds."""


def required_sdk_versions(candidate: Candidate) -> set[str]:
    """Return the exact versions of SDK packages that a candidate requires."""
    requirements = [one for one in _read_requirements(candidate.metadata) if is_of_sdk(canonicalize_name(one.name))]
    return {one.version for found in requirements for one in found.specifier if one.operator in {"==", "==="}}


def find_leftovers(candidate: Candidate, changed: Mapping[str, bytes], change: VersionChange) -> Iterator[InputError]:
    """Yield an error for each file of a wheel or requirement that would still state the old version.

    ``changed`` contains the new content of changed files. The SDK's own trees aren't searched, because their files
    describe ROCm. Docstrings and comments of modules may mention any version. If the old version isn't clear, only
    mentions in local versions are considered.
    """
    if change.new == change.old:
        return
    metadata = f"{candidate.dist_info}/METADATA"
    for name, member in candidate.members.items():
        if _DATA_FOLDER.sub("", name).startswith(_SDK_TREE) or not name.endswith(_TEXTS):
            continue
        data = changed[name] if name in changed else read_member(member)
        if line := _leftover_line(name, data, change.old, is_clear=change.is_clear):
            found = f"still states version {change.old} (line {line}) after the promotion"
            expected = "the version only in METADATA, version.py, and _rocm_init.py"
            remedy = "Build the wheel with a module that imports the version from version.py."
            yield InputError(member.source, found, expected=expected, remedy=remedy)
    for text in parse_core_metadata(changed.get(metadata, candidate.metadata))[0].get("requires_dist", ()):
        if _URL_REQUIREMENT.match(text) and _mentions(change.old).search(text.replace("%2B", "+").encode()):
            found = f"requires {quoted(text)}, the URL of a file with the old version"
            remedy = "Build the wheel with a requirement such as torch==VERSION."
            yield InputError(
                f"{candidate.path}!{metadata}", found, expected="a requirement without a URL", remedy=remedy
            )


def _leftover_line(name: str, data: bytes, version: str, *, is_clear: bool) -> int:
    """Return the number of the first line that states the version, or 0."""
    mentions = [match for match in _mentions(version).finditer(data) if is_clear or match["local"]]
    if not mentions:
        return 0
    if name.endswith(".py"):
        try:
            return next(_stating_lines(parse_python(data), version, is_clear=is_clear), 0)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # Such a file isn't a Python 3 module, so any mention in its text counts.
    return data.count(b"\n", 0, mentions[0].start()) + 1


def _stating_lines(module: ast.Module, version: str, *, is_clear: bool) -> Iterator[int]:
    """Yield the numbers of lines with strings that state the version.

    Strings that are separate statements are ignored.
    """
    documents = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            found = _mentions(version).finditer(node.value.encode("utf-8", "surrogatepass"))
            if any(is_clear or match["local"] for match in found):
                yield node.lineno


def find_broken(promoted: Sequence[tuple[Candidate, bytes]], change: VersionChange) -> list[InputError]:
    """Return an error for each requirement that the set's old versions satisfied but its new versions don't satisfy.

    Each candidate is paired with its new METADATA, which may lack some of the requirements.
    """
    old: dict[str, set[str]] = {}
    for candidate, _ in promoted:
        old.setdefault(canonicalize_name(candidate.name), set()).add(candidate.version)
    problems = []
    for candidate, metadata in promoted:
        kept = set(map(str, _read_requirements(metadata)))
        any_name = candidate.version == change.old
        for before in _read_requirements(candidate.metadata):
            after = next(iter(readable_requirements([change.requirement(str(before), any_name=any_name)])), before)
            name = canonicalize_name(before.name)
            versions = old.get(name, {change.old} if is_of_sdk(name) else set())
            news = {change.version(version) for version in versions}
            is_broken = _is_met(before.specifier, versions) and not _is_met(after.specifier, news)
            if is_broken and str(after) in kept:
                found = f"requires {quoted(str(after))}, but the new version is {', '.join(sorted(news))}"
                expected = "a requirement that both the old and the new version satisfy"
                remedy = "Build the wheel with a different requirement."
                problems.append(InputError(candidate.path, found, expected=expected, remedy=remedy))
    return problems


def _read_requirements(metadata: bytes) -> list[Requirement]:
    return list(readable_requirements(parse_core_metadata(metadata)[0].get("requires_dist", ())))


def _is_met(specifier: SpecifierSet, versions: Iterable[str]) -> bool:
    return any(specifier.contains(version, prereleases=True) for version in versions)
