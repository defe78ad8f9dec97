"""Writes imported files and symlinks to artifact folders, and adds a manifest to each folder."""

from __future__ import annotations

import filecmp
import io
import posixpath
import shutil
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.artifacts.artifact import MANIFEST_NAME, ancestors, format_stages
from rocwheel.artifacts.import_table import Destination, Origin, edited_bytes
from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.artifacts.sdk_files import DIST_INFO_PATH, SDK_MANIFEST_PATH, with_declared_targets
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.symlinks import MAX_LINKS, Symlinks, WalkEnd
from rocwheel.targets.compatibility import GENERIC

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rocwheel.artifacts.import_table import AddedLink, ImportRules
    from rocwheel.artifacts.sdk_files import SourcePackage


_ELSEWHERE = "/"
"""Represents any path outside the sources. Paths inside the sources are relative."""


class SymlinkError(InputError):
    """A symlink leaves its source or loops."""


class _Link(msgspec.Struct, frozen=True):
    origin: Origin
    destination: Destination
    raw: str
    is_outside: bool


class LinkTree:
    """The paths in the sources, with their destinations."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._placed: dict[str, Destination] = {}
        self._left_out: set[str] = set()

    def add_file(self, source: str, destination: Destination) -> None:
        """Record the destination of a file."""
        self._placed[source] = destination

    def add_link(self, origin: Origin, destination: Destination, raw: str, *, is_outside: bool = False) -> None:
        """Record a symlink. An absolute target is relative to the root of the source, or dangles if it ``is_outside``.

        Raises `SymlinkError` if another prefix has a link with a different target at that path.
        """
        known = self._links.get(origin.path)
        if known and not origin.package and (known.raw, known.is_outside) != (raw, is_outside):
            found = f"is a symlink to {raw!r}, but {known.origin.source} has a symlink to {known.raw!r}"
            raise SymlinkError(str(origin), found, remedy="Exclude one of the symlinks.")
        self._links[origin.path] = _Link(origin, destination, raw, is_outside)

    def leave_out(self, source: str) -> None:
        """Record that a file in the source is not imported."""
        self._left_out.add(source)

    def placed(self, source: str) -> Destination | None:
        """Return the destination of a file, or `None` if it was not imported."""
        return self._placed.get(source)

    def resolve(self, problems: list[RocwheelError]) -> tuple[list[tuple[Destination, Origin, str]], list[str]]:
        """Return the links at their destinations with their new targets, and the source paths of dangling links.

        The target of a dangling link is not in the sources. If a link's target moves to the path of the link itself,
        the link disappears, because the two names have become one. A link to a path that is left out also disappears.
        Errors about links that leave the source or form a loop are added to ``problems``.
        """
        folders = {folder for path in (*self._placed, *self._links) for folder in ancestors(path)}
        moved, dangling = [], []
        for source, link in sorted(self._links.items()):
            try:
                target = self._follow_to_end(source)
            except SymlinkError as e:
                problems.append(e)
                continue
            new_target = self._new_path(target, folders)
            if new_target is None:
                if target not in self._left_out:
                    dangling.append(source)
            elif new_target != link.destination.path:
                text = posixpath.relpath(new_target, posixpath.dirname(link.destination.path) or ".")
                moved.append((link.destination, link.origin, text))
        return moved, dangling

    def _new_path(self, target: str, folders: set[str]) -> str | None:
        if target in self._links:
            return self._links[target].destination.path
        if target in self._placed:
            return self._placed[target].path
        if target in folders:
            return self._new_folder(target)
        return None

    def _new_folder(self, folder: str) -> str | None:
        """Return the new path of a folder, or `None`.

        The path is derived from the first file whose path relative to the folder doesn't change.
        """
        for source, destination in self._placed.items():
            rest = source.removeprefix(folder)
            if rest != source and rest.startswith("/") and destination.path.endswith(rest):
                return destination.path.removesuffix(rest)
        return None

    def _follow_to_end(self, source: str) -> str:
        """Return the direct target of a link. Further links are followed only to check that they end."""
        first = self._step(source)
        target = first
        for _ in range(MAX_LINKS):
            if target not in self._links:
                return first
            target = self._step(target)
        raise self._endless(source)

    def _step(self, source: str) -> str:
        """Return the source path of a link's target, after resolving the links among its parent folders."""
        if self._links[source].is_outside:
            return _ELSEWHERE
        start = posixpath.dirname(source)
        walk = Symlinks(self._text_at).follow(self._links[source].raw, start=start, follows_last=False)
        if walk.end is WalkEnd.ABOVE:
            raise self._leaving(source)
        if walk.end is WalkEnd.LOOP:
            raise self._endless(source)
        return _ELSEWHERE if walk.end is WalkEnd.OUTSIDE else walk.path

    def _text_at(self, path: str) -> str | WalkEnd | None:
        link = self._links.get(path)
        if link is None:
            return None
        return WalkEnd.OUTSIDE if link.is_outside else link.raw

    def _endless(self, source: str) -> SymlinkError:
        origin = str(self._links[source].origin)
        return SymlinkError(origin, "is a symlink that loops", remedy="Fix the symlink in the source.")

    def _leaving(self, source: str) -> SymlinkError:
        link = self._links[source]
        found = f"is a symlink that points out of the tree through {link.raw!r}"
        return SymlinkError(str(link.origin), found, expected="a link to a path in the same source")


