"""Plans the changes that make a wheel load: run paths, requirements, and tags. Nothing is written."""

from __future__ import annotations

import glob
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.audit.subject import Subject
from rocwheel.audit.wheel_toolkits import OpenedNames
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count, find_below
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import require_listable
from rocwheel.core.workers import map_skipping
from rocwheel.environment.platform_tags import misplaced_code, repaired_platforms
from rocwheel.environment.read_tree import WheelReading, read_environments
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.environment.run_path_entries import leads_nowhere, resolve_entry, split_run_path
from rocwheel.environment.sdk_layout import sdk_folders, sdk_selector
from rocwheel.environment.tree import Distribution, Tree
from rocwheel.repair.changes import (
    Change,
    header_changes,
    locked_requirement,
    metadata_changes,
    mode_changes,
    record_changes,
    run_path_changes,
    sdk_version_to_match,
    signature_changes,
)
from rocwheel.repair.initializer import VersionCheck, initializer_member, preload_names
from rocwheel.repair.notes import (
    assumed_version_note,
    build_folders_note,
    check_repairable,
    musl_note,
    toolkit_note,
    unknown_names_note,
    windows_note,
)
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.regressions import Found, GivenUp
from rocwheel.repair.run_path_edits import (
    OpenedByFile,
    SafeEdits,
    fallback_edits,
    kept_entries_note,
    opened_by_files,
    run_path_edits,
    safe_edits,
)
from rocwheel.wheels.file_names import split_wheel_file_name
from rocwheel.wheels.record import signature_paths
from rocwheel.wheels.requirements import parse_requirement, readable_requirements
from rocwheel.wheels.tags import expand_tags, split_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError
    from rocwheel.environment.tree import Environments, InstalledFile
    from rocwheel.repair.outcome import Leftover, RepairedTree
    from rocwheel.wheels.zip_reader import UnpackedMembers


_T = TypeVar("_T")


_CORE = canonicalize_name("rocm-sdk-core")
"""The package with the ROCm runtime."""


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan for a wheel. ``edits`` and ``added`` are keyed by member name."""

    wheel: str
    file_name: str
    """The file name of the repaired wheel, whose tag may have changed."""
    edits: dict[str, SetRunpath]
    requires: tuple[str, ...]
    """Requirements to add."""
    tags: tuple[str, ...]
    """The Tag lines of WHEEL. Empty if they don't change."""
    is_platlib: bool
    """Whether WHEEL must contain ``Root-Is-Purelib: false``."""
    added: dict[str, str]
    """The texts of the added members."""
    dropped: tuple[str, ...]
    """Members that are no longer valid: the signatures of RECORD."""
    changes: tuple[Change, ...]
    unmended: tuple[str, ...]
    """The problems that a repair can't fix."""
    unmended_rules: tuple[str, ...]
    """The violated audit rule for each problem in ``unmended``."""
    finds: dict[str, tuple[Found, ...]]
    """The libraries that each file finds after the repair, keyed by member name."""
    given_up: dict[str, tuple[str, ...]]
    """The folders that may contain libraries and that are no longer in run paths, keyed by member name.

    Folders of given packages are omitted, because their libraries are known.
    """
    left: dict[str, str]
    """Members that don't change because their edit would make a library unavailable, with a description of the loss."""
    notes: tuple[str, ...] = ()
    """Results that are based on assumptions. Users should check them before they publish the wheel."""


