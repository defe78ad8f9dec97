"""What has to change in a wheel so that it loads: run paths, requirements, tags; plain values, written by none."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.formats.tags import expand_tags
from rocwheel.foundation.errors import InputError
from rocwheel.installed.check_record import wheel_record_problems
from rocwheel.installed.read_dist_info import SIGNATURES
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.initializer import initializer_member, preload_names
from rocwheel.repair.kept_entries import kept_entries_note
from rocwheel.repair.outcome import RepairedTree
from rocwheel.repair.pins import locked_requirement, version_to_match
from rocwheel.repair.platform_tags import repaired_platforms
from rocwheel.repair.refusals import check_repairable
from rocwheel.repair.run_paths import run_path_edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.installed.environments import Environments
    from rocwheel.installed.tree import Distribution, InstalledFile, Tree
    from rocwheel.repair.options import RepairOptions

__all__ = ["Change", "RepairPlan", "RepairPlanner"]

_OPEN = (
    "Requires-Dist: {0} is of any version, though its libraries are taken to be ROCm 7's: give {0} --with, and --pin"
)
_VERSIONED = ("rocm-sdk-core", "rocm-sdk-libraries")
"""The packages by one of which ``_rocm_init.py`` checks the SDK's version."""
_VOID = "dropped, since it signs another RECORD: sign the repaired wheel"


class Change(msgspec.Struct, frozen=True):
    """One change, for people: where, what, from what to what."""

    file: str
    what: str
    before: str
    after: str


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
    """Whether WHEEL has to say that the wheel is no pure one."""
    added: dict[str, str]
    dropped: tuple[str, ...]
    """Members that no longer hold: signatures of RECORD."""
    changes: tuple[Change, ...]
    unmended: tuple[str, ...]
    """What is wrong and needs more than a repair."""
    notes: tuple[str, ...] = ()
    """What rests on assumptions, to be looked at before the wheel is published."""


class RepairPlanner:
    """Plans the repair of wheels that are there together, each in the environment that is made for it."""

    def __init__(self, environments: Environments, options: RepairOptions) -> None:
        self._environments = environments.by_leader
        self._options = options
        self._edits: dict[str, dict[str, SetRunpath]] = {}
        self._repaired: dict[int, RepairedTree] = {}

    def plan(self, owner: Distribution) -> RepairPlan:
        """Plan the repair of one wheel, whose environment's other packages and the SDK are installed beside it.

        Unless the options say otherwise, run paths are RUNPATHs. A right RPATH stays that leads only into packages of
        the wheel's release, as the audit's rule ``rpath-into-others`` asks for; where all run paths are RPATHs and, as
        repaired, lead there alone, those that change stay RPATHs, too: what ``rocwheel build`` makes.

        Raises `InputError`, or `ProblemsError` for several, for wheels that no repair makes
        installable: bad metadata, damaged binaries, symlinks, members outside of the wheel, several files at one path.
        `InputError` as well where the options ask for the version of a package that is not there.
        """
        environment = self._environments[owner.source]
        check_repairable(owner, environment.files_of[owner.source])
        edits = self._run_paths(owner)
        return _WheelPlan(environment, owner, self._options, edits, self._repaired_tree(environment)).plan()

    def _run_paths(self, owner: Distribution) -> dict[str, SetRunpath]:
        if owner.source not in self._edits:
            self._edits[owner.source] = run_path_edits(self._environments[owner.source], owner, self._options)
        return self._edits[owner.source]

    def _repaired_tree(self, environment: Tree) -> RepairedTree:
        """Return an environment with all its wheels repaired."""
        if id(environment) not in self._repaired:
            edits = {
                f"{owner.source}!{member}": edit
                for owner in environment.audited_distributions
                for member, edit in self._run_paths(owner).items()
            }
            self._repaired[id(environment)] = RepairedTree(environment, edits, self._options.audit_settings)
        return self._repaired[id(environment)]


