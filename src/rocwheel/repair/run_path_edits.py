"""Chooses the run paths of repaired files: the edits, the retained entries, and which edits are safe.

A user's machine may have libraries that aren't given, either from a system toolkit (``/opt/rocm/lib``,
``/usr/local/cuda/lib64``) or from a package that shares a folder with other packages. Therefore, every entry is
retained unless it provably leads to no file or the file doesn't need it. A file doesn't need an entry if it is certain
that the file finds all its dependencies, and the file opens no library by name at run time. Whether this is true is
determined from the given packages. After the requirements of the repaired wheel are known, `safe_edits` makes the final
decision.

A file that opens libraries by name contains strings with their names (`opened_names`). If it is certain that the file
finds all its dependencies, the folders that the SDK's packages replace are removed from its run path
(`Toolkit.gives_up`). If its strings contain no library name, the names come from another source, and every folder that
might contain a library is retained.

`rocwheel.environment.run_path_choice` chooses the folders, and `rocwheel.audit.wheel_toolkits` decides whether they may
point to the SDK's packages. A run path retains its tag unless the options specify one. An RPATH may be intended to
precede ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.audit.subject import Subject
from rocwheel.audit.wheel_toolkits import OpenedNames, sdk_library_folders
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.core.messages import count
from rocwheel.environment.known_libraries import allowed_libraries, is_glibc_library
from rocwheel.environment.requirements import packages_elsewhere, surely_installed
from rocwheel.environment.run_path_advice import (
    assumed_package_folders,
    assumed_sdk_folders,
    missing_libraries,
    places_for_machine,
)
from rocwheel.environment.run_path_choice import KeptEntries, LibraryPlaces, SetRunpath, fewest_folders, run_path_edit
from rocwheel.environment.run_path_entries import leads_nowhere, resolve_entry, split_run_path
from rocwheel.environment.sdk_layout import sdk_folders
from rocwheel.repair.outcome import RepairedTree
from rocwheel.repair.regressions import GivenUp, find_regressions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.audit.wheel_toolkits import Toolkit
    from rocwheel.environment.installed_paths import InstalledLayout
    from rocwheel.environment.loader import SystemLibraries
    from rocwheel.environment.run_path_choice import LibraryPlaces
    from rocwheel.environment.tree import Distribution, InstalledFile, Tree
    from rocwheel.repair.options import RepairOptions


_ANY_NAME = ".so"
_SDK_TOPS = tuple(sorted({folder.folder.partition("/")[0] for folder in sdk_folders()}))
_DIRECTIVE = re.compile(r"[%{}]")


def opened_names(file: InstalledFile) -> frozenset[str]:
    """Return the library names in the strings of a file that opens libraries by name.

    If the file composes other names, the result includes ``.so``. It omits the file's dependencies, the file's own
    names, and glibc's libraries.
    """
    if file.elf is None or not file.elf.imports_dlopen:
        return frozenset()
    names = file.mentions - {*file.elf.needed, file.elf.soname, file.name}
    made_up = {name for name in names if name.startswith(".so") or _DIRECTIVE.search(name)}
    opened = {name for name in names - made_up if not is_glibc_library(name)}
    return frozenset(opened | ({_ANY_NAME} if made_up else set()))


def what_it_opens(
    file: InstalledFile, declared: Sequence[str], places: LibraryPlaces, system: SystemLibraries
) -> OpenedNames:
    """Return what is known about the libraries that a file opens.

    ``declared`` contains the libraries that the user specified.
    """
    if file.elf is None or not file.elf.imports_dlopen:
        return OpenedNames.NOTHING
    names = opened_names(file)
    opened = {*declared, *names} - {_ANY_NAME}
    if not opened:
        return OpenedNames.ANYTHING
    nowhere = [name for name in opened if name not in places.providers and system.find(name, file.elf.machine) is None]
    return OpenedNames.NAMED if nowhere or _ANY_NAME in names else OpenedNames.FOUND


def entries_to_keep(
    file: InstalledFile,
    places: LibraryPlaces,
    *,
    is_complete: bool,
    toolkit: Toolkit,
    opens: OpenedNames = OpenedNames.ANYTHING,
) -> KeptEntries:
    """Return the entries that remain in a file's run path, according to the rule in the module docstring.

    ``is_complete`` indicates whether the file definitely finds all its dependencies.
    """
    is_opener = file.elf is not None and file.elf.imports_dlopen
    if is_complete and not is_opener and not toolkit.keeps:
        return KeptEntries()
    entries = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
    led_to = {entry: places.resolve(entry, file.folder) for entry in entries}
    stay = {
        entry: place
        for entry, place in led_to.items()
        if not is_complete or _stays(entry, place, places, toolkit, opens)
    }
    inside = frozenset(place for place in stay.values() if place is not None and not place.startswith(".."))
    is_all = is_complete and opens is OpenedNames.FOUND
    return KeptEntries(inside, frozenset(entry for entry, place in stay.items() if place not in inside), is_all)


def _stays(entry: str, place: str | None, places: LibraryPlaces, toolkit: Toolkit, opens: OpenedNames) -> bool:
    """Return whether an entry is retained because a file with all its dependencies may open libraries in its folder.

    The SDK's own folders are retained for libraries that the file is known to open. All other folders of given packages
    are retained.
    """
    if place is None or place not in places.folders:
        return not toolkit.gives_up(entry if place is None else place, opens)
    return opens is not OpenedNames.FOUND or not place.startswith(_SDK_TOPS)


def kept_entries_note(tree: Tree, owner: Distribution, run_paths: Iterable[tuple[str, str]]) -> str:
    """Return a note with the number of run path entries whose folders aren't in any given package.

    The note is empty if there are no such entries. ``run_paths`` contains the repaired files' run paths, each with the
    file's folder relative to site-packages.
    """
    assumed = (*sdk_folders(), *assumed_package_folders(tree))
    known = {file.folder for file in tree.files} | {folder.folder for folder in assumed}
    found = [
        [entry for entry in split_run_path(value) if _is_elsewhere(resolve_entry(entry, folder), known)]
        for folder, value in run_paths
    ]
    others = ", ".join(sorted(packages_elsewhere(tree, owner)))
    entries, files = sum(map(len, found)), sum(map(bool, found))
    if not entries or not others:
        return ""
    return (
        f"kept {count(entries, 'run path entry', 'run path entries')} in {count(files, 'file')}: they may point to "
        f"packages that weren't specified ({others}). To keep only the correct entries, add these packages with --with."
    )


def _is_elsewhere(place: str | None, known: set[str]) -> bool:
    return bool(place) and place not in known and not str(place).startswith("..")


class OpenedByFile(NamedTuple):
    """What is known about the libraries that a file opens by name."""

    opens: OpenedNames
    names: tuple[str, ...]
    """Names of libraries that packages contain, and that the file may have found in removed folders."""


def opened_by_files(
    tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit
) -> dict[str, OpenedByFile]:
    """Return what is known about the libraries that a wheel's files open, keyed by file source."""
    files = [file for file in tree.files_of[owner.source] if file.is_loadable]
    choice = _Choice(tree, options, toolkit)
    return {file.source: OpenedByFile(choice.opens(file), choice.stood_in_for(file)) for file in files}