class RepairPlanner:
    """Plans the repair of wheels that are specified together, each in its own environment."""

    def __init__(self, environments: Environments, options: RepairOptions) -> None:
        self._environments = environments.by_leader
        self._options = options
        self._safe: dict[int, SafeEdits] = {}

    def plan(self, owner: Distribution) -> RepairPlan:
        """Return the plan for a wheel that is installed with the other packages in its environment and the SDK.

        By default, run paths retain their tag, and files without a run path get a RUNPATH. If all run paths in the
        wheel are RPATHs, these files get an RPATH.

        No edit makes a library unavailable that a file may have found before (`rocwheel.repair.run_path_edits`).

        Raises `InputError`, or `ProblemsError` for several problems, for wheels that no repair can make installable:
        invalid metadata, damaged binaries, symbolic links, members outside of the environment, or several files with
        the same path. Also raises `InputError` if the options require the version of a package that isn't given.
        """
        environment = self._environments[owner.source]
        check_repairable(owner, environment.files_of[owner.source])
        return _planned(_Wheel(environment, owner, self._options, self._safe_edits(environment)))

    def _safe_edits(self, environment: Tree) -> SafeEdits:
        """Return the combined edits for all wheels in an environment."""
        if id(environment) not in self._safe:
            subject = Subject(environment, self._options.audit_settings)
            toolkits, edits, opened = {}, {}, dict[str, OpenedByFile]()
            for owner in environment.audited_distributions:
                toolkit = subject.toolkit_of(owner, self._options.toolkit, keeps=self._options.keep)
                toolkits[owner.source] = toolkit
                if not owner.is_for_musl:
                    opened |= opened_by_files(environment, owner, self._options, toolkit)
            options = _with_opened(self._options, environment, opened)
            for owner in environment.audited_distributions:
                if owner.is_for_musl:
                    continue
                toolkit = toolkits[owner.source]
                fallbacks = fallback_edits(environment, owner, options, toolkit)
                for member, edit in run_path_edits(environment, owner, options, toolkit).items():
                    edits[f"{owner.source}!{member}"] = (*dict.fromkeys((edit, *fallbacks.get(member, ()))),)
            opens = {source: one.opens for source, one in opened.items()}
            given_up = GivenUp(toolkits, opens, tag_is_told=options.tag is not None)
            self._safe[id(environment)] = safe_edits(environment, edits, toolkits, options.audit_settings, given_up)
        return self._safe[id(environment)]


def _with_opened(options: RepairOptions, tree: Tree, opened: Mapping[str, OpenedByFile]) -> RepairOptions:
    """Return the options with the libraries that files open by name, as if the user had specified these libraries."""
    dlopen = dict(options.settings.dlopen)
    for source, one in opened.items():
        if one.names:
            pattern = glob.escape(tree.by_source[source].path)
            dlopen[pattern] = (*dict.fromkeys((*dlopen.get(pattern, ()), *one.names)),)
    return msgspec.structs.replace(options, settings=msgspec.structs.replace(options.settings, dlopen=dlopen))


class _Wheel(msgspec.Struct, frozen=True, dict=True):
    """The data for the plan of one wheel."""

    tree: Tree
    owner: Distribution
    options: RepairOptions
    safe: SafeEdits

    @property
    def repaired(self) -> RepairedTree:
        """The environment with all its wheels repaired."""
        return self.safe.repaired

    @cached_property
    def edits(self) -> dict[str, SetRunpath]:
        """The edits of the wheel's files, keyed by member name."""
        return self._own(self.safe.edits)

    @cached_property
    def left(self) -> dict[str, str]:
        """The reasons that files don't change, keyed by member name."""
        return self._own(self.safe.left)

    def _own(self, by_source: Mapping[str, _T]) -> dict[str, _T]:
        return {file.member: by_source[file.source] for file in self.files if file.source in by_source}

    @cached_property
    def files(self) -> tuple[InstalledFile, ...]:
        """All members in the wheel."""
        return self.tree.files_of[self.owner.source]

    @cached_property
    def loadable(self) -> list[InstalledFile]:
        """The members that the dynamic loader can load."""
        return [file for file in self.files if file.is_loadable]


def _planned(wheel: _Wheel) -> RepairPlan:
    owner = wheel.owner
    requires = _requires(wheel)
    file_name, tags = _tags(wheel)
    leftovers = wheel.repaired.leftovers(owner)
    is_platlib = misplaced_code(owner, wheel.files) is not None
    added = _initializer(wheel) if wheel.options.init else {}
    changes = [
        *run_path_changes(wheel.loadable, wheel.edits),
        *metadata_changes(owner, requires, tags, is_platlib=is_platlib),
        *(Change(name, "added", "", count(len(text), "byte")) for name, text in added.items()),
        *(() if owner.layout.is_windows else mode_changes(wheel.files)),
        *record_changes(owner, wheel.files),
        *header_changes(owner),
    ]
    signatures = signature_paths(owner.dist_info) if changes else ()
    dropped = tuple(file.member for file in wheel.files if file.member in signatures)
    return RepairPlan(
        wheel=owner.source,
        file_name=file_name,
        edits=wheel.edits,
        requires=requires,
        tags=tags,
        is_platlib=is_platlib,
        added=added,
        dropped=dropped,
        changes=(*changes, *signature_changes(dropped)),
        unmended=tuple(_unmended(wheel, one) for one in leftovers),
        unmended_rules=tuple(one.rule for one in leftovers),
        finds=wheel.repaired.resolved_libraries(owner),
        given_up=_given_up(wheel),
        left=wheel.left,
        notes=_notes(wheel, requires, added),
    )


