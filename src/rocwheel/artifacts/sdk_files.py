"""Reads and writes files that TheRock stores in ``share/therock``: the targets and sources of a build."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


DIST_INFO_PATH = "share/therock/dist_info.json"
"""The path of the file in the merged prefix."""

_TARGETS = "dist_amdgpu_targets"


def declared_targets(name: str, data: bytes) -> tuple[str, ...]:
    """Return the targets that a build declares. Raises `InputError` about ``name`` if the file is malformed."""
    value = _decode(name, data).get(_TARGETS, "")
    if not isinstance(value, str):
        raise InputError(name, f"has {value!r} for {_TARGETS}", expected="targets separated by semicolons")
    return tuple(target for target in value.split(";") if target)


def with_declared_targets(name: str, data: bytes, targets: Iterable[str]) -> bytes:
    """Return the file with its targets replaced. Raises the same errors as `declared_targets`."""
    return json.dumps(_decode(name, data) | {_TARGETS: ";".join(targets)}).encode() + b"\n"


def _decode(name: str, data: bytes) -> dict[str, Any]:
    try:
        return decode_json(data, dict[str, Any])
    except msgspec.DecodeError as e:
        raise InputError(name, f"is not a JSON object ({e})", expected="TheRock's dist_info.json") from e


SDK_MANIFEST_PATH = "share/therock/therock_manifest.json"
"""The path of the file in the merged prefix."""

SPLIT_FLAG = "KPACK_SPLIT_ARTIFACTS"
"""The name of the flag that is true if the build split device code into one artifact per GPU target."""


class Submodule(msgspec.Struct, frozen=True):
    """A source repository that the SDK was built from, in TheRock's format."""

    submodule_path: str = ""
    """The folder in the SDK sources, such as ``compiler/amd-llvm``."""
    submodule_url: str | None = None
    pin_sha: str | None = None
    """The commit, or `None` for sources without git."""


class SourcePackage(msgspec.Struct, frozen=True):
    """A Debian package that files were imported from, as `rocwheel artifacts import` records it."""

    name: str
    version: str
    architecture: str
    artifacts: tuple[str, ...] = ()
    """The full names of the artifacts that contain files from the package."""
    origin: str = ""
    """The distribution that the package claims to be from, such as ``Debian``; usually empty."""
    maintainer: str = ""
    """The maintainer's name and email address."""


class SdkManifest(msgspec.Struct, frozen=True):
    """The fields of an SDK manifest that packaging needs. The file contains more fields."""

    rocm_version: str = ""
    """The ROCm version, such as ``7.10.0``; empty if the file doesn't have it."""
    rocm_package_version: str = ""
    """The package version, such as ``7.10.0a20251021``; empty if the file doesn't have it."""
    the_rock_commit: str | None = None
    submodules: tuple[Submodule, ...] | None = None
    debian_packages: tuple[SourcePackage, ...] = ()
    flags: dict[str, Any] = msgspec.field(default_factory=dict)
    """Flags of the SDK build."""

    @classmethod
    def parse(cls, data: bytes, source: str) -> SdkManifest:
        """Parse the JSON text. Raises `InputError` if the text is malformed or a known field has the wrong type."""
        try:
            manifest = decode_json(data, cls)
        except msgspec.DecodeError as e:
            raise InputError(source, f"is not a usable SDK manifest ({e})", expected="TheRock's JSON") from e
        split = manifest.flags.get(SPLIT_FLAG, False)
        if not isinstance(split, bool):
            raise InputError(source, f"has {split!r} for the flag {SPLIT_FLAG}", expected="true or false")
        return manifest

    @property
    def kpack_split(self) -> bool:
        """Whether device code was split into one artifact per GPU target."""
        return self.flags.get(SPLIT_FLAG) is True
