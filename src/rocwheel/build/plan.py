"""The plan of a build: plain values that say what every distribution holds and where each of its bytes comes from."""

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
    """A file of an artifact, byte for byte unless an edit is named."""

    path: str
    mode: int
    source: FileRange
    artifact: str
    origin: str
    """The file's path in the artifact's prefix."""
    run_path: SetRunpath | None = None
    compress_for: str | None = None
    """The oldest ROCm release that has to read the file's offload bundles, which are compressed; none leaves them."""
    trim: bool = False
    """Whether the space that this frees is taken out of shared libraries."""


class StubMember(msgspec.Struct, frozen=True, tag="stub"):
    """An executable of about a kilobyte that runs ``target``, a path relative to its own folder."""

    path: str
    target: str
    machine: int
    artifact: str


class RelayMember(msgspec.Struct, frozen=True, tag="relay"):
    """A program of Windows of 5 KB that starts ``target``, a path relative to its folder, in the place of a copy."""

    path: str
    target: str
    artifact: str
    replaced: int
    """Bytes of the copy."""
    arguments: tuple[str, ...] = ()
    """What the target is started with before all other arguments."""


class ForwardingMember(msgspec.Struct, frozen=True, tag="alias"):
    """A forwarding library: a shared library without code, whose loading loads ``soname`` from its own folder."""

    path: str
    soname: str
    machine: int
    artifact: str
    tag: RunpathTag
    """The kind of its run path. That names its own folder, so no other library can take the place of the real one."""


class TextMember(msgspec.Struct, frozen=True, tag="text"):
    """A generated text file."""

    path: str
    text: str


class TarEntry(msgspec.Struct, frozen=True):
    """One member of the devel tar: a file with its content, or a symlink with its text."""

    path: str
    mode: int
    file: FileMember | None = None
    link: str | None = None


class TarMember(msgspec.Struct, frozen=True, tag="tar"):
    """The devel tar, written as a stream into the wheel."""

    path: str
    compression: Literal["none", "xz", "zst"]
    entries: tuple[TarEntry, ...]
    links: tuple[str, ...] = ()
    """Paths of the expanded tree that are links to files elsewhere, or copies of these, and no members of the tar."""


Member = FileMember | StubMember | RelayMember | ForwardingMember | TextMember | TarMember


def member_files(member: Member) -> Iterator[FileMember]:
    """Yield the files of artifacts that a member has the bytes of: itself, or those in a tar."""
    if isinstance(member, FileMember):
        yield member
    elif isinstance(member, TarMember):
        yield from (entry.file for entry in member.entries if entry.file is not None)


def member_paths(member: Member) -> Iterator[str]:
    """Yield the path of a member and those of what is in a tar, relative to site-packages."""
    yield member.path
    if isinstance(member, TarMember):
        yield from (entry.path for entry in member.entries)


class PlannedComponent(msgspec.Struct, frozen=True):
    """A part of the SDK that a wheel has files of, and that is licensed by itself."""

    artifact: str
    """Such as ``blas``."""
    project: str
    """Its folder in the sources of the SDK, such as ``math-libs/BLAS/rocBLAS``; empty where that is not known."""
    license: str | None = None
    """Its SPDX expression; none where the recipe doesn't tell."""
    license_files: tuple[str, ...] = ()
    """Its license texts, relative to ``.dist-info/licenses``."""
    artifacts: tuple[str, ...] = ()
    """Full names of the artifacts that the files are from, such as ``blas_lib_generic``."""
    version: str = ""
    """Of its sources, such as a commit; empty where that is not known."""
    upstream: tuple[str, ...] = ()
    """Package URLs of what it was made of: a repository at a commit, or Debian packages."""

    @property
    def name(self) -> str:
        """What people call it, such as ``rocBLAS``."""
        return self.project.rpartition("/")[2] or self.artifact


class PlannedWheel(msgspec.Struct, frozen=True):
    """One wheel. ``folder`` is where it goes below the dist folder; empty for the dist folder itself."""

    package: str
    name: WheelName
    metadata: CoreMetadata
    members: tuple[Member, ...]
    licenses: tuple[FileMember | TextMember, ...] = ()
    """License texts; their paths are relative to ``.dist-info/licenses``."""
    console_scripts: dict[str, str] = {}
    targets: tuple[str, ...] = ()
    """GPU targets that its files carry code for, read from the files."""
    declaration: str = ""
    """The text of ``.dist-info/rocm_targets.json``: these targets, and how the packages fit together."""
    info_texts: dict[str, str] = {}
    """Further texts of ``.dist-info``, by their names there: ``variant.json`` of a wheel variant (a draft)."""
    is_purelib: bool = False
    components: tuple[PlannedComponent, ...] = ()
    """What its files are of, but for those that rocwheel makes."""
    floor_reason: str = ""
    """The file and symbol version that ask for the platform tag."""
    folder: str = ""


class PlannedSdist(msgspec.Struct, frozen=True):
    """One source distribution of generated text files, by their path below its top folder."""

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
    """Something that is probably wrong with distributions, though they can be built."""

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
    ]
    subject: str
    """The library, wheel, rule or folder that the warning is about."""
    found: str
    remedy: str
    files: tuple[str, ...] = ()
    """All files that the warning is about."""


class Plan(msgspec.Struct, frozen=True):
    """What a build will make."""

    version: str
    layout: Layout
    targets: tuple[str, ...]
    wheels: tuple[PlannedWheel, ...]
    sdists: tuple[PlannedSdist, ...]
    dropped: tuple[Dropped, ...] = ()
    gaps: tuple[str, ...] = ()
    """Targets for which a package has code, but not a package that it depends on."""
    warnings: tuple[PlanWarning, ...] = ()
    platform: Platform = Platform.LINUX
    """The system that the packages are for."""