_NOT_LED = "{}. The repair doesn't set a run path that points there: {}"


def _unmended(wheel: _Wheel, leftover: Leftover) -> str:
    """Return an unfixed problem, and the reason that the edit that would fix it isn't made."""
    reason = wheel.safe.fallbacks.get(leftover.source, "") if leftover.is_of_run_path else ""
    return _NOT_LED.format(leftover.text, reason) if reason else leftover.text


def _requires(wheel: _Wheel) -> tuple[str, ...]:
    """Return the requirements to add. Requirements that replace removed entries are always pinned."""
    is_risky = wheel.options.pin == "none" and any(
        _dropped(file, wheel.edits.get(file.member)) for file in wheel.loadable
    )
    pin = "release" if is_risky else wheel.options.pin
    used = [locked_requirement(wheel.tree, wheel.owner, name, pin) for name in wheel.repaired.undeclared(wheel.owner)]
    return (*used, *_initializer_requires(wheel, used))


def _initializer_requires(wheel: _Wheel, added: Sequence[str]) -> Iterator[str]:
    """Yield a requirement for the package with ``rocm_sdk``, which an initializer imports, if nothing requires it.

    The requirement has the version of the core package, because both packages are always from the same release.
    """
    if not wheel.options.init or not any(preload_names(wheel.loadable)):
        return
    known = {canonicalize_name(one.name): one for one in readable_requirements((*wheel.owner.requires, *added))}
    selector = canonicalize_name(sdk_selector().distribution)
    if selector not in known:
        core = known.get(_CORE)
        yield f"{selector}{core.specifier if core else ''}"


def _dropped(file: InstalledFile, edit: SetRunpath | None) -> tuple[str, ...]:
    """Return the folders in removed entries that may contain libraries. These folders are replaced by packages."""
    entries = split_run_path(file.run_path) if edit else ()
    kept = split_run_path(edit.value) if edit else ()
    places = {resolve_entry(entry, file.folder) or entry for entry in kept}
    alive = [entry for entry in entries if not leads_nowhere(entry, file.folder)]
    led_to = dict.fromkeys(resolve_entry(entry, file.folder) or entry for entry in alive)
    return tuple(place for place in led_to if place not in places)


def _given_up(wheel: _Wheel) -> dict[str, tuple[str, ...]]:
    known = {file.folder for file in wheel.tree.files} | {folder.folder for folder in sdk_folders()}
    dropped = {file.member: _dropped(file, wheel.edits.get(file.member)) for file in wheel.loadable}
    found = {member: tuple(place for place in places if place not in known) for member, places in dropped.items()}
    return {member: places for member, places in found.items() if places}


def _tags(wheel: _Wheel) -> tuple[str, tuple[str, ...]]:
    """Return the file name with the tags that the files require, and the tags for WHEEL if they change."""
    name = split_wheel_file_name(wheel.owner.label)
    files = wheel.repaired.subject.tree.files_of[wheel.owner.source]
    platforms = repaired_platforms(split_tags(name.platform), files)
    repaired = msgspec.structs.replace(name, platform=".".join(platforms))
    tags = expand_tags(*repaired.tags)
    changed = tags if set(tags) != set(wheel.owner.tags) else ()
    return repaired.text, changed


def _initializer(wheel: _Wheel) -> dict[str, str]:
    uses_sdk = any(preload_names(wheel.loadable))
    version = sdk_version_to_match(wheel.tree, wheel.owner, wheel.options.pin, is_needed=uses_sdk)
    check = VersionCheck(version, fails=wheel.options.mismatch == "fail") if version else None
    return initializer_member(wheel.owner, wheel.files, check)


def _unknown_openers(wheel: _Wheel, edited: Mapping[str, str]) -> list[str]:
    """Return the files whose run paths would lose folders if the names of the libraries that they open were known."""
    toolkit = wheel.repaired.toolkits[wheel.owner.source]
    return [
        file.path
        for file in wheel.loadable
        if wheel.safe.opens.get(file.source) is OpenedNames.ANYTHING
        for folders in (_searched(file, edited.get(file.member, file.run_path or "")),)
        if any(toolkit.gives_up(folder, OpenedNames.NAMED) for folder in folders)
    ]


