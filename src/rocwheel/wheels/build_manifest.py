"""Reads and writes build manifests: the inputs, options, and outputs of a build, with checksums and provenance.

The format of statements: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md. The format of the
predicate: https://slsa.dev/spec/v1.0/provenance. Both are written as unsigned JSON.

A build removes the old manifest first and writes the new one last. Therefore, the files next to a manifest always match
it, even if a build is killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from rocwheel.core.decoding import convert_value
from rocwheel.core.errors import InputError, read_error, write_error
from rocwheel.core.messages import quoted, shortened
from rocwheel.core.reading import read_small
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.wheels.sdist import LATEST_SECONDS
from rocwheel.wheels.zip_refusals import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterator


MANIFEST_NAME = "rocwheel-build.json"
BUILT_FOLDER = "dist"
"""The folder for a build's distributions, next to the manifest."""
SUMS_NAME = "SHA256SUMS"
"""The name of the checksum file, in the format of ``sha256sum -c``."""
ATTESTATIONS = "attestations"
"""The folder for statements about the outputs, next to the manifest."""
PREDICATE_NAME = "provenance.json"
STATEMENT_SUFFIX = ".intoto.json"
MANIFEST_SCHEMA = "rocwheel.build-manifest/1"

_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=LATEST_SECONDS)]
_Size = Annotated[int, msgspec.Meta(ge=0)]


class ManifestInput(msgspec.Struct, frozen=True):
    """An artifact that was used in the build."""

    name: str
    """The name, such as ``blas_lib_generic``."""
    files: _Size
    size: _Size
    """The total size of the artifact's files in bytes."""
    sha256: _Sha256
    """The hash from `rocwheel.artifacts.summary`, which is the same for an artifact's folder and its archive."""
    place: str
    """The location: a path relative to the manifest's folder, or a URL; in a store, only the artifact's name."""


class ManifestRecipe(msgspec.Struct, frozen=True):
    """The recipe of the build."""

    name: str
    """The file name, or ``rocm.toml`` for the built-in recipe."""
    sha256: _Sha256
    place: str = ""
    """The location, in the same form as an input's location; empty for the built-in recipe."""


class ManifestOutput(msgspec.Struct, frozen=True):
    """A distribution that the build created."""

    path: str
    """The ``/``-separated path relative to the manifest's folder."""
    size: _Size
    sha256: _Sha256


class BuildManifest(msgspec.Struct, frozen=True):
    """A build. Identical builds have identical manifests, because the only date is the date of the sources."""

    rocwheel: str
    """The version of rocwheel."""
    source_date_epoch: _Seconds
    """The date of archive members, in seconds since 1970."""
    options: dict[str, Any]
    """The options that affect the output, named as in the Python API; ``level`` is the libdeflate level."""
    recipe: ManifestRecipe
    inputs: tuple[ManifestInput, ...]
    outputs: tuple[ManifestOutput, ...]
    """The outputs, sorted by path."""
    tools: dict[str, str] = {}
    """The versions of Python and the libraries, keyed by name."""
    codecs: dict[str, str] = {}
    """The hash of each codec's output for a sample, keyed by codec name.

    Some codecs choose their code path based on the processor.
    """


def render_manifest(manifest: BuildManifest) -> bytes:
    """Return a manifest as ASCII-only JSON, so that names that aren't UTF-8 don't need special treatment."""
    document = {"schema": MANIFEST_SCHEMA, **msgspec.to_builtins(manifest)}
    return json.dumps(document, indent=2).encode() + b"\n"


def render_sums(manifest: BuildManifest) -> bytes:
    """Return the checksum file: a line for each output, in the format of ``sha256sum -c`` for the manifest's folder."""
    return "".join(f"{output.sha256}  {output.path}\n" for output in manifest.outputs).encode()


MOST_OF_MANIFEST = 64 << 20
"""The size limit in bytes. The manifest of a build with ten thousand outputs is two million bytes long."""
_SCHEMA = re.compile(r"rocwheel\.build-manifest/([0-9]{1,9})")
_OURS = int(MANIFEST_SCHEMA.rpartition("/")[2])
_EXPECTED = f"a {MANIFEST_NAME} written by 'rocwheel build'"


def find_manifest(path: Path) -> Path:
    """Return the path of a build's manifest; ``path`` is the manifest, its folder, or the packages' folder."""
    if not path.is_dir():
        return path
    return manifest_beside(path) or path / MANIFEST_NAME


def manifest_beside(folder: Path) -> Path | None:
    """Return the path of the manifest of the build whose packages are in ``folder``, which may be ``.``, or `None`."""
    is_named = folder.name not in {"", ".."}
    name, parent = (folder.name, folder.parent) if is_named else (folder.resolve().name, folder / "..")
    beside = parent / MANIFEST_NAME
    return beside if name == BUILT_FOLDER and beside.is_file() else None