def run_path_edits(tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit) -> dict[str, SetRunpath]:
    """Return the edits of a wheel's files, keyed by member name. For the rules, see `rocwheel.repair.repair_plan`.

    A file with a correct run path is also edited if older glibc releases reject its segments.
    """
    files = [file for file in tree.files_of[owner.source] if file.is_loadable]
    edits = _wrong_run_paths(files, tree, options, toolkit)
    return {file.member: edit for file in files if (edit := edits.get(file.member) or _realignment(file)) is not None}


def _realignment(file: InstalledFile) -> SetRunpath | None:
    """Return the edit that changes only the alignment of a file's segments, or `None` if it would change nothing."""
    assert file.elf is not None
    edit = SetRunpath(file.run_path or "", file.tag or RunpathTag.RUNPATH)
    return edit if edit.applied_to(file.elf).segments != file.elf.segments else None


def _wrong_run_paths(
    files: Sequence[InstalledFile], tree: Tree, options: RepairOptions, toolkit: Toolkit
) -> dict[str, SetRunpath]:
    choice = _Choice(tree, options, toolkit)
    tags = {file.member: options.tag or file.tag for file in files}
    edits = {file.member: choice.edit(file, tag) for file in files if (tag := tags[file.member]) is not None}
    tag = _new_tag(files, edits)
    edits |= {file.member: choice.edit(file, tag) for file in files if tags[file.member] is None}
    found = ((file.member, edits[file.member]) for file in files)
    return {member: edit for member, edit in found if edit is not None}


def fallback_edits(
    tree: Tree, owner: Distribution, options: RepairOptions, toolkit: Toolkit
) -> dict[str, tuple[SetRunpath, ...]]:
    """Return fallback edits for files whose edit in `run_path_edits` would lose a library, keyed by member name.

    The edits are increasingly safe: the first retains every entry that may lead to a library, and the last adds no new
    folders either.
    """
    files = [file for file in tree.files_of[owner.source] if file.is_loadable and file.run_path]
    choice = _Choice(tree, options, toolkit)
    return {file.member: tuple(choice.fallbacks(file, options.tag or file.tag)) for file in files if file.tag}


