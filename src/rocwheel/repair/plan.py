"""What has to change in a wheel so that it loads: run paths, requirements, tags. Nothing is written here."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.platforms.tags import expand_tags, split_tags
from rocwheel.distributions.formats.requirements.requirements import parse_requirement
from rocwheel.distributions.formats.wheel_file_name import split_wheel_file_name
from rocwheel.distributions.zip.dist_info import SIGNATURES
from rocwheel.foundation.messages.counting import count
from rocwheel.installed.tree import Distribution, Tree
from rocwheel.linking.entries import leads_nowhere, resolve_entry, split_run_path
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.changes import (
    Change,
    metadata_changes,
    record_changes,
    run_path_changes,
    signature_changes,
)
from rocwheel.repair.comparing.finds import Found
from rocwheel.repair.initializer import VersionCheck, initializer_member, preload_names
from rocwheel.repair.metadata.modes import mode_changes
from rocwheel.repair.metadata.pins import locked_requirement, sdk_version_to_match
from rocwheel.repair.metadata.platform_tags import repaired_platforms
from rocwheel.repair.notes import build_folders_note, open_version_note, toolkit_note
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.refusals import check_repairable
from rocwheel.repair.run_paths.edits import milder_edits, run_path_edits
from rocwheel.repair.run_paths.kept_entries import kept_entries_note
from rocwheel.repair.run_paths.safe_edits import SafeEdits, safe_edits
from rocwheel.repair.toolkit import choose_toolkit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.installed.environments import Environments
    from rocwheel.installed.tree import InstalledFile
    from rocwheel.repair.outcome import RepairedTree

__all__ = ["RepairPlan", "RepairPlanner"]

_T = TypeVar("_T")


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one wheel. ``edits`` and ``added`` are by the member's name."""

    wheel: str
    file_name: str
    """The repaired wheel's, which its tag may change."""
    edits: dict[str, SetRunpath]
    requires: tuple[str, ...]
    """Requirements to add."""
    tags: tuple[str, ...]
    """The Tag lines of WHEEL; empty where they stay."""
    is_platlib: bool
    """Whether WHEEL has to say ``Root-Is-Purelib: false``."""
    added: dict[str, str]
    """Text of the members that are added."""
    dropped: tuple[str, ...]
    """Members that no longer hold: signatures of RECORD."""
    changes: tuple[Change, ...]
    unmended: tuple[str, ...]
    """What a repair can't fix."""
    unmended_rules: tuple[str, ...]
    """For each of these the rule of the audit that stays broken."""
    finds: dict[str, tuple[Found, ...]]
    """What each file finds once the wheel is repaired, by the member's name."""
    left: dict[str, str]
    """Members that stay as they are, since their edit would take something away, with what that is."""
    notes: tuple[str, ...] = ()
    """What rests on assumptions: users should check it before they publish the wheel."""


class RepairPlanner:
    """Plans the repair of wheels that are given together, each in the environment that is made for it."""

    def __init__(self, environments: Environments, options: RepairOptions) -> None:
        self._environments = environments.by_leader
        self._options = options
        self._safe: dict[int, SafeEdits] = {}

    def plan(self, owner: Distribution) -> RepairPlan:
        """Return the plan for one wheel, which is installed with the other packages of its environment and the SDK.

        Unless the options say otherwise, run paths are RUNPATHs. A right RPATH stays if it leads only into packages of
        the wheel's release, as the audit's rule ``rpath-into-others`` asks for. Where all run paths are RPATHs and, as
        repaired, lead only there, those that change stay RPATHs, too: ``rocwheel build`` makes such packages.

        No edit takes anything away that a file may find before (`rocwheel.repair.run_paths.safe_edits`).

        Raises `InputError`, or `ProblemsError` for several, for wheels that no repair makes installable: bad metadata,
        damaged binaries, symlinks, members outside of the wheel, several files at one path. Raises `InputError` as
        well where the options ask for the version of a package that is not at hand.
        """
        environment = self._environments[owner.source]
        check_repairable(owner, environment.files_of[owner.source])
        return _planned(_Wheel(environment, owner, self._options, self._safe_edits(environment)))

    def _safe_edits(self, environment: Tree) -> SafeEdits:
        """Return the edits of all wheels of an environment together."""
        if id(environment) not in self._safe:
            settings = self._options.audit_settings
            toolkits, edits = {}, {}
            for owner in environment.audited_distributions:
                toolkit = choose_toolkit(environment, owner, self._options.toolkit, settings)
                toolkits[owner.source] = toolkit
                milder = milder_edits(environment, owner, self._options, toolkit)
                for member, edit in run_path_edits(environment, owner, self._options, toolkit).items():
                    edits[f"{owner.source}!{member}"] = (*dict.fromkeys((edit, *milder.get(member, ()))),)
            self._safe[id(environment)] = safe_edits(environment, edits, toolkits, settings)
        return self._safe[id(environment)]


