"""Defines artifacts: their names, the safe paths inside them, their manifests, and their members."""

from __future__ import annotations

import enum
import logging
import posixpath
import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import processor_of
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.names import is_utf8
from rocwheel.core.reading import FileRange
from rocwheel.core.writing import plain_mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.core.errors import RocwheelError


ARCHIVE_SUFFIXES = (".tar.xz", ".tar.zst")
"""The file name suffixes of artifact archives."""


_FIELD = r"[A-Za-z0-9][A-Za-z0-9.+:~-]*"
_NAME = re.compile(f"({_FIELD})_({_FIELD})_({_FIELD})")
_LOOSE_NAME = re.compile(r"[^_]+_[^_]+_[^_]+")


class ArtifactName(msgspec.Struct, frozen=True, order=True):
    """The name of an artifact. The constructor doesn't validate fields; use `parse` for untrusted names."""

    name: str
    """The content of the artifact, such as ``blas``."""
    component: str
    """The component: ``lib``, ``run``, ``dbg``, ``dev``, ``doc``, or ``test``."""
    target: str
    """``generic``, a GPU target such as ``gfx90a:xnack+``, or a family such as ``gfx94X-dcgpu``, as in the name."""

    @classmethod
    def parse(cls, text: str, source: object = None) -> ArtifactName:
        """Split ``text`` at its two underscores into the fields of a name.

        Raises `InputError` about ``source``, which defaults to ``text``, unless there are exactly two underscores and
        each field is a non-empty string of characters that TheRock's artifacts use.
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise InputError(
                text if source is None else str(source),
                "is not an artifact name",
                expected="{name}_{component}_{target} with letters, digits, and '.+:~-', such as blas_lib_gfx942",
            )
        return cls(*match.groups())

    @property
    def base_target(self) -> str:
        """The target without its feature suffix, such as ``gfx90a`` for ``gfx90a:xnack+``."""
        return processor_of(self.target)

    def __str__(self) -> str:
        return f"{self.name}_{self.component}_{self.target}"


def looks_like_artifact(text: str) -> bool:
    """Return whether TheRock would parse ``text`` as an artifact name: three fields separated by two underscores."""
    return _LOOSE_NAME.fullmatch(text) is not None


def path_fault(path: str) -> str | None:
    """Return why an untrusted relative path is unsafe, or `None` if it stays inside the folder to which it is added."""
    segments = path.split("/")
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if ".." in segments:
        return "contains '..'"
    if "" in segments or "." in segments:
        return "is not normalized"
    if "\0" in path:
        return "contains a NUL character"
    return None if is_utf8(path) else "is not valid UTF-8 text"


def link_fault(path: str, link: str) -> str | None:
    """Return why the target of the symlink at ``path`` is unsafe, or `None` if the target is below the root."""
    if not link:
        return "has an empty target"
    if not is_utf8(link):
        return "points to a name that is not valid UTF-8 text"
    if link.startswith("/"):
        return f"points to the absolute path {link!r}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    if target == ".." or target.startswith("../"):
        return f"points out of the tree through {link!r}"
    return None


def ancestors(path: str) -> list[str]:
    """Return the parent folders of ``path``, outermost first, such as ``a`` and ``a/b`` for ``a/b/c``."""
    segments = path.split("/")
    return ["/".join(segments[:depth]) for depth in range(1, len(segments))]


_LINE_ENDS = re.compile(r"[\r\n]+")
"""Matches line endings. Unlike `str.splitlines`, it doesn't match characters that can occur in folder names."""

MANIFEST_NAME = "artifact_manifest.txt"

MAX_MANIFEST_SIZE = 1 << 20
"""The size limit in bytes. A real manifest has only a few lines."""


def parse_stages(data: bytes, source: str) -> tuple[str, ...]:
    """Return the stage folders that a manifest lists, in order and without duplicates.

    Ignores blank lines, a leading ``./``, and a trailing ``/``. An empty artifact has an empty manifest. Raises
    `ProblemsError` with each line that is not a path inside the artifact.
    """
    try:
        lines = _LINE_ENDS.split(data.decode())
    except UnicodeDecodeError as e:
        found = f"is not valid UTF-8 text (byte {e.start})"
        raise InputError(source, found, expected="one stage folder per line") from e
    stages = tuple(dict.fromkeys(_stage(line) for line in lines if line.strip()))
    problems = [
        InputError(
            source, f"the path of the stage folder {stage!r} {fault}", expected="a relative path inside the artifact"
        )
        for stage in stages
        # Readers would ignore a blank line in the written manifest.
        if (fault := path_fault(stage) or ("" if stage.strip() else "is blank"))
    ]
    if problems:
        raise ProblemsError(source, problems)
    return stages