def _new_tag(files: Sequence[InstalledFile], edits: Mapping[str, SetRunpath | None]) -> RunpathTag:
    """Return the tag for files without a run path: RPATH if the wheel's other edited run paths are RPATHs."""
    edited = [(file.tag, edits.get(file.member)) for file in files if file.run_path]
    tags = {tag if edit is None else edit.tag for tag, edit in edited if edit is None or edit.value}
    return RunpathTag.RPATH if tags == {RunpathTag.RPATH} else RunpathTag.RUNPATH


class _Choice:
    """Chooses the run path of each file in a wheel, based on the packages that are installed with the wheel."""

    def __init__(self, tree: Tree, options: RepairOptions, toolkit: Toolkit) -> None:
        self._tree = tree
        self._settings = options.audit_settings
        closed = self._settings.closed
        self._assumed = (*assumed_sdk_folders(tree, closed=closed), *assumed_package_folders(tree, closed=closed))
        self._system = allowed_libraries(self._settings.system_libraries)
        self._toolkit = toolkit
        self._by_machine: dict[tuple[int, bool, InstalledLayout], LibraryPlaces] = {}
        self._sdk_folders: frozenset[str] = frozenset() if toolkit.is_sdk else sdk_library_folders(tree)
        self._without_sdk: dict[tuple[int, bool, InstalledLayout, frozenset[str]], LibraryPlaces] = {}

    def edit(self, file: InstalledFile, tag: RunpathTag) -> SetRunpath | None:
        """Return the edit that gives a file the correct run path under a tag, or `None` if it is already correct."""
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        sure = self._places(file, with_assumed=self._toolkit.trusts_layout)
        is_complete = not self._toolkit.keeps and not missing_libraries(
            file.elf, self._opened(file), sure, self._system
        )
        opens = self.opens(file)
        kept = entries_to_keep(file, places, is_complete=is_complete, toolkit=self._toolkit, opens=opens)
        return self._edit(file, tag, kept)

    def opens(self, file: InstalledFile) -> OpenedNames:
        """Return what is known about the libraries that a file opens by name, if this affects the run path."""
        if not self._toolkit.trusts_layout:
            return OpenedNames.NOTHING if file.elf is None or not file.elf.imports_dlopen else OpenedNames.ANYTHING
        return what_it_opens(file, self._declared(file), self._places(file, with_assumed=True), self._system)

    def stood_in_for(self, file: InstalledFile) -> tuple[str, ...]:
        """Return the libraries whose names are in a file's strings and that the file may have found in removed folders.

        The given packages or the SDK's layout contain these libraries.
        """
        places, opens = self._places(file, with_assumed=True), self.opens(file)
        entries = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
        led_to = {entry: places.resolve(entry, file.folder) or entry for entry in entries}
        gone = [
            place for place in led_to.values() if place not in places.folders and self._toolkit.gives_up(place, opens)
        ]
        return tuple(name for name in sorted(opened_names(file)) if gone and name in places.providers)

    def fallbacks(self, file: InstalledFile, tag: RunpathTag) -> Iterator[SetRunpath]:
        """Yield edits of a file that remove progressively fewer folders. Edits that change nothing are omitted.

        Each edit is preceded by the edit that a second repair would make. That edit may remove more folders, because
        some folders now come first.
        """
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        kept = entries_to_keep(file, places, is_complete=False, toolkit=self._toolkit)
        alive = [entry for entry in split_run_path(file.run_path) if not leads_nowhere(entry, file.folder)]
        bare = SetRunpath(":".join(dict.fromkeys(alive)), tag)
        found = [edit for edit in (self._edit(file, tag, kept), bare) if edit is not None]
        made = [(msgspec.structs.replace(file, elf=edit.applied_to(file.elf)), edit) for edit in found]
        tried = (edit for after, last in made for edit in (self.edit(after, tag), last))
        yield from (edit for edit in tried if edit is not None and edit.applied_to(file.elf) != file.elf)

    def _edit(self, file: InstalledFile, tag: RunpathTag, kept: KeptEntries) -> SetRunpath | None:
        assert file.elf is not None
        places = self._places(file, with_assumed=True)
        opened = self._opened(file)
        search = fewest_folders([*file.elf.wanted, *opened], places, file.folder)
        return run_path_edit(file.elf, file.folder, search, places, tag, kept, opened)

    def _opened(self, file: InstalledFile) -> tuple[str, ...]:
        """Return the libraries that a file is known to open, based on the settings and on its strings."""
        places = self._places(file, with_assumed=True)
        led_to = {places.resolve(entry, file.folder) for entry in split_run_path(file.run_path)}
        providers = places.providers
        names = sorted(opened_names(file)) if self._toolkit.trusts_layout else ()
        found = [name for name in names if led_to & {*providers.get(name, ())}]
        return tuple(dict.fromkeys((*self._declared(file), *found)))

    def _declared(self, file: InstalledFile) -> tuple[str, ...]:
        """Return the libraries that a file opens according to the settings, except for the file itself.

        The file itself is already loaded.
        """
        assert file.elf is not None
        return tuple(name for name in self._settings.opened_by(file.path) if name != file.elf.soname)

    def _places(self, file: InstalledFile, *, with_assumed: bool) -> LibraryPlaces:
        assert file.elf is not None
        layout = self._tree.owners[file.distribution].layout
        key = (file.elf.machine, with_assumed, layout)
        if key not in self._by_machine:
            assumed = self._assumed if with_assumed else ()
            level = self._settings.cpu_level
            found = places_for_machine(self._tree, assumed, file.elf.machine, level)
            self._by_machine[key] = msgspec.structs.replace(found, layout=layout)
        found = self._by_machine[key]
        if self._toolkit.is_sdk:
            return found
        led_to = {found.resolve(entry, file.folder) for entry in split_run_path(file.run_path)}
        left_out = self._sdk_folders - led_to - {file.folder}
        # Most files in a wheel point to the same SDK folders, or to no SDK folder.
        known = (*key, left_out)
        if known not in self._without_sdk:
            left = {name: tuple(f for f in held if f not in left_out) for name, held in found.providers.items()}
            providers = {name: held for name, held in left.items() if held}
            self._without_sdk[known] = msgspec.structs.replace(found, providers=providers)
        return self._without_sdk[known]


