"""Finds DLLs and programs in a tree in the same way as Windows: by file name, ignoring case."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from rocwheel.binary.pe.header import AMD64
from rocwheel.core.names import fold_case
from rocwheel.environment.devel_paths import is_devel_archive
from rocwheel.wheels.tags import parse_platforms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.environment.file_reports import PeReport
    from rocwheel.environment.tree import Distribution, InstalledFile, Tree


class WindowsFiles:
    """The PE files in a tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @cached_property
    def is_platform(self) -> bool:
        """Whether the tree is for Windows, judging by its tags.

        Without tags, it must have DLLs and no files for Linux.
        """
        tagged = {tag.system for owner in self._tree.distributions for tag in parse_platforms(platform_texts(owner))}
        if systems := tagged - {"any", "other"}:
            return "windows" in systems
        return any(report.is_dll and report.is_amd64 for _, report in self._reports) and not any(
            file.is_loadable for file in self._tree.files
        )

    @cached_property
    def _reports(self) -> tuple[tuple[InstalledFile, PeReport], ...]:
        found = ((file, file.windows) for file in self._tree.files)
        return tuple((file, report) for file, report in found if report is not None)

    @cached_property
    def audited(self) -> tuple[tuple[InstalledFile, PeReport], ...]:
        """The audited files that the x86-64 loader can load, with their reports.

        Empty if the tree isn't for Windows.
        """
        return tuple(
            (file, report)
            for file, report in self._reports
            if self.is_platform
            and report.machine == AMD64
            and report.pe is not None
            and not self._tree.is_context(file)
        )

    @cached_property
    def places(self) -> tuple[tuple[str, InstalledFile], ...]:
        """Each path that a file has or unpacks to on Windows, with the file. Packed development files are included.

        If the tree isn't for Windows, the result covers only files in wheels for any platform, which Windows also
        accepts.
        """
        files = [file for file in self._tree.files if self.is_platform or file.distribution in self._for_any]
        roots = {file.folder: path.partition("/")[0] for file in files for path in _archive_paths(file)[:1]}
        return tuple(place for file in files for place in _places(file, roots))

    @cached_property
    def _for_any(self) -> frozenset[str]:
        """The sources of wheels for any platform, except for wheels that contain code for Linux."""
        wheels = (owner for owner in self._tree.distributions if owner.is_wheel and platform_texts(owner) == "any")
        files = self._tree.files_of
        return frozenset(one.source for one in wheels if not any(file.is_loadable for file in files[one.source]))

    @cached_property
    def by_name(self) -> dict[str, tuple[InstalledFile, ...]]:
        """The DLLs with a file name, for any machine, with one DLL for each path.

        The keys are file names, normalized in the same way as Windows compares them.

        Python extension modules are also DLLs, and some import from each other.
        """
        found: dict[str, dict[str, InstalledFile]] = defaultdict(dict)
        for file, report in self._reports:
            if report.is_dll:
                found[fold_case(file.name)].setdefault(file.path, file)
        return {name: tuple(files.values()) for name, files in found.items()}

    def named(self, name: str) -> tuple[InstalledFile, ...]:
        """Return the DLLs with a file name, ignoring case, for any machine."""
        return self.by_name.get(fold_case(name), ())

    def is_damaged(self, name: str) -> bool:
        """Return whether a file with this name, ignoring case, can't be read as the DLL that it appears to be."""
        return fold_case(name) in self._damaged

    @cached_property
    def _damaged(self) -> frozenset[str]:
        return frozenset(fold_case(file.name) for file in self._tree.files if file.problem and file.windows is None)


def _places(file: InstalledFile, roots: Mapping[str, str]) -> Iterator[tuple[str, InstalledFile]]:
    yield file.path, file
    if is_devel_archive(file.path):
        yield from ((path, file) for path in file.devel_paths)
    else:
        # Without an archive, assume that the tree has the same name as in the default recipe.
        root = roots.get(file.folder, f"_{file.folder}")
        yield from ((f"{root}/{path}", file) for path in file.devel_paths)


def _archive_paths(file: InstalledFile) -> tuple[str, ...]:
    return file.devel_paths if is_devel_archive(file.path) else ()


def platform_texts(owner: Distribution) -> str:
    """Return a distribution's platform tags, joined by dots.

    A wheel's file name takes precedence over its WHEEL file.
    """
    return owner.name_tags[2] or ".".join(dict.fromkeys(tag.rpartition("-")[2] for tag in owner.tags)) or "any"


def is_for_windows(owner: Distribution) -> bool:
    """Return whether a distribution is for Windows, judging by its tags."""
    return any(tag.system == "windows" for tag in parse_platforms(platform_texts(owner)))
