"""The plan of a build: plain values that describe every distribution and the origin of each of its bytes."""

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
    """Whether the freed space is removed from shared libraries."""


class StubMember(msgspec.Struct, frozen=True, tag="stub"):
    """An executable of about a kilobyte that runs ``target``, a path relative to its own folder."""

    path: str
    target: str
    machine: int
    artifact: str


class RelayMember(msgspec.Struct, frozen=True, tag="relay"):
    """A Windows program of 5 KB that starts ``target``, a path relative to its folder, in place of a copy of it."""

    path: str
    target: str
    artifact: str
    replaced: int
    """The size of the copy in bytes."""
    arguments: tuple[str, ...] = ()
    """The arguments that the target receives before all others."""


class ForwardingMember(msgspec.Struct, frozen=True, tag="alias"):
    """A forwarding library: a shared library without code that loads ``soname`` from its own folder."""

    path: str
    soname: str
    machine: int
    artifact: str
    tag: RunpathTag
    """The kind of its run path, which is its own folder, so that no other library can replace the real one."""


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
    """The devel tar, which is written as a stream into the wheel."""

    path: str
    compression: Literal["none", "xz", "zst"]
    entries: tuple[TarEntry, ...]
    links: tuple[str, ...] = ()
    """Paths of the expanded tree that are links to or copies of files elsewhere, and not members of the tar."""


Member = FileMember | StubMember | RelayMember | ForwardingMember | TextMember | TarMember


def member_files(member: Member) -> Iterator[FileMember]:
    """Yield the artifact files whose bytes a member contains: itself, or those in a tar."""
    if isinstance(member, FileMember):
        yield member
    elif isinstance(member, TarMember):
        yield from (entry.file for entry in member.entries if entry.file is not None)


def member_paths(member: Member) -> Iterator[str]:
    """Yield the paths of a member and of the contents of a tar, relative to site-packages."""
    yield member.path
    if isinstance(member, TarMember):
        yield from (entry.path for entry in member.entries)


class PlannedComponent(msgspec.Struct, frozen=True):
    """A part of the SDK with its own license that a wheel contains files of."""

    artifact: str
    """Such as ``blas``."""
    project: str
    """Its folder in the SDK sources, such as ``math-libs/BLAS/rocBLAS``; empty if unknown."""
    license: str | None = None
    """Its SPDX expression; `None` if the recipe doesn't set one."""
    license_files: tuple[str, ...] = ()
    """Its license texts, relative to ``.dist-info/licenses``."""
    artifacts: tuple[str, ...] = ()
    """The full names of the artifacts of its files, such as ``blas_lib_generic``."""
    version: str = ""
    """The version of its sources, such as a commit; empty if unknown."""
    upstream: tuple[str, ...] = ()
    """Package URLs of its sources: a repository at a commit, or Debian packages."""

    @property
    def name(self) -> str:
        """Its common name, such as ``rocBLAS``."""
        return self.project.rpartition("/")[2] or self.artifact


class PlannedWheel(msgspec.Struct, frozen=True):
    """A wheel. ``folder`` is where it goes below the dist folder; empty for the dist folder itself."""

    package: str
    name: WheelName
    metadata: CoreMetadata
    members: tuple[Member, ...]
    licenses: tuple[FileMember | TextMember, ...] = ()
    """License texts, with paths relative to ``.dist-info/licenses``."""
    console_scripts: dict[str, str] = {}
    targets: tuple[str, ...] = ()
    """The GPU targets of the code in its files."""
    declaration: str = ""
    """The text of ``.dist-info/rocm_targets.json``: these targets, and how the packages fit together."""
    info_texts: dict[str, str] = {}
    """Additional texts in ``.dist-info`` by name, such as ``variant.json`` of a wheel variant (a draft)."""
    is_purelib: bool = False
    components: tuple[PlannedComponent, ...] = ()
    """The components of its files, except those that rocwheel creates."""
    floor_reason: str = ""
    """The file and symbol version that require the platform tag."""
    folder: str = ""


class PlannedSdist(msgspec.Struct, frozen=True):
    """A source distribution of generated text files, by their paths below its top folder."""

    distribution: str
    version: str
    metadata: CoreMetadata
    files: dict[str, str]
    folder: str = ""


class Dropped(msgspec.Struct, frozen=True, order=True):
    """An entry of an artifact that no distribution takes, and why."""

    path: str
    artifact: str
    reason: str


class PlanWarning(msgspec.Struct, frozen=True):
    """Something that is probably wrong with distributions, although they can be built."""

    kind: Literal[
        "missing-library",
        "platform-tag",
        "unknown-artifact",
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
    """What a build will create."""

    version: str
    layout: Layout
    targets: tuple[str, ...]
    wheels: tuple[PlannedWheel, ...]
    sdists: tuple[PlannedSdist, ...]
    dropped: tuple[Dropped, ...] = ()
    gaps: tuple[str, ...] = ()
    """Targets for which a package has code, but a package that it depends on doesn't."""
    warnings: tuple[PlanWarning, ...] = ()
    platform: Platform = Platform.LINUX
    """The system that the packages are for."""