_NOTHING = GivenUp()


class SafeEdits(msgspec.Struct, frozen=True):
    """An environment's edits that make no library unavailable, keyed by file source."""

    edits: dict[str, SetRunpath]
    left: dict[str, str]
    """The reasons that files don't change if their chosen edit is unsafe."""
    fallbacks: dict[str, str]
    """The reasons that files get a fallback edit instead of their chosen edit."""
    repaired: RepairedTree
    opens: Mapping[str, OpenedNames]
    """What is known about the libraries that files open by name, keyed by file source."""


def safe_edits(
    tree: Tree,
    chosen: Mapping[str, Sequence[SetRunpath]],
    toolkits: Mapping[str, Toolkit],
    settings: AuditSettings,
    given_up: GivenUp = _NOTHING,
) -> SafeEdits:
    """For each file, return the first edit after which all files still find the libraries that they could find before.

    ``chosen`` contains the edits, keyed by file source, with the best edit first. ``toolkits`` contains the wheels'
    toolkits, keyed by wheel source. Folders in ``given_up`` are ignored.
    """
    before = Subject(tree, settings)
    waiting = {source: list(edits) for source, edits in chosen.items() if edits}
    reasons = dict[str, str]()
    while True:
        kept = {source: edits[0] for source, edits in waiting.items()}
        repaired = RepairedTree(tree, kept, toolkits, settings)
        sure = {owner.source: _sure(repaired, owner) for owner in tree.audited_distributions}
        regressions = list(find_regressions(before, repaired.subject, kept.keys(), sure, given_up)) if kept else []
        if not regressions:
            left = {source: words for source, words in reasons.items() if source not in kept}
            fallbacks = {source: words for source, words in reasons.items() if source in kept}
            return SafeEdits(kept, left, fallbacks, repaired, given_up.opens)
        # The edits to reject, keyed by the files' source, each with its first regression. There is at least one.
        blamed = {source: one.words for one in reversed(regressions) for source in one.edited or kept}
        for source, words in blamed.items():
            reasons.setdefault(source, words)
            del waiting[source][0]
        waiting = {source: edits for source, edits in waiting.items() if edits}


def _sure(repaired: RepairedTree, owner: Distribution) -> frozenset[str]:
    """Return the distributions that are definitely installed with a repaired wheel and whose libraries are known."""
    tree, toolkit = repaired.subject.tree, repaired.toolkits.get(owner.source)
    installed = surely_installed(tree, owner, repaired.undeclared(owner))
    given = {other.name for other in tree.distributions}
    return installed if toolkit is not None and toolkit.trusts_layout else installed & given
