"""What the manifest of a build says, and where it stands."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from rocwheel.distributions.formats.source_date import LATEST_SECONDS

__all__ = [
    "ATTESTATIONS",
    "BUILT_FOLDER",
    "MANIFEST_NAME",
    "MANIFEST_SCHEMA",
    "PREDICATE_NAME",
    "STATEMENT_SUFFIX",
    "SUMS_NAME",
    "BuildManifest",
    "ManifestInput",
    "ManifestOutput",
    "ManifestRecipe",
]

MANIFEST_NAME = "rocwheel-build.json"
BUILT_FOLDER = "dist"
"""The folder that a build puts its distributions into, beside the manifest."""
SUMS_NAME = "SHA256SUMS"
"""Of the file that ``sha256sum -c`` takes."""
ATTESTATIONS = "attestations"
"""Of the folder with statements about the outputs, beside the manifest."""
PREDICATE_NAME = "provenance.json"
STATEMENT_SUFFIX = ".intoto.json"
MANIFEST_SCHEMA = "rocwheel.build-manifest/1"

_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=LATEST_SECONDS)]
_Size = Annotated[int, msgspec.Meta(ge=0)]


class ManifestInput(msgspec.Struct, frozen=True):
    """An artifact that the build was made of."""

    name: str
    """Such as ``blas_lib_generic``."""
    files: _Size
    size: _Size
    """Bytes of its files."""
    sha256: _Sha256
    """As `rocwheel.artifacts.summary` has it: the same for the folder and the archive of an artifact."""
    place: str
    """Where it was: a path relative to the manifest's folder, or a URL; its name alone beside a manifest on a store."""


class ManifestRecipe(msgspec.Struct, frozen=True):
    """The recipe of the build."""

    name: str
    """Of its file; ``rocm.toml`` for the one that ships with rocwheel."""
    sha256: _Sha256
    place: str = ""
    """Where it was, as that of an input; empty for the one that ships with rocwheel."""


class ManifestOutput(msgspec.Struct, frozen=True):
    """A distribution that the build made."""

    path: str
    """Relative to the manifest's folder, with ``/``."""
    size: _Size
    sha256: _Sha256


class BuildManifest(msgspec.Struct, frozen=True):
    """A whole build. The same build gives the same manifest: it has no dates but that of the sources."""

    rocwheel: str
    """The version of rocwheel."""
    source_date_epoch: _Seconds
    """Seconds since 1970 that date members of archives."""
    options: dict[str, Any]
    """Those that change bytes, by the names that they have in the Python API; ``level`` is libdeflate's."""
    recipe: ManifestRecipe
    inputs: tuple[ManifestInput, ...]
    outputs: tuple[ManifestOutput, ...]
    """Sorted by path."""
    tools: dict[str, str] = {}
    """Versions of Python and of libraries, by their names."""
    codecs: dict[str, str] = {}
    """By the name of a codec, a hash of what it makes of a sample: some choose their ways by the processor."""
