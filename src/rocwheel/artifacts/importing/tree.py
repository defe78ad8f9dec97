"""Writing imported files into artifact folders: ``{name}_{component}_{target}``, a manifest and a stage folder each."""

from __future__ import annotations

import filecmp
import io
import posixpath
import shutil
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.artifacts.importing.choose_artifact import Destination, Origin
from rocwheel.artifacts.importing.text_edit import edited_bytes
from rocwheel.artifacts.model.dist_info import DIST_INFO_PATH, with_declared_targets
from rocwheel.artifacts.model.manifest import MANIFEST_NAME, format_manifest
from rocwheel.artifacts.model.names import GENERIC
from rocwheel.artifacts.model.paths import ancestors
from rocwheel.artifacts.model.sdk_manifest import SDK_MANIFEST_PATH
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocwheel.artifacts.importing.choose_artifact import ImportRules
    from rocwheel.artifacts.importing.table import Link
    from rocwheel.artifacts.model.sdk_manifest import SourcePackage

__all__ = ["ImportConflictError", "ImportTree", "Readable"]

_CHUNK = 1 << 20
_LARGEST_TEXT = 16 << 20
"""Bytes; the files that tables edit have some hundred thousand at most."""
_OVERLAY = "base/aux-overlay/stage"
"""TheRock's stage folder for what the build of the SDK itself adds."""


