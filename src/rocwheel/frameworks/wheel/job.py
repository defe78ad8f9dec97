"""Makes a wheel: from its description and the outputs of a build to the finished, verified file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, write_error
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import check_destination
from rocwheel.distributions.formats.platforms.given_platform import check_platform
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.frameworks.wheel.draft import draft_wheel, write_draft
from rocwheel.frameworks.wheel.inputs import InputFiles, read_runfiles_manifest
from rocwheel.frameworks.wheel.run_paths import IntendedEntries, repair_run_paths
from rocwheel.frameworks.wheel.spec import make_spec
from rocwheel.frameworks.wheel.verify import verify_wheel, without_distribution
from rocwheel.installed.reading.read_tree import read_tree
from rocwheel.linking.entry_rules import entry_problems
from rocwheel.linking.known.sdk_layout import sdk_search_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.wheel.draft import WheelDraft
    from rocwheel.frameworks.wheel.spec import WheelSpec

__all__ = ["WheelBuild", "WheelJob", "WheelReport"]


class WheelBuild(msgspec.Struct, frozen=True):
    """The outputs of a build, and how the wheel is to be made of them."""

    sources: tuple[Path, ...] = ()
    """Files, and folders that inputs' paths are below."""
    runfiles_manifest: Path | None = None
    commits: dict[str, str] = {}
    python: str = ""
    """The Python of the extension modules, such as ``3.12``; empty if their names say it."""
    platform_tag: str = ""
    """Empty for the tag that the files' symbol versions give."""
    companions: tuple[Path, ...] = ()
    """The packages that it will be installed with, for the verification."""
    system_run_paths: tuple[str, ...] = ()
    """Absolute run path entries that are allowed, in addition to those of the description."""
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
    """The wheel's file, for builds that have to know its name in advance. Its name has to be the one of the tags."""

    def run(self) -> WheelReport:
        """Write the wheel, unless the audit finds faults in it, and return what was written.

        Raises `rocwheel.frameworks.wheel.verify.FaultyWheelError`, and what `make_spec`, `InputFiles`, `draft_wheel`
        and `write_draft` raise.
        """
        self._check()
        spec = make_spec(self.description, self.values, source=self.source)
        linked = self._draft(spec)
        draft = self._repaired(linked, spec) if self.build.repair else linked
        path = self._path(draft)
        self._write(draft, spec, path)
        pairs = zip(linked.members, draft.members, strict=True)
        repaired = tuple(new.place for old, new in pairs if old.content != new.content)
        return WheelReport(str(path), path.stat().st_size, draft.floor_reason, repaired)

    def _check(self) -> None:
        """Raise what is wrong by itself, before anything is read."""
        raise_all("--system-run-path", entry_problems("--system-run-path", self.build.system_run_paths))
        check_destination((self.output or self.dest_dir / "wheel").parent)
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

    def _write(self, draft: WheelDraft, spec: WheelSpec, path: Path) -> None:
        """Write the wheel into a folder of its own, from which it moves to its place when it is right."""
        with _folder_beside(path) as folder:
            unfinished = folder / path.name
            write_draft(draft, unfinished, SourceDate.from_environment(os.environ))
            if self.build.verify:
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
            expected = f"the name that its files give, {name}"
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
        raise write_error(path, e, remedy="Check its folder's permissions.") from e
