"""The DLLs and programs of a tree, as Windows finds them: by file names, in any case."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from rocwheel.binary.pe.header import AMD64
from rocwheel.distributions.formats.platforms.tags import parse_platforms
from rocwheel.foundation.windows_names import fold_case

if TYPE_CHECKING:
    from rocwheel.installed.pe_report import PeReport
    from rocwheel.installed.tree import Distribution, InstalledFile, Tree

__all__ = ["WindowsFiles", "platform_texts"]


class WindowsFiles:
    """The PE files of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    @cached_property
    def is_platform(self) -> bool:
        """Whether the tree is for Windows: its packages are tagged so, else it has DLLs and nothing for Linux."""
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
        """The audited files that the loader of x86-64 loads, with their reports; none in a tree for another system."""
        return tuple(
            (file, report)
            for file, report in self._reports
            if self.is_platform
            and report.machine == AMD64
            and report.pe is not None
            and not self._tree.is_context(file)
        )

    @cached_property
    def by_name(self) -> dict[str, tuple[InstalledFile, ...]]:
        """File name, as Windows compares it, to the DLLs of that name for any machine, one of each path.

        Python's extension modules are DLLs, too, and some import from each other.
        """
        found: dict[str, dict[str, InstalledFile]] = defaultdict(dict)
        for file, report in self._reports:
            if report.is_dll:
                found[fold_case(file.name)].setdefault(file.path, file)
        return {name: tuple(files.values()) for name, files in found.items()}

    def named(self, name: str) -> tuple[InstalledFile, ...]:
        """Return the DLLs of a file name in any case, for any machine."""
        return self.by_name.get(fold_case(name), ())

    def is_damaged(self, name: str) -> bool:
        """Return whether a file of a name, in any case, is there but can't be read as the DLL that it seems to be."""
        return fold_case(name) in self._damaged

    @cached_property
    def _damaged(self) -> frozenset[str]:
        return frozenset(fold_case(file.name) for file in self._tree.files if file.problem and file.windows is None)


def platform_texts(owner: Distribution) -> str:
    """Return the platform tags of a distribution, joined by dots: of a wheel those of its name, else those of WHEEL."""
    return owner.name_tags[2] or ".".join(dict.fromkeys(tag.rpartition("-")[2] for tag in owner.tags)) or "any"
