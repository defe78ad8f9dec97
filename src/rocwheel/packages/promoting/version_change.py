"""The places in the files of a package set that state its version, and their new text.

Those are the core metadata, the bill of materials, the ``_build_info.py`` and ``_dist_info.py`` of modules, the
manifests of device packages and the SDK manifest. The rest, such as the release in ``.info/version``, says what ROCm
is, not what the package is.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from rocwheel.artifacts.sdk_files import SDK_MANIFEST_PATH
from rocwheel.core.errors import InputError
from rocwheel.distributions.formats.metadata.edit_metadata import edit_requirements, set_version
from rocwheel.distributions.formats.requirements.requirements import is_refusing, readable_requirements
from rocwheel.distributions.sbom.bill import SBOM_NAME
from rocwheel.distributions.sbom.promoted_bill import promoted_bill
from rocwheel.installed.coherence.selector_facts import parse_literals
from rocwheel.packages.planning.sdk_source import render_literals

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["BUILD_INFO", "VersionChange", "read_build_info", "says_version"]

BUILD_INFO = "_build_info.py"
"""The module of literals that packages carry; ``src/rocwheel/sdk/README.md`` describes it."""

_DIST_INFO = "_dist_info.py"
"""What the packages of the reference carry instead."""

_PIN = re.compile(r"(?P<name>[^=<>!~;@]*==\s*)(?P<version>[^\s;,)=]+)")
_LISTS = ("REQUIRES", "EXTRAS", "SELECTED", "BY_PLATFORM")


class VersionChange(msgspec.Struct, frozen=True):
    """Two normalised versions: what a package set has, and what it gets."""

    old: str
    new: str

    def requirement(self, text: str) -> str:
        """Return a requirement with the new version when it asks for exactly the old one; else as it is.

        What asks for exactly this version belongs to the set. So do those that refuse a GPU, by a local version that
        can't be (`refusing_requirement`).
        """
        match = _PIN.match(text)
        if match is None:
            return text
        version = match["version"]
        if _is_same(version, self.old):
            version = self.new
        elif _is_same(version.partition("+")[0], self.old.partition("+")[0]) and _refuses(version):
            version = f"{self.new.partition('+')[0]}+{version.partition('+')[2]}"
        return match["name"] + version + text[match.end() :]

    def metadata(self, data: bytes) -> bytes:
        """Return METADATA or PKG-INFO with the new version, in its requirements too."""
        return edit_requirements(set_version(data, self.new), self.requirement)

    def text(self, name: str, data: bytes) -> bytes:
        """Return the file ``name``, a path in a wheel or sdist, with the new version where it says the old one."""
        place, _, base = name.rpartition("/")
        if place.endswith(".egg-info"):
            return self.metadata(data) if base == "PKG-INFO" else self._lines(data)
        if base == BUILD_INFO:
            return self._build_info(name, data)
        if base == _DIST_INFO:
            return self._assigned(data, rb"\b\w+[ \t]*=[ \t]*")
        if name.endswith(f".dist-info/{SBOM_NAME}"):
            return promoted_bill(data, self.old, self.new, name)
        if place.endswith(".devel_links"):
            return self._assigned(data, rb'"version":\s*')
        return self._assigned(data, rb'"rocm_package_version":\s*')

    def _build_info(self, name: str, data: bytes) -> bytes:
        values = read_build_info(data, name)
        changed = {key: _map(values[key], self.requirement) for key in _LISTS if key in values}
        changed |= {"VERSION": self.new} if values.get("VERSION") == self.old else {}
        return render_literals({**values, **changed}).encode()

    def _lines(self, data: bytes) -> bytes:
        return "\n".join(map(self.requirement, data.decode("utf-8", "surrogateescape").split("\n"))).encode(
            "utf-8", "surrogateescape"
        )

    def _assigned(self, data: bytes, before: bytes) -> bytes:
        """Replace the version where it is the whole string that follows ``before``."""
        pattern = rb"(" + before + rb")([\"'])" + re.escape(self.old.encode()) + rb"\2"
        return re.sub(pattern, lambda match: match[1] + json.dumps(self.new).encode(), data)


def says_version(name: str) -> bool:
    """Return whether the file ``name``, a path in a wheel or sdist, is one of those that say the version."""
    place, _, base = name.rpartition("/")
    return (
        (base in {BUILD_INFO, _DIST_INFO} and not place.endswith(".dist-info"))
        or (place.endswith(".egg-info") and base in {"PKG-INFO", "requires.txt"})
        or (place.endswith("/.devel_links") and base.endswith(".json"))
        or name.endswith((f".dist-info/{SBOM_NAME}", f"/{SDK_MANIFEST_PATH}"))
    )


def read_build_info(data: bytes, source: str) -> dict[str, Any]:
    """Return the literals of a ``_build_info.py``; raises `InputError`, led by ``source``, for other text."""
    try:
        return parse_literals(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        found = f"can't be read ({str(e) or 'it is nested too deeply'})"
        raise InputError(source, found, expected="literals", remedy="Build the packages again.") from e


def _map(value: Any, change: Callable[[str], str]) -> Any:
    """Apply ``change`` to every string that is a value in nested lists and dicts."""
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def _is_same(text: str, version: str) -> bool:
    try:
        return Version(text) == Version(version)
    except ValueError:
        return False


def _refuses(version: str) -> bool:
    return any(map(is_refusing, readable_requirements([f"x=={version}"])))
