"""Builds a framework's wheel: repairs its run paths, and audits it before moving it to its destination."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.audit.audit import audit
from rocwheel.audit.finding import Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.errors import InputError, ProblemsError, write_error
from rocwheel.core.progress import SILENT, Progress, step
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import check_destination
from rocwheel.environment.read_tree import read_tree
from rocwheel.environment.requirements import release_folders
from rocwheel.environment.run_path_advice import assumed_sdk_folders, places_for_machine
from rocwheel.environment.run_path_choice import KeptEntries, LibraryPlaces, SetRunpath, run_path_edit
from rocwheel.environment.run_path_entries import entry_problems, folders_beyond, resolve_entry, split_run_path
from rocwheel.environment.sdk_layout import is_newer_than_layout, sdk_search_folders
from rocwheel.environment.tree import Distribution, InstalledFile, Tree, split_environments
from rocwheel.frameworks.wheel_draft import InputFiles, draft_wheel, read_runfiles_manifest, write_draft
from rocwheel.frameworks.wheel_spec import make_spec
from rocwheel.wheels.content import FileContent, PatchedContent
from rocwheel.wheels.file_names import name_and_version
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.tags import check_platform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.finding import Finding
    from rocwheel.binary.elf.facts import Elf
    from rocwheel.frameworks.wheel_draft import DraftMember, WheelDraft
    from rocwheel.frameworks.wheel_spec import WheelSpec


class IntendedEntries(msgspec.Struct, frozen=True):
    """The run path entries that a wheel's description and its builder request."""

    search: Sequence[str]
    """Folders relative to site-packages, in search order."""
    system: Collection[str] = ()
    """Literal entries, such as ``/opt/rocm/lib``."""

    def of(self, run_path: str | None, folder: str, installed: Collection[str] = ()) -> frozenset[str]:
        """Return the intended entries for the run path of a file in ``folder``.

        An entry for a folder in ``search`` is intended unless the folder is ``installed``.
        """
        searched = set(self.search) - set(installed)
        entries = split_run_path(run_path)
        return frozenset(e for e in entries if e in self.system or resolve_entry(e, folder) in searched)


def repair_run_paths(
    draft: WheelDraft, companions: Tree, intended: IntendedEntries, requires: Sequence[str] = ()
) -> WheelDraft:
    """Return the wheel with a minimal, correct run path in every file. Files with correct run paths remain unchanged.

    ``companions`` are other packages that are installed with the wheel, in addition to the SDK. Intended entries remain
    at the end, even if no package contains their folders.

    The wheel's release consists of the wheel and the packages that it ``requires`` at an exact version. An RPATH that
    points outside the release becomes a RUNPATH. It remains an RPATH if missing libraries may inherit it.
    """
    owner = Distribution(name=draft.name.distribution, version="", source="", dist_info="", requires=(*requires,))
    files = (*companions.files, *map(_installed, draft.members))
    together = Tree((*companions.distributions, owner), files)
    release = release_folders(together, owner)
    sdk = assumed_sdk_folders(together)
    machines = {member.elf.machine for member in draft.members if member.elf is not None}
    places = {machine: places_for_machine(together, sdk, machine) for machine in machines}
    surroundings = {machine: _Surroundings(found, intended, release) for machine, found in places.items()}
    members = tuple(
        member if member.elf is None else _repaired(member, member.elf, surroundings[member.elf.machine])
        for member in draft.members
    )
    return msgspec.structs.replace(draft, members=members)


def _installed(member: DraftMember) -> InstalledFile:
    return InstalledFile(
        path=member.place, distribution="", source=member.place, size=member.content.size, elf=member.elf
    )


class _Surroundings(msgspec.Struct, frozen=True):
    """The context that determines a file's run path."""

    places: LibraryPlaces
    intended: IntendedEntries
    release: frozenset[str]
    """The top-level folders in the wheel's release."""

    def edit(self, elf: Elf, folder: str) -> SetRunpath | None:
        """Return the edit that corrects the run path of a file in ``folder``, or `None` if it is already correct."""
        tag = elf.run_path_tag or RunpathTag.RUNPATH
        edit = self._edit_of(elf, folder, tag)
        value = elf.run_path if edit is None else edit.value
        is_within = not folders_beyond(self.release, value, folder)
        stays = is_within or tag is RunpathTag.RUNPATH or self.places.leads_beyond(value, folder)
        return edit if stays else self._edit_of(elf, folder, RunpathTag.RUNPATH)

    def _edit_of(self, elf: Elf, folder: str, tag: RunpathTag) -> SetRunpath | None:
        kept = KeptEntries(intended=self.intended.of(elf.run_path, folder, self.places.folders))
        return run_path_edit(elf, folder, self.intended.search, self.places, tag, kept)