def read_manifest(path: Path) -> BuildManifest:
    """Read a manifest. Raises `InputError` if the file can't be read, and the same errors as `parse_manifest`."""
    return parse_manifest(read_manifest_text(path), str(path))


def read_manifest_text(path: Path) -> bytes:
    """Return the JSON text of a manifest. Raises `InputError` if the file can't be read or is too large."""
    return read_small(path, MOST_OF_MANIFEST, expected=_EXPECTED)


def parse_manifest(data: bytes, source: str) -> BuildManifest:
    """Parse the JSON text of a manifest.

    Raises `InputError` if the text isn't a manifest or was written by a newer rocwheel. Raises the same error for an
    invalid location, and for an output path that is duplicated or points outside the folder. Raises `ProblemsError`
    for several problems.
    """
    if not data.strip():
        raise InputError(source, "is empty", expected=_EXPECTED, remedy="Copy the file again, or repeat the build.")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise InputError(source, f"is not JSON ({shortened(str(e))})", expected=_EXPECTED) from e
    schema = document.get("schema") if isinstance(document, dict) else None
    match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        found = f"has the schema {quoted(str(schema))}" if schema else "has no schema"
        raise InputError(source, found, expected=_EXPECTED)
    if int(match[1]) != _OURS:
        found = f"has the schema {match[0]}, which is from a different version of rocwheel"
        raise InputError(
            source, found, expected=MANIFEST_SCHEMA, remedy="Use the version of rocwheel that wrote the file."
        )
    try:
        manifest = convert_value(document, BuildManifest)
    except msgspec.ValidationError as e:
        raise InputError(source, f"is damaged: {shortened(str(e))}", expected=_EXPECTED) from e
    raise_all(source, list(_path_problems(manifest, source)))
    return manifest


def _path_problems(manifest: BuildManifest, source: str) -> Iterator[InputError]:
    counts = Counter(output.path for output in manifest.outputs)
    places = [(used.name, used.place) for used in manifest.inputs]
    for name, place in (*places, (manifest.recipe.name, manifest.recipe.place)):
        if not _is_possible(place):
            found = f"lists {quoted(name)} at {quoted(place)}"
            yield InputError(source, found, expected="a path or a URL")
    for path, number in counts.items():
        if reason := _path_fault(path):
            yield InputError(
                source, f"lists the output {quoted(path)}, {reason}", expected="a path inside the manifest's folder"
            )
        if number > 1:
            yield InputError(
                source, f"lists the output {quoted(path)} {number} times", expected="each output only once"
            )


def _is_possible(place: str) -> bool:
    """Return whether text can be a path. In names that aren't valid UTF-8, surrogates represent the invalid bytes."""
    try:
        return b"\0" not in os.fsencode(place)
    except UnicodeEncodeError:
        return False


def _path_fault(path: str) -> str:
    if not path.isprintable():
        return "which contains control characters"
    if path in {"", "."}:
        return "which is not a file"
    return outside_reason(path).replace("the wheel", "the folder")


STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
DEFAULT_BUILDER = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#unnamed-builder"
"""The default builder. The section at this URL explains that the builder isn't identified."""
BUILD_TYPE = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#attestations"
_STATEMENT = frozenset({"_type", "subject", "predicateType", "predicate"})
_PREDICATE = frozenset({"buildDefinition", "runDetails"})
_HASHED = "what sha256sum prints for its files except artifact_manifest.txt, sorted by path"
"""Describes an input to an artifact's hash, because the hash isn't the hash of an archive.

Signing tools reject unknown hash names.
"""


def make_predicate(manifest: BuildManifest, text: bytes, builder: str = DEFAULT_BUILDER) -> dict[str, Any]:
    """Return a build's provenance; ``builder`` is a URI that identifies who ran the build.

    ``text`` is the text from which the manifest was read. Its formatting may differ from the output of this version.
    """
    recipe = {"name": manifest.recipe.name, "digest": {"sha256": manifest.recipe.sha256}}
    listed = {"name": MANIFEST_NAME, "digest": {"sha256": hashlib.sha256(text).hexdigest()}}
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"options": manifest.options, "source_date_epoch": str(manifest.source_date_epoch)},
            "internalParameters": {"tools": manifest.tools, "codecs": manifest.codecs},
            "resolvedDependencies": [*map(_dependency, manifest.inputs), recipe],
        },
        "runDetails": {
            "builder": {"id": builder, "version": {"rocwheel": manifest.rocwheel}},
            "byproducts": [listed],
        },
    }


def _dependency(used: ManifestInput) -> dict[str, Any]:
    return {
        "name": used.name,
        "digest": {"sha256": used.sha256},
        "annotations": {"hashed": _HASHED, "files": str(used.files), "bytes": str(used.size)},
    }