def _stage(line: str) -> str:
    path = line.removeprefix("./")
    return path.rstrip("/") or path


def format_stages(stages: tuple[str, ...]) -> bytes:
    """Return a manifest that lists ``stages``, in TheRock's format."""
    return ("\n".join(stages) + "\n").encode()


logger = logging.getLogger(__name__)

ANY_EXECUTE = 0o111
"""The mode bits that allow the owner, the group, or others to run a file."""
PERMISSIONS = 0o777
"""The mode bits that are preserved in an artifact. The set-user-ID, set-group-ID, and sticky bits are dropped."""


class FileKind(enum.Enum):
    """The type of an artifact member."""

    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"


class Member(msgspec.Struct, frozen=True):
    """A file, symlink, or directory at its path in an artifact."""

    path: str
    """The ``/``-separated path relative to the artifact. It begins with a stage folder."""
    kind: FileKind
    mode: int
    """The permission bits. The mode bits are meaningless for symlinks and are set to 0o777."""
    source: FileRange | None = None
    """The bytes of a file, or `None` for symlinks and directories."""
    link: str | None = None
    """The raw target of a symlink, or `None` for other members."""

    @property
    def plain_mode(self) -> int:
        """The mode in a derived artifact, which must not depend on the user or the umask of the build."""
        if self.kind is FileKind.SYMLINK:
            return PERMISSIONS
        return 0o755 if self.kind is FileKind.DIRECTORY else plain_mode(self.mode)


class Artifact(msgspec.Struct, frozen=True):
    """An artifact that was read from a folder or an archive."""

    name: ArtifactName
    location: str
    """The folder or archive that the artifact was read from."""
    stages: tuple[str, ...]
    """The stage folders, in the order of the manifest."""
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """The total size of the artifact's files in bytes."""
        return sum(member.source.size for member in self.members if member.source)

    def stage_of(self, path: str) -> str | None:
        """Return the innermost stage folder that contains a member's path, or `None`."""
        inside = [stage for stage in self.stages if path.startswith(f"{stage}/")]
        return max(inside, key=len, default=None)


def place(location: object, path: str) -> str:
    """Return the location of an artifact's member for messages, with unprintable characters escaped."""
    return f"{location}/{path if path.isprintable() else ascii(path)}"


def checked(artifact: Artifact, problems: list[RocwheelError]) -> Artifact:
    """Return the artifact without members outside its stage folders.

    Raises `ProblemsError` with the existing ``problems`` from reading the artifact, and with an error for each unusable
    member. A member is unusable if its path is unsafe or a duplicate, if it is below a file or symlink, or if it is a
    symlink that points outside its stage folder. A file in a subfolder that is not a stage folder is also an error,
    because the file would be lost. A stage folder may be empty, because TheRock lists every folder that could have
    members.
    """
    counts = Counter(member.path for member in artifact.members if member.kind is not FileKind.DIRECTORY)
    folders = {member.path for member in artifact.members if member.kind is FileKind.DIRECTORY}
    # Report each fault once, because two members with the same name have the same faults.
    faults = dict.fromkeys(
        (member.path, fault) for member in artifact.members for fault in _faults(member, artifact, counts, folders)
    )
    problems = problems + [InputError(place(artifact.location, path), fault) for path, fault in faults]
    if problems:
        raise ProblemsError(artifact.location, problems)
    return msgspec.structs.replace(artifact, members=tuple(_staged_members(artifact)))


def _staged_members(artifact: Artifact) -> Iterator[Member]:
    for member in artifact.members:
        if member.path in artifact.stages or artifact.stage_of(member.path) is not None:
            yield member
        elif member.kind is not FileKind.DIRECTORY and member.path != MANIFEST_NAME:
            logger.debug("ignoring %s, which is outside the stage folders", place(artifact.location, member.path))


def _faults(member: Member, artifact: Artifact, counts: Counter[str], folders: set[str]) -> Iterator[str]:
    if fault := path_fault(member.path):
        yield f"its path {fault}"
        return
    if counts[member.path] > 1 or (counts[member.path] and member.path in folders):
        yield "occurs more than once"
    for folder in ancestors(member.path):
        if counts[folder]:
            yield f"is below {folder!r}, which is not a folder"
    if member.kind is FileKind.DIRECTORY:
        return
    if member.path in artifact.stages:
        yield f"is a {member.kind.value}, but the manifest lists it as a stage folder"
        return
    stage = artifact.stage_of(member.path)
    if stage is None and "/" in member.path:
        yield "is not in any stage folder that the manifest lists"
    if member.link is not None and (fault := link_fault(member.path.removeprefix(f"{stage}/"), member.link)):
        yield f"is a symlink that {fault}"