def _repaired(member: DraftMember, elf: Elf, surroundings: _Surroundings) -> DraftMember:
    if not (elf.is_loadable and elf.is_shared_library):
        return member
    edit = surroundings.edit(elf, posixpath.dirname(member.place))
    if edit is None or not isinstance(member.content, FileContent):
        return member
    source = member.content.source
    with source.view() as data:
        patch = plan_runpath(data, edit.value, edit.tag, name=member.origin)
    return msgspec.structs.replace(member, content=PatchedContent(source, patch), elf=edit.applied_to(elf))


_RUN_PATH_RULES = "run-path-"
_RULES_ON_LIBRARIES = ("unresolved-library", "unresolved-dlopen")
_RULES_ON_INTENDED = ("run-path-absolute", "run-path-dead")
"""The rules that intended entries may violate."""
_NOTHING_INTENDED = IntendedEntries(())


class WheelFaultError(InputError):
    """An audit finding that prevents writing a wheel."""

    exit_status = 1


class FaultyWheelError(ProblemsError):
    """All findings that prevent writing a wheel."""

    exit_status = 1

    def __init__(self, wheel: str, findings: Sequence[Finding]) -> None:
        faults = (WheelFaultError(_place(one.file), f"{one.found} ({one.rule})", remedy=one.remedy) for one in findings)
        super().__init__(f"{wheel} wasn't written", [*faults])


def verify_wheel(wheel: Path, companions: Sequence[Path], intended: IntendedEntries = _NOTHING_INTENDED) -> None:
    """Audit a wheel together with its companions, except for other wheels of the same distribution.

    ``intended`` run path entries may point to folders that no package contains. Raises `FaultyWheelError` with all
    errors, and with all findings about run paths.
    """
    name = canonicalize_name(name_and_version(wheel.name)[0])
    tree = without_distribution(read_tree([wheel], companions), name)
    without_intended = msgspec.structs.replace(tree, files=tuple(_bare(file, intended) for file in tree.files))
    findings = [
        *_findings(tree, AuditSettings(ignore=_RULES_ON_INTENDED)),
        *_findings(without_intended, AuditSettings(select=_RULES_ON_INTENDED)),
    ]
    faults = [finding for finding in findings if _is_fault(finding)]
    if faults:
        raise FaultyWheelError(wheel.name, faults)


def _findings(tree: Tree, settings: AuditSettings) -> tuple[Finding, ...]:
    return audit(split_environments(tree), settings).findings


def without_distribution(tree: Tree, name: str) -> Tree:
    """Return the tree without the distribution that the new wheel replaces."""
    own = {one.source for one in tree.distributions if one.is_context and one.name == name}
    distributions = tuple(one for one in tree.distributions if one.source not in own)
    files = tuple(file for file in tree.files if file.distribution not in own)
    return msgspec.structs.replace(tree, distributions=distributions, files=files)


def _bare(file: InstalledFile, intended: IntendedEntries) -> InstalledFile:
    """Return a copy of a file without the intended entries in its run path."""
    if file.elf is None or file.run_path is None:
        return file
    left_out = intended.of(file.run_path, file.folder)
    rest = ":".join(entry for entry in split_run_path(file.run_path) if entry not in left_out)
    return msgspec.structs.replace(file, elf=msgspec.structs.replace(file.elf, rpath=None, runpath=rest))


def _is_fault(finding: Finding) -> bool:
    """Return whether a finding prevents writing a wheel.

    A finding about a library that a missing package might contain does prevent it. A finding about a ROCm version that
    rocwheel doesn't know yet doesn't prevent it.
    """
    is_unsure = finding.rule in _RULES_ON_LIBRARIES and finding.severity is Severity.WARNING
    may_lack = is_unsure and not is_newer_than_layout(finding.facts[0])
    return finding.severity is Severity.ERROR or may_lack or finding.rule.startswith(_RUN_PATH_RULES)


def _place(file: str) -> str:
    """Return a member's path inside the wheel, or the wheel's name if the finding is about the whole wheel."""
    wheel, member, path = file.partition("!")
    return path if member else wheel.rpartition("/")[2]