class _Wheel(msgspec.Struct, frozen=True, dict=True):
    """What the plan of one wheel rests on."""

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
        """The edits of the wheel's files, by the member's name."""
        return self._own(self.safe.edits)

    @cached_property
    def left(self) -> dict[str, str]:
        """Why files stay as they are, by the member's name."""
        return self._own(self.safe.left)

    def _own(self, by_source: Mapping[str, _T]) -> dict[str, _T]:
        return {file.member: by_source[file.source] for file in self.files if file.source in by_source}

    @cached_property
    def files(self) -> tuple[InstalledFile, ...]:
        """All members."""
        return self.tree.files_of[self.owner.source]

    @cached_property
    def loadable(self) -> list[InstalledFile]:
        """The members that the dynamic loader loads."""
        return [file for file in self.files if file.is_loadable]


def _planned(wheel: _Wheel) -> RepairPlan:
    owner = wheel.owner
    requires = _requires(wheel)
    file_name, tags = _tags(wheel)
    leftovers = wheel.repaired.leftovers(owner)
    is_platlib = owner.is_purelib and any(not file.has_scheme for file in wheel.loadable)
    added = _initializer(wheel) if wheel.options.init else {}
    changes = [
        *run_path_changes(wheel.loadable, wheel.edits),
        *metadata_changes(owner, requires, tags, is_platlib=is_platlib),
        *(Change(name, "added", "", count(len(text), "byte")) for name, text in added.items()),
        *mode_changes(wheel.files),
        *record_changes(owner, wheel.files),
    ]
    dropped = _signatures(wheel) if changes else ()
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
        unmended=tuple(one.text for one in leftovers),
        unmended_rules=tuple(one.rule for one in leftovers),
        finds=wheel.repaired.finds(owner),
        left=wheel.left,
        notes=_notes(wheel, requires),
    )


def _requires(wheel: _Wheel) -> tuple[str, ...]:
    """Return the requirements to add; those that stand in for dropped entries are pinned even if nothing else is."""
    given = {other.name for other in wheel.tree.distributions}
    is_risky = wheel.options.pin == "none" and any(map(_gives_up, wheel.loadable, _edits_of(wheel)))
    return tuple(
        locked_requirement(wheel.tree, wheel.owner, name, "minor" if is_risky and name in given else wheel.options.pin)
        for name in wheel.repaired.undeclared(wheel.owner)
    )


def _edits_of(wheel: _Wheel) -> list[SetRunpath | None]:
    return [wheel.edits.get(file.member) for file in wheel.loadable]


def _gives_up(file: InstalledFile, edit: SetRunpath | None) -> bool:
    """Return whether an edit drops an entry that may lead to libraries: then packages stand in for these."""
    entries = split_run_path(file.run_path) if edit else ()
    kept = split_run_path(edit.value) if edit else ()
    places = {resolve_entry(entry, file.folder) or entry for entry in kept}
    alive = [entry for entry in entries if not leads_nowhere(entry, file.folder)]
    return any((resolve_entry(entry, file.folder) or entry) not in places for entry in alive)


def _tags(wheel: _Wheel) -> tuple[str, tuple[str, ...]]:
    """Return the file name by what the files ask for, and the tags for WHEEL where they change."""
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


def _signatures(wheel: _Wheel) -> tuple[str, ...]:
    names = {f"{wheel.owner.dist_info}/{name}" for name in SIGNATURES}
    return tuple(file.member for file in wheel.files if file.member in names)


def _notes(wheel: _Wheel, requires: Sequence[str]) -> tuple[str, ...]:
    given = {other.name for other in wheel.tree.distributions}
    edited = {name: edit.value for name, edit in wheel.edits.items()}
    run_paths = [(file.folder, edited.get(file.member, file.run_path or "")) for file in wheel.loadable]
    kept = kept_entries_note(wheel.tree, wheel.owner, run_paths)
    found = (kept, toolkit_note(wheel.repaired, wheel.owner), build_folders_note(value for _, value in run_paths))
    asked = map(parse_requirement, requires)
    is_open = [one.name for one in asked if not one.specifier and canonicalize_name(one.name) not in given]
    return (*map(open_version_note, is_open), *filter(None, found))