def _searched(file: InstalledFile, value: str) -> list[str]:
    """Return the folders in a run path that belong neither to a given package nor to the SDK, as far as is known."""
    known = {folder.folder for folder in sdk_folders()}
    led_to = (resolve_entry(entry, file.folder) or entry for entry in split_run_path(value))
    return [place for place in led_to if place not in known]


def _notes(wheel: _Wheel, requires: Sequence[str], added: Iterable[str]) -> tuple[str, ...]:
    given = {other.name for other in wheel.tree.distributions}
    edited = {name: edit.value for name, edit in wheel.edits.items()}
    run_paths = [(file.folder, edited.get(file.member, file.run_path or "")) for file in wheel.loadable]
    kept = kept_entries_note(wheel.tree, wheel.owner, run_paths)
    found = (
        kept,
        musl_note(wheel.loadable) if wheel.owner.is_for_musl else "",
        windows_note(wheel.owner, wheel.files),
        unknown_names_note(_unknown_openers(wheel, edited)),
        toolkit_note(wheel.repaired, wheel.owner),
        build_folders_note(value for _, value in run_paths),
        *_inherited_notes(wheel),
        *_call_notes(added),
    )
    asked = ((text, parse_requirement(text)) for text in requires)
    absent = [(text, one) for text, one in asked if canonicalize_name(one.name) not in given]
    return (*(assumed_version_note(text, is_open=not one.specifier) for text, one in absent), *filter(None, found))


def _call_notes(added: Iterable[str]) -> Iterator[str]:
    """Yield instructions for calling each added initializer. A repair doesn't change a package's own code."""
    for member in added:
        module = member.removesuffix(".py").replace("/", ".")
        package = member.rpartition("/")[0]
        yield (
            f"{member} isn't called yet: add 'from {module.rpartition('.')[0]} import _rocm_init; "
            f"_rocm_init.initialize()' at the top of {package}/__init__.py, before the first import of an extension"
        )


def _inherited_notes(wheel: _Wheel) -> Iterator[str]:
    """Yield a note for each file that finds libraries only through other files, because its chosen edit isn't safe."""
    for source, found in wheel.repaired.inherited(wheel.owner).items():
        if reason := wheel.safe.fallbacks.get(source):
            yield _NOT_LED.format(found, reason)


def plan_repairs(
    wheels: Sequence[Path],
    with_packages: Sequence[Path],
    options: RepairOptions,
    problems: list[RocwheelError],
    unpacked: UnpackedMembers | None = None,
    progress: Progress = SILENT,
) -> list[RepairPlan]:
    """Read wheels and the packages that are installed with them, and return the plan for each wheel.

    A folder means all wheels in the folder. ``unpacked`` caches the members that are read. Device code isn't
    decompressed, because a repair doesn't change it. If other wheels remain, errors about unreadable wheels and about
    wheels that can't be made installable (`RepairPlanner.plan`) are appended to ``problems``. Otherwise, they are
    raised. Raises `InputError` for a path that is neither a wheel nor a folder of wheels.
    """
    for path in wheels:
        _check(path)
    environments = read_environments(wheels, with_packages, unread=problems, how=_reading(unpacked), progress=progress)
    planner = RepairPlanner(environments, options)
    return map_skipping("wheels", planner.plan, environments.everything.audited_distributions, problems)


def _reading(unpacked: UnpackedMembers | None) -> WheelReading:
    if unpacked is None:
        return WheelReading(headers_only=True)
    return WheelReading(unpack=unpacked.open, digest=unpacked.digest, headers_only=True)


def _check(path: Path) -> None:
    """Raise `InputError` for a path that is neither a wheel nor a folder of wheels."""
    if path.is_dir():
        require_listable(path)
        if not any(path.glob("*.whl")):
            below = find_below(path, lambda found: found.suffix == ".whl")
            remedy = f"There are wheels in {below}." if below else ""
            raise InputError(
                path, "is a folder without wheels", expected="a wheel, or a folder of wheels", remedy=remedy
            )
    elif path.suffix != ".whl":
        raise InputError(path, "isn't a wheel", expected="a file whose name ends with .whl, or a folder of wheels")