class WheelBuild(msgspec.Struct, frozen=True):
    """The outputs of a build, and the options for the wheel."""

    sources: tuple[Path, ...] = ()
    """Files and folders with inputs."""
    runfiles_manifest: Path | None = None
    commits: dict[str, str] = {}
    python: str = ""
    """The Python version of the extension modules, such as ``3.12``. Empty if their file names contain the version."""
    platform_tag: str = ""
    """The platform tag. If empty, the files' symbol versions determine the tag."""
    companions: tuple[Path, ...] = ()
    """The packages that users install with the wheel, for the audit."""
    system_run_paths: tuple[str, ...] = ()
    """Allowed absolute run path entries, in addition to the entries in the description."""
    repair: bool = False
    verify: bool = True


class WheelReport(msgspec.Struct, frozen=True):
    """The wheel that was written."""

    path: str
    size: int
    """In bytes."""
    floor_reason: str
    repaired: tuple[str, ...]
    """Files with a changed run path."""


class WheelJob(msgspec.Struct, frozen=True):
    """The description, the placeholder values, the build, and the destination of a wheel."""

    source: str
    """The description's name, for messages."""
    description: dict[str, Any]
    values: dict[str, str]
    build: WheelBuild
    dest_dir: Path = Path()
    output: Path | None = None
    """The wheel's path, for builds that must know the name in advance. The name must match the tags."""

    def run(self, progress: Progress = SILENT) -> WheelReport:
        """Write the wheel unless the audit finds faults, and return a report about it.

        Raises `rocwheel.frameworks.wheel.FaultyWheelError`, and the same errors as `make_spec`, `InputFiles`,
        `draft_wheel`, and `write_draft`.
        """
        self._check()
        spec = make_spec(self.description, self.values, source=self.source)
        with step(progress, f"assembling from {self.source}"):
            linked = self._draft(spec)
            draft = self._repaired(linked, spec) if self.build.repair else linked
        path = self._path(draft)
        self._write(draft, spec, path, progress)
        pairs = zip(linked.members, draft.members, strict=True)
        repaired = tuple(new.place for old, new in pairs if old.content != new.content)
        return WheelReport(str(path), path.stat().st_size, draft.floor_reason, repaired)

    def _check(self) -> None:
        """Raise errors that don't depend on the files, before any file is read."""
        raise_all("--system-run-path", entry_problems("--system-run-path", self.build.system_run_paths))
        check_destination((self.output or self.dest_dir / "wheel").parent, option="--output")
        if self.build.platform_tag:
            check_platform(self.build.platform_tag)

    def _draft(self, spec: WheelSpec) -> WheelDraft:
        build = self.build
        manifest = read_runfiles_manifest(build.runfiles_manifest) if build.runfiles_manifest else None
        inputs = InputFiles(build.sources, manifest)
        return draft_wheel(spec, inputs, commits=build.commits, python=build.python, platform_tag=build.platform_tag)

    def _repaired(self, draft: WheelDraft, spec: WheelSpec) -> WheelDraft:
        companions = without_distribution(read_tree((), self.build.companions), canonicalize_name(spec.name))
        return repair_run_paths(draft, companions, self._intended(spec), spec.requires)

    def _write(self, draft: WheelDraft, spec: WheelSpec, path: Path, progress: Progress) -> None:
        """Write the wheel to a separate folder, and move it to its destination after the audit."""
        with _folder_beside(path) as folder:
            unfinished = folder / path.name
            write_draft(draft, unfinished, SourceDate.from_environment(os.environ), progress)
            if self.build.verify:
                with step(progress, f"checking {path.name}"):
                    verify_wheel(unfinished, self.build.companions, self._intended(spec))
            unfinished.replace(path)

    def _intended(self, spec: WheelSpec) -> IntendedEntries:
        return IntendedEntries(
            spec.search or sdk_search_folders(), (*spec.system_run_paths, *self.build.system_run_paths)
        )

    def _path(self, draft: WheelDraft) -> Path:
        name = draft.name.file_name
        if self.output is None:
            return self.dest_dir / name
        if self.output.name != name:
            expected = f"the name that its files determine, {name}"
            reason = f" (platform: {draft.floor_reason})" if draft.floor_reason else ""
            raise InputError(self.output, f"is not the wheel's name{reason}", expected=expected)
        return self.output


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(path) as folder:
            yield folder
    except OSError as e:
        raise write_error(path, e, remedy="Check the permissions of its folder.") from e