_CHUNK = 1 << 20
_LARGEST_TEXT = 16 << 20
"""The size limit in bytes. Files that tables edit have a few hundred thousand bytes at most."""
_OVERLAY = "base/aux-overlay/stage"
"""The stage folder that TheRock uses for files from the SDK build itself."""


class Readable(Protocol):
    """A source of bytes that is read sequentially."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes, or no bytes at the end."""


class ImportConflictError(InputError):
    """Two sources have different content for the same path in the prefix."""


class ImportTree:
    """The artifact folders below ``root``, and the contents of each path in their prefix."""

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
        """Write a file, with the table's edits applied.

        Raises `ImportConflictError` if the path already has different content. The same bytes are accepted. Raises
        `InputError` if a file with edits is too large for a text file.
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
        """Write a copy of a file that was already written. Raises `InputError` if ``original`` is `None`."""
        if original is None:
            raise InputError(str(origin), "is a hard link to a file that is not imported")
        with self.path_of(original).open("rb") as content:
            self.add_file(destination, origin, content, mode)

    def add_link(self, destination: Destination, origin: Origin, text: str) -> None:
        """Write a symlink. Raises `ImportConflictError` if its path is already in use."""
        path = self._writable(destination, origin)
        if destination.path in self.links and str(self.path_of(self.links[destination.path]).readlink()) == text:
            return
        if destination.path in self._origins:
            raise self._conflict(destination, origin)
        path.symlink_to(text)
        self._record(destination, origin, self.links)

    def add_declared(self) -> None:
        """Write the table's links and files if their paths are free and the files that they depend on were imported."""
        for link in self._rules.table.link:
            if (target := self._target(link)) and self._is_free(link.path):
                destination = self._rules.added(link.artifact, link.path)
                text = posixpath.relpath(target, posixpath.dirname(link.path) or ".")
                self.add_link(destination, Origin(link.path, "the table"), text)
        for file in self._rules.table.file:
            if file.beside in self._origins and self._is_free(file.path):
                destination = self._rules.added(file.artifact, file.path)
                self.add_file(destination, Origin(file.path, "the table"), io.BytesIO(file.text.encode()), 0o644)

    def _target(self, link: AddedLink) -> str | None:
        """Return the target of a link in the table, or `None` if the target was not imported."""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), link.to))
        if not any(character in target for character in "*?["):
            return target if target in self._folders or target in self._origins else None
        pattern = PathPatterns([target])
        return max((path for path in {*self._folders, *self._origins} if pattern.matches(path)), default=None)

    def _is_free(self, path: str) -> bool:
        return path not in self._origins and path not in self._folders

    def write_manifests(self, version: str, packages: Mapping[str, SourcePackage]) -> None:
        """Write ``therock_manifest.json``, ``dist_info.json``, and the manifest of every artifact.

        ``packages`` are the source packages, keyed by name. Packages that imported files come from are recorded. If a
        source already contains the JSON files, they are only moved to the artifact where TheRock keeps them.
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
            (self.root / folder / MANIFEST_NAME).write_bytes(format_stages(tuple(sorted(stages))))

    def path_of(self, destination: Destination) -> Path:
        """Return the path of a destination on disk."""
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
                    str(origin), f"goes below {folder!r}, which is not a folder: it is the file {self._origins[folder]}"
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
            f"goes to {destination.path!r}, but {self._origins[destination.path]} has different content for that path",
            remedy="Exclude one of the files.",
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
        found = f"is larger than {_LARGEST_TEXT >> 20} MiB, but the table edits its text"
        remedy = "Check the file, or remove the file's edits from the table (--table)."
        raise InputError(str(origin), found, expected="a smaller file, such as a script or CMake file", remedy=remedy)
    return data
