"""The manifest of a build: what went in, how it was built, and what came out, with checksums and provenance.

Statements: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md. The predicate:
https://slsa.dev/spec/v1.0/provenance. Both are written as JSON, unsigned.

So whatever stands beside a manifest is what it says, even after a build was killed.
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


def render_manifest(manifest: BuildManifest) -> bytes:
    """Return a manifest as JSON, in ASCII, so that names which are not UTF-8 need no rule of their own."""
    document = {"schema": MANIFEST_SCHEMA, **msgspec.to_builtins(manifest)}
    return json.dumps(document, indent=2).encode() + b"\n"


def render_sums(manifest: BuildManifest) -> bytes:
    """Return what ``sha256sum -c`` takes in the manifest's folder: a line for each output."""
    return "".join(f"{output.sha256}  {output.path}\n" for output in manifest.outputs).encode()


MOST_OF_MANIFEST = 64 << 20
"""Bytes; a build of ten thousand outputs has two million."""
_SCHEMA = re.compile(r"rocwheel\.build-manifest/([0-9]{1,9})")
_OURS = int(MANIFEST_SCHEMA.rpartition("/")[2])
_EXPECTED = f"a {MANIFEST_NAME} that rocwheel build has written"


def find_manifest(path: Path) -> Path:
    """Return where the manifest of a build is, which is given by its file, its folder, or that of its packages."""
    if not path.is_dir():
        return path
    return manifest_beside(path) or path / MANIFEST_NAME


def manifest_beside(folder: Path) -> Path | None:
    """Return the manifest of the build whose packages a folder holds, which may be given as ``.``; None without one."""
    is_named = folder.name not in {"", ".."}
    name, parent = (folder.name, folder.parent) if is_named else (folder.resolve().name, folder / "..")
    beside = parent / MANIFEST_NAME
    return beside if name == BUILT_FOLDER and beside.is_file() else None


def read_manifest(path: Path) -> BuildManifest:
    """Read a manifest; raises `InputError` for a file that can't be read, and what `parse_manifest` raises."""
    return parse_manifest(read_manifest_text(path), str(path))


def read_manifest_text(path: Path) -> bytes:
    """Return the JSON text of a manifest; raises `InputError` for a file that can't be read, or is too large."""
    return read_small(path, MOST_OF_MANIFEST, expected=_EXPECTED)


def parse_manifest(data: bytes, source: str) -> BuildManifest:
    """Return what the JSON text of a manifest says.

    Raises `InputError` for text that is none, for one of a newer rocwheel, and for an output whose path leads out of
    the folder or is there twice, and for a place that no file can have; `ProblemsError` for several.
    """
    if not data.strip():
        raise InputError(source, "is empty", expected=_EXPECTED, remedy="Copy it again, or build again.")
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
        found = f"has the schema {match[0]}, of another rocwheel"
        raise InputError(source, found, expected=MANIFEST_SCHEMA, remedy="Use the rocwheel that has written it.")
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
            found = f"has {quoted(name)} at {quoted(place)}"
            yield InputError(source, found, expected="a path or a URL")
    for path, number in counts.items():
        if reason := _path_fault(path):
            yield InputError(source, f"names the output {quoted(path)}, {reason}", expected="a path below its folder")
        if number > 1:
            yield InputError(source, f"names the output {quoted(path)} {number} times", expected="each once")


def _is_possible(place: str) -> bool:
    """Return whether a text can be a path: of names that are not UTF-8, bytes stand as surrogates."""
    try:
        return b"\0" not in os.fsencode(place)
    except UnicodeEncodeError:
        return False


def _path_fault(path: str) -> str:
    if not path.isprintable():
        return "which has characters that can't be printed"
    if path in {"", "."}:
        return "which is no file"
    return outside_reason(path).replace("of the wheel", "of the folder")


STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
DEFAULT_BUILDER = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#unnamed-builder"
"""The builder where nobody names the service that ran the build; the section says that it is nobody's name."""
BUILD_TYPE = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#attestations"
_STATEMENT = frozenset({"_type", "subject", "predicateType", "predicate"})
_PREDICATE = frozenset({"buildDefinition", "runDetails"})
_HASHED = "what sha256sum prints for its files but artifact_manifest.txt, sorted by path"
"""What the hash of an artifact is of: no archive has it. Signing tools refuse a name of their own for it."""


def make_predicate(manifest: BuildManifest, text: bytes, builder: str = DEFAULT_BUILDER) -> dict[str, Any]:
    """Return the provenance of a build; ``builder`` is a URI that stands for who ran it.

    ``text`` is what the manifest was read from, which may be spelled otherwise than this rocwheel writes it.
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
    """Return the statement about one output; its subject is named without folders, as indexes name files."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": output.path.rpartition("/")[2], "digest": {"sha256": output.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }


def render_json(document: dict[str, Any]) -> bytes:
    """Return a document as JSON: always the same bytes for the same values."""
    return json.dumps(document, indent=2).encode() + b"\n"


def is_rendered(data: bytes) -> bool:
    """Return whether a file is a statement, or a predicate alone, of a build type of ours, as `render_json` has it.

    What is signed has more around it, or other fields.
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


_REMEDY = "Move it, or change --dest-dir."
_SUM = re.compile(rb"[0-9a-f]{64}  dist/.+\.(?:whl|tar\.gz)")
_MAX_SUMS = 64 << 20


def check_manifest_place(dest_dir: Path) -> None:
    """Raise `InputError` for what stands in the place of a manifest or of its checksums, and is not of a build.

    `ProblemsError` for both. A folder of artifacts may have checksums of its own, for instance.
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
            yield InputError(path, f"is {kind}", expected="nothing, or what an earlier build wrote", remedy=_REMEDY)
        elif name == SUMS_NAME and not _holds_sums(path, status.st_size):
            expected = "nothing, or those of an earlier build"
            yield InputError(path, "holds checksums of other files than a build's", expected=expected, remedy=_REMEDY)


def _holds_sums(path: Path, size: int) -> bool:
    try:
        return size <= _MAX_SUMS and are_sums_of_a_build(path.read_bytes())
    except OSError as e:
        raise read_error(path, e) from e


def are_sums_of_a_build(data: bytes) -> bool:
    """Return whether checksums are those of distributions of a build, all of them in ``dist``."""
    return all(_SUM.fullmatch(line) for line in data.splitlines())


def remove_manifest(dest_dir: Path) -> None:
    """Remove the attestations of an earlier build, then its manifest and checksums.

    Other files among the attestations stay. Raises `WorkError` where something can't be removed.
    """
    _remove_attestations(dest_dir / ATTESTATIONS)
    for name in (MANIFEST_NAME, SUMS_NAME):
        _remove(dest_dir / name)
    # Have a folder's names on the disk, so that what comes later does not get there first.
    with suppress(OSError):  # no such folder yet, or a file system that can't
        descriptor = os.open(dest_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_attestations(folder: Path) -> None:
    """Remove what `rocwheel attest` has written, and folders that are empty then; of a symlink, the link alone.

    What others have put there stays, such as statements that were signed.
    """
    if folder.is_symlink():
        _remove(folder)
        return
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            is_named_so = name == PREDICATE_NAME or name.endswith(STATEMENT_SUFFIX)
            if is_named_so and is_own_attestation(Path(root, name)):
                _remove(Path(root, name))
        with suppress(OSError):  # there are other files
            Path(root).rmdir()


def is_own_attestation(path: Path) -> bool:
    """Return whether a file is an unsigned statement or predicate as `rocwheel attest` writes it, byte by byte.

    Raises `InputError` for one that can't be read.
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
    """Write the checksums, and the manifest last; return its path. Raises `WorkError` when that fails."""
    for name, data in ((SUMS_NAME, render_sums(manifest)), (MANIFEST_NAME, render_manifest(manifest))):
        with atomic_file(dest_dir / name) as file:
            file.write(data)
    return dest_dir / MANIFEST_NAME
