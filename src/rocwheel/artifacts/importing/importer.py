"""Turning the files of packages or prefixes into artifacts in TheRock's exploded layout."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.importing.choose_artifact import Destination, ImportRules, Origin, for_target
from rocwheel.artifacts.importing.links import LinkTree, SymlinkError
from rocwheel.artifacts.importing.report import ImportReport, LibraryNeeds, MachineNeed, describe
from rocwheel.artifacts.importing.tree import ImportConflictError, ImportTree, Readable
from rocwheel.artifacts.model.artifact import FileKind
from rocwheel.artifacts.model.names import GENERIC
from rocwheel.artifacts.model.paths import path_fault
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.messages import count
from rocwheel.core.writing import new_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.artifacts.importing.kpack_archives import OwnedArchive
    from rocwheel.artifacts.importing.table import ImportTable
    from rocwheel.artifacts.model.sdk_manifest import SourcePackage

__all__ = ["Importer", "SourceMember", "importing"]


class SourceMember(msgspec.Struct, frozen=True):
    """One file, link or folder of a source."""

    origin: Origin
    kind: FileKind
    mode: int = 0o644
    link: str = ""
    """The raw text of a symlink; absolute ones start at the root of the source."""
    is_outside: bool = False
    """Whether an absolute symlink leads out of the source."""
    same_as: str = ""
    """The source path of the file that this one is a hard link to, when it has no content of its own."""
    content: Readable | None = None


class Importer:
    """Takes the members of sources one by one, then sets the links and reports."""

    def __init__(self, table: ImportTable, root: Path, *, strict: bool = False) -> None:
        self.rules = ImportRules(table)
        self.version = ""
        """The version of the SDK; set by the caller."""
        self.left_out: list[str] = []
        """Packages of system libraries that were not asked for."""
        self.unknown: list[str] = []
        """Packages that the table does not name."""
        self.unneeded: list[str] = []
        """Packages that are not ROCm's and hold no library that it needs."""
        self.packages: tuple[MachineNeed, ...] = ()
        """Packages that the imported ones depend on."""
        self.sources: dict[str, SourcePackage] = {}
        """The packages that files come from, by name; set by the caller."""
        self.archives: dict[str, OwnedArchive] = {}
        """Archives of device code that markers of libraries lead to, by source paths; set by the caller."""
        self.kernels: dict[str, str] = {}
        """Kernel files for one GPU target each, by source paths; set by the caller."""
        self._tree = ImportTree(root, self.rules)
        self._needs = LibraryNeeds(self._tree, table.base_libraries)
        self._links = LinkTree()
        self._strict = strict
        self._skipped: Counter[str] = Counter()
        self._unmatched: list[str] = []
        self._is_any_matched = False
        self._problems: list[RocwheelError] = []

    def add(self, member: SourceMember) -> None:
        """Take one member; `finish` reports what is wrong with it, together with everything else."""
        if member.kind is FileKind.DIRECTORY:
            return
        destination = self._place(member.origin)
        if destination and (fault := path_fault(destination.path)):
            source = f"{member.origin.path!r} of {member.origin.source}"
            self._problems.append(InputError(source, f"its path {fault}", remedy="Rename it."))
        elif destination is None:
            self._links.leave_out(member.origin.path)
        elif member.kind is FileKind.SYMLINK:
            with self._collecting():
                self._links.add_link(member.origin, destination, member.link, is_outside=member.is_outside)
        else:
            self._add_file(member, destination)

    def refuse(self, problem: RocwheelError) -> None:
        """Let `finish` report what is wrong with a source as a whole."""
        self._problems.append(problem)

    def missing_libraries(self) -> set[str]:
        """Return the shared libraries that the files taken so far need and that are not among them."""
        return {need.name for need in self._needs.missing()}

    def finish(self, sources: str) -> ImportReport:
        """Write the links and the manifests, and return what was made of the ``sources``, so named in messages.

        Raises `ProblemsError` with everything that was wrong with the sources.
        """
        dangling = self._add_links()
        self._require_sound(sources)
        self._tree.add_declared()
        self._tree.write_manifests(self.version, self.sources)
        return ImportReport(
            version=self.version,
            skipped=dict(sorted(self._skipped.items())),
            unmatched=tuple(sorted(self._unmatched)),
            left_out=tuple(sorted(self.left_out)),
            dangling=tuple(dangling),
            unknown=tuple(sorted(self.unknown)),
            unneeded=tuple(sorted(self.unneeded)),
            packages=self.packages,
            edits={edit.rule.reason: edit.changes for edit in self.rules.edits if edit.changes},
            **describe(self._tree, self._needs),
        )

    def _require_sound(self, sources: str) -> None:
        """Raise everything that was wrong with the sources, also that nothing in them was ROCm's."""
        self._problems += [problem for edit in self.rules.edits if (problem := edit.problem)]
        if not self._problems and not (self._tree.files and self._is_any_matched):
            found = f"holds no file of ROCm: {_told(len(self._unmatched))}"
            self._problems.append(InputError(sources, found, remedy="Check the path, or the --table option."))
        if self._problems:
            subject = "the import"
            raise ProblemsError(subject, self._problems)

    def _place(self, origin: Origin) -> Destination | None:
        if reason := self.rules.skip_reason(origin.path, origin.package):
            self._skipped[reason] += 1
            return None
        destination = self.rules.place(origin.path, origin.package)
        archive = self.archives.get(origin.path)
        if archive and (destination is None or destination.target == GENERIC):
            destination = self.rules.place_archive(origin.path, archive)
        if destination:
            self._is_any_matched = True
            return for_target(destination, self.kernels.get(origin.path, GENERIC))
        self._unmatched.append(origin.path)
        destination = None if self._strict else self.rules.place_rest(origin.path)
        if destination is None:
            remedy = "Add a rule, or leave it out with [[skip]]."
            self._problems.append(InputError(str(origin), "no rule of the table matches it", remedy=remedy))
        return destination

    def _add_file(self, member: SourceMember, destination: Destination) -> None:
        with self._collecting():
            if member.content is not None:
                self._tree.add_file(destination, member.origin, member.content, member.mode)
            else:
                original = self._links.placed(member.same_as)
                self._tree.add_copy(destination, member.origin, original, member.mode)
            self._links.add_file(member.origin.path, destination)

    def _add_links(self) -> list[str]:
        moved, dangling = self._links.resolve(self._problems)
        for link in moved:
            with self._collecting():
                self._tree.add_link(link.destination, link.origin, link.text)
        return dangling

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        """Keep a conflict for `finish`: more may follow."""
        try:
            yield
        except (ImportConflictError, SymlinkError) as e:
            self._problems.append(e)


@contextmanager
def importing(table: ImportTable, dest: Path, *sources: Path, strict: bool = False) -> Iterator[Importer]:
    """Yield an importer. Its artifacts appear as ``dest`` when the block ends well; otherwise nothing is left.

    ``sources`` are the files that it reads. Raises `InputError` when ``dest`` exists and is not an empty folder,
    `WorkError` when it can't be written.
    """
    with new_folder(dest, *sources) as root:
        yield Importer(table, root, strict=strict)


def _told(unmatched: int) -> str:
    return (
        f"no rule of the table matches its {count(unmatched, 'file')}" if unmatched else "nothing is for any artifact"
    )