class _WheelPlan:
    def __init__(
        self,
        tree: Tree,
        owner: Distribution,
        options: RepairOptions,
        edits: dict[str, SetRunpath],
        repaired: RepairedTree,
    ) -> None:
        self._tree = tree
        self._owner = owner
        self._options = options
        self._edits = edits
        self._repaired = repaired
        self._files = tree.files_of[owner.source]
        self._loadable = [file for file in self._files if file.is_loadable]

    def plan(self) -> RepairPlan:
        requires = tuple(self._requirement(name) for name in self._repaired.undeclared(self._owner))
        file_name, tags = self._tags()
        is_platlib = self._owner.is_purelib and bool(self._loadable)
        added = self._initializer() if self._options.init else {}
        changes = (*self._run_path_changes(), *self._metadata_changes(requires, tags, added, is_platlib))
        dropped = self._signatures() if changes else ()
        return RepairPlan(
            wheel=self._owner.source,
            file_name=file_name,
            edits=self._edits,
            requires=requires,
            tags=tags,
            is_platlib=is_platlib,
            added=added,
            dropped=dropped,
            changes=(*changes, *(Change(name, _VOID, "a signature of RECORD", "") for name in dropped)),
            unmended=self._repaired.leftovers(self._owner),
            notes=(*(_OPEN.format(name) for name in requires if name not in self._given), *self._kept()),
        )

    def _kept(self) -> list[str]:
        edited = {name: edit.value for name, edit in self._edits.items()}
        run_paths = [(file.folder, edited.get(file.member, file.run_path or "")) for file in self._loadable]
        note = kept_entries_note(self._tree, self._owner, run_paths)
        return [note] if note else []

    @cached_property
    def _given(self) -> set[str]:
        return {other.name for other in self._tree.distributions}

    def _requirement(self, name: str) -> str:
        if self._options.pin != "none" and name not in self._given:
            raise self._pin_error(name)
        return locked_requirement(self._tree, name, self._options.pin)

    def _initializer(self) -> dict[str, str]:
        versions = (version_to_match(self._tree, name, self._options.pin) for name in _VERSIONED)
        version = next(filter(None, versions), "")
        if self._options.pin != "none" and not version and any(preload_names(self._loadable)):
            raise self._pin_error(_VERSIONED[0])
        return initializer_member(self._owner, self._files, version)

    def _pin_error(self, name: str) -> InputError:
        found = f"uses {name}, which is not there for --pin {self._options.pin} to take a version from"
        return InputError(self._owner.source, found, expected="it among the packages that --with gives")

    def _signatures(self) -> tuple[str, ...]:
        names = {f"{self._owner.dist_info}/{name}" for name in SIGNATURES}
        return tuple(file.member for file in self._files if file.member in names)

    def _tags(self) -> tuple[str, tuple[str, ...]]:
        """Return the file name by what the files ask for, and the tags for WHEEL where they change."""
        python, abi, platform = self._owner.name_tags
        stem = self._owner.label.removesuffix(f"-{python}-{abi}-{platform}.whl")
        platforms = ".".join(repaired_platforms(platform.split("."), self._files))
        tags = expand_tags(python, abi, platforms)
        changed = tags if set(tags) != set(self._owner.tags) else ()
        return f"{stem}-{python}-{abi}-{platforms}.whl", changed

    def _run_path_changes(self) -> list[Change]:
        files = {file.member: file for file in self._loadable}
        return [
            Change(name, _tag_words(files[name], edit), _run_paths(files[name]), edit.value)
            for name, edit in self._edits.items()
        ]

    def _metadata_changes(
        self, requires: Sequence[str], tags: Sequence[str], added: dict[str, str], is_platlib: bool
    ) -> list[Change]:
        info = self._owner.dist_info
        changes = [Change(f"{info}/METADATA", "Requires-Dist", "", requirement) for requirement in requires]
        if tags:
            changes.append(Change(f"{info}/WHEEL", "Tag", " ".join(self._owner.tags), " ".join(tags)))
        if is_platlib:
            changes.append(Change(f"{info}/WHEEL", "Root-Is-Purelib", "true", "false"))
        changes += [Change(name, "added", "", f"{len(text)} bytes") for name, text in added.items()]
        return changes + self._record_changes()

    def _record_changes(self) -> list[Change]:
        """Return what is wrong in RECORD alone; whatever else changes, it is written anew."""
        name = f"{self._owner.dist_info}/RECORD"
        if not self._owner.record:
            return [Change(name, "written anew", "none that can be read", "")]
        return [
            Change(name, "written anew", problem, "") for problem in wheel_record_problems(self._owner, self._files)
        ]


def _tag_words(file: InstalledFile, edit: SetRunpath) -> str:
    before = " and ".join(_by_tag(file))
    after = edit.tag.name if edit.value else "none"
    return after if before in {"", after} else f"{before} -> {after}"


def _run_paths(file: InstalledFile) -> str:
    """Return the run path of a file; of one that has both, both: the loader passes over the RPATH."""
    found = _by_tag(file)
    return " and ".join(f"{tag} {value}" for tag, value in found.items()) if len(found) > 1 else "".join(found.values())


def _by_tag(file: InstalledFile) -> dict[str, str]:
    assert file.elf is not None
    values = {"RPATH": file.elf.rpath, "RUNPATH": file.elf.runpath}
    return {tag: value for tag, value in values.items() if value is not None}