class Readable(Protocol):
    """Bytes that are read forward."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""


class ImportConflictError(InputError):
    """Two sources want one place in the prefix."""


class ImportTree:
    """The artifact folders below ``root``, and what is at each place of the prefix that they make up."""

    def __init__(self, root: Path, rules: ImportRules) -> None:
        self.root = root
        self.files: dict[str, Destination] = {}
        self.links: dict[str, Destination] = {}
        self._origins: dict[str, Origin] = {}
        self._folders: set[str] = set()
        self._stages: dict[str, set[str]] = {}
        self._packages: dict[str, set[str]] = {}
        self._rules = rules

    def add_file(self, destination: Destination, origin: Origin, content: Readable, mode: int) -> None:
        """Write a file, with the edits that the table makes to it.

        Raises `ImportConflictError` when something else is at that place already; the same bytes are accepted. Raises
        `InputError` for a file with edits that is too large for text.
        """
        path = self._writable(destination, origin)
        edits = [edit for edit in self._rules.edits if edit.applies_to(destination.path, origin.path)]
        known = self.files.get(destination.path)
        written = path.with_name(f".{path.name}.second") if known else path
        with written.open("wb") as file:
            if edits:
                file.write(edited_bytes(_read_text(content, origin), edits, str(origin)))
            else:
                shutil.copyfileobj(content, file, _CHUNK)
        written.chmod(mode | 0o600)
        if known or destination.path in self._origins:
            self._drop_second(destination, origin, written)
        else:
            self._record(destination, origin, self.files)

    def add_copy(self, destination: Destination, origin: Origin, original: Destination | None, mode: int) -> None:
        """Write a file that has the bytes of another one, already written; raise `InputError` for none."""
        if original is None:
            raise InputError(str(origin), "is a hard link to a file that is not imported")
        with self.path_of(original).open("rb") as content:
            self.add_file(destination, origin, content, mode)

    def add_link(self, destination: Destination, origin: Origin, text: str) -> None:
        """Write a symlink; raises `ImportConflictError` when something else is at its place."""
        path = self._writable(destination, origin)
        if destination.path in self.links and str(self.path_of(self.links[destination.path]).readlink()) == text:
            return
        if destination.path in self._origins:
            raise self._conflict(destination, origin)
        path.symlink_to(text)
        self._record(destination, origin, self.links)

    def add_declared(self) -> None:
        """Write those links and files of the table whose place is free and for which what they are for was imported."""
        for link in self._rules.table.link:
            if (target := self._target(link)) and self._is_free(link.path):
                destination = self._rules.added(link.artifact, link.path)
                text = posixpath.relpath(target, posixpath.dirname(link.path) or ".")
                self.add_link(destination, Origin(link.path, "the table"), text)
        for file in self._rules.table.file:
            if file.beside in self._origins and self._is_free(file.path):
                destination = self._rules.added(file.artifact, file.path)
                self.add_file(destination, Origin(file.path, "the table"), io.BytesIO(file.text.encode()), 0o644)

    def _target(self, link: Link) -> str | None:
        """Return what a link of the table points to, if it was imported."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.to))
        if not any(character in target for character in "*?["):
            return target if target in self._folders or target in self._origins else None
        pattern = PathPatterns([target])
        return max((path for path in {*self._folders, *self._origins} if pattern.matches(path)), default=None)

    def _is_free(self, path: str) -> bool:
        return path not in self._origins and path not in self._folders

    def write_manifests(self, version: str, packages: Mapping[str, SourcePackage]) -> None:
        """Write ``therock_manifest.json``, ``dist_info.json`` and the manifest of every artifact.

        ``packages`` are those of the sources, by name; the ones that anything was imported of are noted. A source may
        contain the JSON files itself; then they only move to the artifact in which TheRock keeps them.
        """
        is_split = any(file.target != GENERIC for file in self.files.values())
        flags = {"KPACK_SPLIT_ARTIFACTS": True} if is_split else {}
        facts: dict[str, object] = {"rocm_version": version, "rocm_package_version": version, "flags": flags}
        if packages:
            facts["debian_packages"] = [
                msgspec.structs.replace(packages[name], artifacts=tuple(sorted(artifacts)))
                for name, artifacts in sorted(self._packages.items())
                if name in packages
            ]
        self._write_json(SDK_MANIFEST_PATH, msgspec.json.format(msgspec.json.encode(facts)) + b"\n")
        self._write_json(DIST_INFO_PATH, with_declared_targets(DIST_INFO_PATH, b"{}", ()))
        for folder, stages in self._stages.items():
            (self.root / folder / MANIFEST_NAME).write_bytes(format_manifest(tuple(sorted(stages))))

    def path_of(self, destination: Destination) -> Path:
        """Return the path on disk of something placed."""
        folder, stage = _place_of(destination)
        return self.root / folder / stage / destination.path

    def _write_json(self, path: str, data: bytes) -> None:
        folder = "base_lib_generic"
        self._stages.setdefault(folder, set()).add(_OVERLAY)
        place = self.root / folder / _OVERLAY / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if path in self.files:
            self.path_of(self.files.pop(path)).replace(place)
        else:
            place.write_bytes(data)

    def _writable(self, destination: Destination, origin: Origin) -> Path:
        if destination.path in self._folders:
            raise ImportConflictError(str(origin), f"goes to {destination.path!r}, which is a folder")
        for folder in ancestors(destination.path):
            if folder in self._origins:
                raise ImportConflictError(
                    str(origin), f"goes below {folder!r}, which is not a folder but {self._origins[folder]}"
                )
        path = self.path_of(destination)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _drop_second(self, destination: Destination, origin: Origin, second: Path) -> None:
        first = self.files.get(destination.path)
        same = first is not None and filecmp.cmp(self.path_of(first), second, shallow=False)
        second.unlink()
        if not same:
            raise self._conflict(destination, origin)

    def _conflict(self, destination: Destination, origin: Origin) -> ImportConflictError:
        return ImportConflictError(
            str(origin),
            f"goes to {destination.path!r}, where {self._origins[destination.path]} is already, with other content",
            remedy="Leave one of them out.",
        )

    def _record(self, destination: Destination, origin: Origin, kind: dict[str, Destination]) -> None:
        kind.setdefault(destination.path, destination)
        self._origins.setdefault(destination.path, origin)
        self._folders.update(ancestors(destination.path))
        folder, stage = _place_of(destination)
        self._stages.setdefault(folder, set()).add(stage)
        if origin.package:
            self._packages.setdefault(origin.package, set()).add(folder)


def _place_of(destination: Destination) -> tuple[str, str]:
    return destination.artifact_name, f"{destination.artifact}/stage"


def _read_text(content: Readable, origin: Origin) -> bytes:
    data = content.read(_LARGEST_TEXT + 1)
    if len(data) > _LARGEST_TEXT:
        found = f"has more than {_LARGEST_TEXT >> 20} MiB, and the table changes texts in it"
        remedy = "Look at the file, and take its edits out of the table (--table)."
        raise InputError(str(origin), found, expected="a smaller file, as scripts and CMake files are", remedy=remedy)
    return data
