"""What an artifact is: its name, the safe paths inside it, its manifest and its members."""

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
"""How the file name of an artifact archive ends."""


_FIELD = r"[A-Za-z0-9][A-Za-z0-9.+:~-]*"
_NAME = re.compile(f"({_FIELD})_({_FIELD})_({_FIELD})")
_LOOSE_NAME = re.compile(r"[^_]+_[^_]+_[^_]+")


class ArtifactName(msgspec.Struct, frozen=True, order=True):
    """The name of one artifact. The constructor does not validate; use `parse` for names from outside."""

    name: str
    """What is in it, such as ``blas``."""
    component: str
    """Which part of it: ``lib``, ``run``, ``dbg``, ``dev``, ``doc`` or ``test``."""
    target: str
    """``generic``, a GPU target such as ``gfx90a:xnack+``, or a target family such as ``gfx94X-dcgpu``; as found."""

    @classmethod
    def parse(cls, text: str, source: object = None) -> ArtifactName:
        """Split ``text`` at its two underscores.

        Raises `InputError` for ``source`` (``text`` by default) when there are not exactly two, or when a field is
        empty or holds a character that no artifact of TheRock has.
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise InputError(
                text if source is None else str(source),
                "is not an artifact name",
                expected="{name}_{component}_{target} of letters, digits and '.+:~-', such as blas_lib_gfx942",
            )
        return cls(*match.groups())

    @property
    def base_target(self) -> str:
        """The target without its feature suffix: ``gfx90a`` for ``gfx90a:xnack+``."""
        return processor_of(self.target)

    def __str__(self) -> str:
        return f"{self.name}_{self.component}_{self.target}"


def looks_like_artifact(text: str) -> bool:
    """Return whether TheRock would read ``text`` as an artifact's name: three fields separated by two underscores."""
    return _LOOSE_NAME.fullmatch(text) is not None


def path_fault(path: str) -> str | None:
    """Return what is wrong with a relative path from outside, or None when it stays in the folder it is joined to."""
    segments = path.split("/")
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if ".." in segments:
        return "climbs with '..'"
    if "" in segments or "." in segments:
        return "is not in its shortest form"
    if "\0" in path:
        return "holds a NUL character"
    return None if is_utf8(path) else "is not valid UTF-8 text"


def link_fault(path: str, link: str) -> str | None:
    """Return what is wrong with the text of the symlink at ``path``, or None when it stays below the root."""
    if not link:
        return "points nowhere"
    if not is_utf8(link):
        return "points to a name that is not valid UTF-8 text"
    if link.startswith("/"):
        return f"points to the absolute path {link!r}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    if target == ".." or target.startswith("../"):
        return f"leaves the tree through {link!r}"
    return None


def ancestors(path: str) -> list[str]:
    """Return the folders above ``path``, the outermost first: ``a`` and ``a/b`` for ``a/b/c``."""
    segments = path.split("/")
    return ["/".join(segments[:depth]) for depth in range(1, len(segments))]


_LINE_ENDS = re.compile(r"[\r\n]+")
"""Not those of `str.splitlines`, some of which names of folders may have in them."""

MANIFEST_NAME = "artifact_manifest.txt"

MAX_MANIFEST_SIZE = 1 << 20
"""Bytes; a manifest has a few lines."""


def parse_stages(data: bytes, source: str) -> tuple[str, ...]:
    """Return the stage folders that a manifest lists, in its order, each once.

    Blank lines, a leading ``./`` and a trailing ``/`` mean nothing. A manifest without a line is that of an empty
    artifact. Raises `ProblemsError` for every line that is not a path inside the artifact.
    """
    try:
        lines = _LINE_ENDS.split(data.decode())
    except UnicodeDecodeError as e:
        found = f"is not valid UTF-8 text (byte {e.start})"
        raise InputError(source, found, expected="one stage folder per line") from e
    stages = tuple(dict.fromkeys(_stage(line) for line in lines if line.strip()))
    problems = [
        InputError(source, f"the stage folder {stage!r} {fault}", expected="a relative path inside the artifact")
        for stage in stages
        # Written, a line of blanks would mean nothing.
        if (fault := path_fault(stage) or ("" if stage.strip() else "is blank"))
    ]
    if problems:
        raise ProblemsError(source, problems)
    return stages


