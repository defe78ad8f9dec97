"""A whole run: from a wheel's description and the outputs of a build to the finished, verified wheel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.distributions.source_date import SourceDate
from rocwheel.errors import InputError
from rocwheel.frameworks.assembly import draft_wheel, write_draft
from rocwheel.frameworks.inputs import InputFiles, read_runfiles_manifest
from rocwheel.frameworks.installed_files import read_installed_elves
from rocwheel.frameworks.repair import repair_run_paths
from rocwheel.frameworks.run_path_check import WrongRunPathsError, wrong_run_paths
from rocwheel.frameworks.sdk_layout import sdk_search_folders
from rocwheel.frameworks.wheel_spec import make_spec
from rocwheel.packages.recipe import load_recipe

if TYPE_CHECKING:
    from rocwheel.frameworks.assembly import WheelDraft
    from rocwheel.frameworks.wheel_spec import WheelSpec

__all__ = ["WheelBuild", "WheelJob", "WheelReport"]


class WheelBuild(msgspec.Struct, frozen=True):
    """What a build gives to a wheel, and how the wheel is to be made."""

    sources: tuple[Path, ...] = ()
    """Files, and folders that inputs' paths are below."""
    runfiles_manifest: Path | None = None
    commits: dict[str, str] = {}
    python: str = ""
    """Of the extension modules, such as ``3.12``; empty where their names tell it."""
    platform_tag: str = ""
    """Empty for the one that the files' symbol versions give."""
    companions: tuple[Path, ...] = ()
    """The packages that it will be installed beside, for the verification."""
    repair: bool = False
    verify: bool = True


class WheelReport(msgspec.Struct, frozen=True):
    """The wheel that was written."""

    path: str
    size: int
    """In bytes."""
    floor_reason: str
    repaired: tuple[str, ...]
    """Files whose run path was changed."""


class WheelJob(msgspec.Struct, frozen=True):
    """A description, the values of its placeholders, a build, and where the wheel goes."""

    source: str
    """What errors call the description."""
    description: dict[str, Any]
    values: dict[str, str]
    build: WheelBuild
    dest_dir: Path = Path()
    output: Path | None = None
    """The wheel's file, for builds that have to know its name before; it has to be the one that the tags give."""

    def run(self) -> WheelReport:
        """Write the wheel, unless its run paths are wrong.

        Raises `WrongRunPathsError` with every wrong run path, and what `make_spec`, `InputFiles`, `draft_wheel` and
        `write_draft` raise.
        """
        spec = make_spec(self.description, self.values, source=self.source)
        linked = self._draft(spec)
        draft = self._verified(linked, spec)
        path = self._path(draft)
        write_draft(draft, path, SourceDate.from_environment(os.environ))
        pairs = zip(linked.members, draft.members, strict=True)
        repaired = tuple(new.place for old, new in pairs if old.content != new.content)
        return WheelReport(str(path), path.stat().st_size, draft.floor_reason, repaired)

    def _draft(self, spec: WheelSpec) -> WheelDraft:
        build = self.build
        manifest = read_runfiles_manifest(build.runfiles_manifest) if build.runfiles_manifest else None
        inputs = InputFiles(build.sources, manifest)
        return draft_wheel(spec, inputs, commits=build.commits, python=build.python, platform_tag=build.platform_tag)

    def _verified(self, draft: WheelDraft, spec: WheelSpec) -> WheelDraft:
        companions = read_installed_elves(self.build.companions)
        search = spec.search or sdk_search_folders(load_recipe())
        if self.build.repair:
            draft = repair_run_paths(draft, companions, search)
        files = {member.place: member.elf for member in draft.members if member.elf}
        meant = (*spec.system_run_paths, *search)
        problems = wrong_run_paths(files, companions, meant) if self.build.verify else []
        if problems:
            raise WrongRunPathsError(draft.name.file_name, problems)
        return draft

    def _path(self, draft: WheelDraft) -> Path:
        name = draft.name.file_name
        if self.output is None:
            return self.dest_dir / name
        if self.output.name != name:
            expected = f"the name that its files give, {name}"
            reason = f" (platform: {draft.floor_reason})" if draft.floor_reason else ""
            raise InputError(self.output, f"is not the wheel's name{reason}", expected=expected)
        return self.output