def make_statement(output: ManifestOutput, predicate: dict[str, Any]) -> dict[str, Any]:
    """Return the statement about one output. As in an index, the subject's name doesn't include a folder."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": output.path.rpartition("/")[2], "digest": {"sha256": output.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }


def render_json(document: dict[str, Any]) -> bytes:
    """Return a document as JSON. Equal values always produce the same output."""
    return json.dumps(document, indent=2).encode() + b"\n"


def is_rendered(data: bytes) -> bool:
    """Return whether a file is an unsigned statement or predicate of our build type, formatted by `render_json`.

    A signed file has an envelope or additional fields.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    predicate = document.get("predicate") if _has(document, _STATEMENT) else document
    if not _has(predicate, _PREDICATE) or not isinstance(predicate["buildDefinition"], dict):
        return False
    return predicate["buildDefinition"].get("buildType") == BUILD_TYPE and render_json(document) == data


def _has(document: object, names: frozenset[str]) -> bool:
    return isinstance(document, dict) and document.keys() == names


_REMEDY = "Move that file, or choose a different --dest-dir."
_SUM = re.compile(rb"[0-9a-f]{64}  dist/.+\.(?:whl|tar\.gz)")
_MAX_SUMS = 64 << 20


def check_manifest_place(dest_dir: Path) -> None:
    """Raise `InputError` if the manifest or the checksums would replace something that isn't a build's output.

    Raises `ProblemsError` if both would. For example, a folder of artifacts may have its own checksums.
    """
    raise_all(str(dest_dir), list(_obstacles(dest_dir)))


def _obstacles(dest_dir: Path) -> Iterator[InputError]:
    for name in (MANIFEST_NAME, SUMS_NAME):
        path = dest_dir / name
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as e:
            yield read_error(path, e)
            continue
        if not stat.S_ISREG(status.st_mode):
            kind = "a symlink" if stat.S_ISLNK(status.st_mode) else "not a file"
            yield InputError(path, f"is {kind}", expected="no file, or a file from an earlier build", remedy=_REMEDY)
        elif name == SUMS_NAME and not _holds_sums(path, status.st_size):
            expected = "no file, or checksums from an earlier build"
            yield InputError(
                path, "contains checksums for files that aren't from a build", expected=expected, remedy=_REMEDY
            )


def _holds_sums(path: Path, size: int) -> bool:
    try:
        return size <= _MAX_SUMS and are_sums_of_a_build(path.read_bytes())
    except OSError as e:
        raise read_error(path, e) from e


def are_sums_of_a_build(data: bytes) -> bool:
    """Return whether all checksums are for distributions in ``dist``, as in a build's checksum file."""
    return all(_SUM.fullmatch(line) for line in data.splitlines())


def remove_manifest(dest_dir: Path) -> None:
    """Remove an earlier build's attestations, and then its manifest and checksums.

    Other files in the attestations folder are preserved. Raises `WorkError` if a file can't be removed.
    """
    if not any(os.path.lexists(dest_dir / name) for name in (ATTESTATIONS, MANIFEST_NAME, SUMS_NAME)):
        return
    _remove_attestations(dest_dir / ATTESTATIONS)
    for name in (MANIFEST_NAME, SUMS_NAME):
        _remove(dest_dir / name)
    # Sync the folder, so that the removal reaches the disk before any later write.
    with suppress(OSError):  # the file system can't sync folders
        descriptor = os.open(dest_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_attestations(folder: Path) -> None:
    """Remove the files that `rocwheel attest` wrote, and then remove empty folders.

    If ``folder`` is a symlink, remove only the symlink.

    Other files, such as signed statements, are preserved.
    """
    if folder.is_symlink():
        _remove(folder)
        return
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            is_named_so = name == PREDICATE_NAME or name.endswith(STATEMENT_SUFFIX)
            if is_named_so and is_own_attestation(Path(root, name)):
                _remove(Path(root, name))
        with suppress(OSError):  # the folder contains other files
            Path(root).rmdir()


def is_own_attestation(path: Path) -> bool:
    """Return whether a file is, byte for byte, an unsigned statement or predicate as written by `rocwheel attest`.

    Raises `InputError` if the file can't be read.
    """
    try:
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_SUMS and is_rendered(path.read_bytes())
    except OSError as e:
        raise read_error(path, e) from e


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise write_error(path, e) from e


def write_manifest(dest_dir: Path, manifest: BuildManifest) -> Path:
    """Write the checksums and then the manifest; return the manifest's path. Raises `WorkError` if writing fails."""
    for name, data in ((SUMS_NAME, render_sums(manifest)), (MANIFEST_NAME, render_manifest(manifest))):
        with atomic_file(dest_dir / name) as file:
            file.write(data)
    return dest_dir / MANIFEST_NAME