def _stage(line: str) -> str:
    path = line.removeprefix("./")
    return path.rstrip("/") or path


def format_stages(stages: tuple[str, ...]) -> bytes:
    """Return the manifest that lists ``stages``, as TheRock writes it."""
    return ("\n".join(stages) + "\n").encode()


logger = logging.getLogger(__name__)

ANY_EXECUTE = 0o111
"""The bits of a mode that let anybody run a file."""
PERMISSIONS = 0o777
"""The mode bits that an artifact keeps; set-user-id, set-group-id and sticky bits are dropped."""


class FileKind(enum.Enum):
    """What a member of an artifact is."""

    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"


class Member(msgspec.Struct, frozen=True):
    """One file, symlink or directory, where it stands in its artifact."""

    path: str
    """Relative to the artifact, with ``/``; begins with a stage folder."""
    kind: FileKind
    mode: int
    """Permission bits only; those of a symlink mean nothing and are 0o777."""
    source: FileRange | None = None
    """The bytes of a file; none for symlinks and directories."""
    link: str | None = None
    """The raw text of a symlink; none for others."""

    @property
    def plain_mode(self) -> int:
        """The mode in an artifact that is made of this one: whoever built it, and with which umask, must not show."""
        if self.kind is FileKind.SYMLINK:
            return PERMISSIONS
        return 0o755 if self.kind is FileKind.DIRECTORY else plain_mode(self.mode)


class Artifact(msgspec.Struct, frozen=True):
    """An artifact as it was found, in a folder or in an archive."""

    name: ArtifactName
    location: str
    """The folder or archive it was read from."""
    stages: tuple[str, ...]
    """Its stage folders, as its manifest lists them."""
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(member.source.size for member in self.members if member.source)

    def stage_of(self, path: str) -> str | None:
        """Return the stage folder that a member's path is in, if any; the innermost of nested ones."""
        inside = [stage for stage in self.stages if path.startswith(f"{stage}/")]
        return max(inside, key=len, default=None)


def place(location: object, path: str) -> str:
    """Return what to call a member of the artifact at ``location`` in a message; unprintable text is escaped."""
    return f"{location}/{path if path.isprintable() else ascii(path)}"


def checked(artifact: Artifact, problems: list[RocwheelError]) -> Artifact:
    """Return the artifact without what is outside of its stage folders.

    Raises `ProblemsError` with ``problems``, those that reading it brought, and with each member that is unusable: its
    path is unsafe or occurs twice, it is below a file or symlink, it is a symlink that leaves its stage folder, or it
    is a file deeper than the manifest but in no stage folder (it would be lost). A stage folder without members is
    usual: TheRock lists every folder that could have held some.
    """
    counts = Counter(member.path for member in artifact.members if member.kind is not FileKind.DIRECTORY)
    folders = {member.path for member in artifact.members if member.kind is FileKind.DIRECTORY}
    # Each once: two members of one name have the same faults.
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
            logger.debug("%s is outside the stage folders: ignored", place(artifact.location, member.path))


def _faults(member: Member, artifact: Artifact, counts: Counter[str], folders: set[str]) -> Iterator[str]:
    if fault := path_fault(member.path):
        yield f"its path {fault}"
        return
    if counts[member.path] > 1 or (counts[member.path] and member.path in folders):
        yield "is there more than once"
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
        yield "is in no stage folder of the manifest"
    if member.link is not None and (fault := link_fault(member.path.removeprefix(f"{stage}/"), member.link)):
        yield f"this symlink {fault}"
