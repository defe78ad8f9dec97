"""The plan of a build: plain values that describe every distribution and the source of every byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.platform import Platform
from rocwheel.build.recipe import Layout
from rocwheel.core.reading import FileRange
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.wheels.metadata import CoreMetadata
from rocwheel.wheels.writing import WheelName

if TYPE_CHECKING:
    from collections.abc import Iterator


class FileMember(msgspec.Struct, frozen=True, tag="file"):
    """A file of an artifact, unchanged unless an edit is set."""

    path: str
    mode: int
    source: FileRange
    artifact: str
    origin: str
    """The file's path in the artifact's prefix."""
    run_path: SetRunpath | None = None
    compress_for: str | None = None
    """The oldest ROCm release that must read the file's compressed offload bundles; `None` leaves bundles unchanged."""
    trim: bool = False
    """Whether freed space is removed from shared libraries."""


class StubMember(msgspec.Struct, frozen=True, tag="stub"):
    """An executable of about 1 KB that runs ``target``, which is a path relative to the executable's folder."""

    path: str
    target: str
    machine: int
    artifact: str


class RelayMember(msgspec.Struct, frozen=True, tag="relay"):
    """A 5 KB Windows program that starts ``target``, a path relative to its folder.

    The relay replaces a copy of that program.
    """

    path: str
    target: str
    artifact: str
    replaced: int
    """The size of the replaced copy in bytes."""
    arguments: tuple[str, ...] = ()
    """The arguments that the target receives before all other arguments."""


class ForwardingMember(msgspec.Struct, frozen=True, tag="alias"):
    """A forwarding library: a shared library without code that loads ``soname`` from its own folder."""

    path: str
    soname: str
    machine: int
    artifact: str
    tag: RunpathTag
    """The kind of run path.

    The run path points only to the library's own folder, so that no other library can replace ``soname``.
    """


class TextMember(msgspec.Struct, frozen=True, tag="text"):
    """A generated text file."""

    path: str
    text: str


class TarEntry(msgspec.Struct, frozen=True):
    """A member of the devel tar: a file with its content, or a symlink with its target."""

    path: str
    mode: int
    file: FileMember | None = None
    link: str | None = None


class TarMember(msgspec.Struct, frozen=True, tag="tar"):
    """The devel tar, which is streamed into the wheel."""

    path: str
    compression: Literal["none", "xz", "zst"]
    entries: tuple[TarEntry, ...]
    links: tuple[str, ...] = ()
    """Paths in the expanded tree that are links to or copies of files elsewhere, and are not members of the tar."""


Member = FileMember | StubMember | RelayMember | ForwardingMember | TextMember | TarMember


def member_files(member: Member) -> Iterator[FileMember]:
    """Yield the artifact files whose bytes a member contains: the member itself, or the files in a tar."""
    if isinstance(member, FileMember):
        yield member
    elif isinstance(member, TarMember):
        yield from (entry.file for entry in member.entries if entry.file is not None)


def member_paths(member: Member) -> Iterator[str]:
    """Yield the installed path of a member, and of each file in a tar, relative to site-packages."""
    yield member.path
    if isinstance(member, TarMember):
        yield from (entry.path for entry in member.entries)


class PlannedComponent(msgspec.Struct, frozen=True):
    """A part of the SDK with its own license. The wheel contains at least one file from it."""

    artifact: str
    """The name of the artifact, such as ``blas``."""
    project: str
    """The component's folder in the SDK sources, such as ``math-libs/BLAS/rocBLAS``; empty if unknown."""
    license: str | None = None
    """The component's SPDX expression, or `None` if the recipe doesn't set one."""
    license_files: tuple[str, ...] = ()
    """The paths of the component's license texts, relative to ``.dist-info/licenses``."""
    artifacts: tuple[str, ...] = ()
    """The full names of the artifacts that contain the component's files, such as ``blas_lib_generic``."""
    version: str = ""
    """The version of the component's sources, such as a commit; empty if unknown."""
    upstream: tuple[str, ...] = ()
    """Package URLs of the component's sources: a repository at a commit, or Debian packages."""

    @property
    def name(self) -> str:
        """The component's common name, such as ``rocBLAS``."""
        return self.project.rpartition("/")[2] or self.artifact


class PlannedWheel(msgspec.Struct, frozen=True):
    """A wheel. ``folder`` is its location below the dist folder; empty for the dist folder itself."""

    package: str
    name: WheelName
    metadata: CoreMetadata
    members: tuple[Member, ...]
    licenses: tuple[FileMember | TextMember, ...] = ()
    """License texts, with paths relative to ``.dist-info/licenses``."""
    console_scripts: dict[str, str] = {}
    targets: tuple[str, ...] = ()
    """The GPU targets that the wheel's files contain code for."""
    declaration: str = ""
    """The text of ``.dist-info/rocm_targets.json``: the targets, and how the packages relate to each other."""
    info_texts: dict[str, str] = {}
    """Additional text files in ``.dist-info``, keyed by name, such as ``variant.json`` in a wheel variant (a draft)."""
    is_purelib: bool = False
    components: tuple[PlannedComponent, ...] = ()
    """The components that the wheel's files belong to, excluding files that rocwheel creates."""
    floor_reason: str = ""
    """The file and symbol version that determine the wheel's platform tag."""
    folder: str = ""


class PlannedSdist(msgspec.Struct, frozen=True):
    """A source distribution that consists of generated text files, keyed by their paths below its top folder."""

    distribution: str
    version: str
    metadata: CoreMetadata
    files: dict[str, str]
    folder: str = ""


class Dropped(msgspec.Struct, frozen=True, order=True):
    """An entry of an artifact that is not in any distribution, and the reason."""

    path: str
    artifact: str
    reason: str


class PlanWarning(msgspec.Struct, frozen=True):
    """A probable mistake that doesn't prevent the build."""

    kind: Literal[
        "missing-library",
        "platform-tag",
        "unknown-artifact",
        "unknown-target",
        "earlier-build",
        "device-code-stays",
        "no-kpack-runtime",
        "not-retargeted",
        "incomplete-target",
        "unnamed-code",
        "foreign-binary",
        "import-library",
        "relay",
        "long-path",
        "broken-link",
        "unlisted-target",
    ]
    subject: str
    """The library, wheel, rule, or folder that the warning is about."""
    found: str
    remedy: str
    files: tuple[str, ...] = ()
    """All files that the warning is about."""


class Plan(msgspec.Struct, frozen=True):
    """The distributions that a build will create."""

    version: str
    layout: Layout
    targets: tuple[str, ...]
    wheels: tuple[PlannedWheel, ...]
    sdists: tuple[PlannedSdist, ...]
    dropped: tuple[Dropped, ...] = ()
    gaps: tuple[str, ...] = ()
    """Targets that a package has code for, even though a package that it depends on has no code for them."""
    warnings: tuple[PlanWarning, ...] = ()
    platform: Platform = Platform.LINUX
    """The system that the packages are for."""
