"""Reading of build manifests, which strangers may have written."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import convert_value
from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted, shortened
from rocwheel.core.reading import read_small
from rocwheel.core.workers import raise_all
from rocwheel.distributions.build_manifest.values import BUILT_FOLDER, MANIFEST_NAME, MANIFEST_SCHEMA, BuildManifest
from rocwheel.distributions.zip.member_names import outside_reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "MOST_OF_MANIFEST",
    "find_manifest",
    "manifest_beside",
    "parse_manifest",
    "read_manifest",
    "read_manifest_text",
]

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
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise InputError(source, f"is not JSON ({shortened(str(e))})", expected=_EXPECTED) from e
    _check_schema(document, source)
    try:
        manifest = convert_value(document, BuildManifest)
    except msgspec.ValidationError as e:
        raise InputError(source, f"is damaged: {shortened(str(e))}", expected=_EXPECTED) from e
    raise_all(source, list(_path_problems(manifest, source)))
    return manifest


def _check_schema(document: object, source: str) -> None:
    schema = document.get("schema") if isinstance(document, dict) else None
    match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        found = f"has the schema {quoted(str(schema))}" if schema else "has no schema"
        raise InputError(source, found, expected=_EXPECTED)
    if int(match[1]) != _OURS:
        found = f"has the schema {match[0]}, of another rocwheel"
        raise InputError(source, found, expected=MANIFEST_SCHEMA, remedy="Use the rocwheel that has written it.")


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
