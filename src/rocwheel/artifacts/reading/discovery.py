"""Which artifacts a folder holds, as folders or archives, and what only looks like one."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.archives.spool import peek
from rocwheel.artifacts.model.manifest import MANIFEST_NAME
from rocwheel.artifacts.model.names import ARCHIVE_SUFFIXES, ArtifactName, looks_like_artifact
from rocwheel.core.errors import InputError, RocwheelError, read_error
from rocwheel.core.messages import find_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Discovery", "StoredArtifact", "archive_stem", "find_archives", "find_artifacts"]

logger = logging.getLogger(__name__)

_OTHER_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.lz4", ".zip")


class StoredArtifact(msgspec.Struct, frozen=True, order=True):
    """An artifact in a folder of artifacts, not looked into yet."""

    name: ArtifactName
    path: str
    is_archive: bool

    @property
    def packed_size(self) -> int:
        """Bytes of an archive; 0 for a folder, and when the size can't be read."""
        try:
            return Path(self.path).stat().st_size if self.is_archive else 0
        except OSError:
            return 0


class Discovery(msgspec.Struct, frozen=True):
    """What was found in a folder of artifacts."""

    artifacts: tuple[StoredArtifact, ...]
    """Sorted by name; each name once."""
    problems: tuple[RocwheelError, ...]
    """What only looks like an artifact: a bad name, a format that can't be read, a name that occurs twice."""


def find_artifacts(directory: Path) -> Discovery:
    """Look for artifact folders and archives in ``directory``, in the order of their names.

    Hidden names, and whatever does not look like an artifact, are skipped. Raises `InputError` when ``directory``
    can't be read or has nothing that looks like an artifact.
    """
    discovery = _sort_out(_candidates(directory), directory)
    if not discovery.artifacts and not discovery.problems:
        expected = "folders or .tar.xz or .tar.zst archives named {name}_{component}_{target}"
        raise InputError(directory, "holds no artifacts", expected=expected, remedy=_advice(directory))
    return discovery


def _advice(directory: Path) -> str:
    """Return what they may have meant who name a folder without artifacts."""
    if any(directory.glob("*.whl")):
        return "It holds wheels, which a build makes of artifacts."
    below = find_below(directory, lambda path: looks_like_artifact(archive_stem(path) or path.name))
    return f"There are artifacts in {below}." if below else "Is it the right folder?"


def find_archives(paths: Iterable[Path]) -> Discovery:
    """Return the artifact archives at some paths; the problems name the paths that are not artifact archives."""
    return _sort_out(paths, "archives", folders=False)


def _sort_out(paths: Iterable[Path], subject: object, *, folders: bool = True) -> Discovery:
    found: dict[ArtifactName, list[StoredArtifact]] = {}
    problems: list[RocwheelError] = []
    for path in paths:
        artifact = _stored(path, is_archive=not (folders and path.is_dir()))
        if isinstance(artifact, InputError):
            problems.append(artifact)
        else:
            found.setdefault(artifact.name, []).append(artifact)
    problems += [_repeated(subject, same) for same in found.values() if len(same) > 1]
    return Discovery(tuple(sorted(same[0] for same in found.values() if len(same) == 1)), tuple(problems))


def archive_stem(path: Path) -> str | None:
    """Return the name of an archive without its suffix, or None when it has none of `ARCHIVE_SUFFIXES`."""
    return next((path.name.removesuffix(suffix) for suffix in ARCHIVE_SUFFIXES if path.name.endswith(suffix)), None)


def _candidates(directory: Path) -> Iterator[Path]:
    try:
        paths = sorted(directory.iterdir())
    except OSError as e:
        raise read_error(directory, e, expected="a folder of artifacts") from e
    found = [path for path in paths if not path.name.startswith(".") and _is_candidate(path)]
    # Nothing is said of a folder without artifacts: the audit asks whether any folder has some.
    for path in sorted({*paths} - {*found}) if found else ():
        logger.debug("%s does not look like an artifact: ignored", path)
    yield from found


def _is_candidate(path: Path) -> bool:
    if path.is_dir():
        return looks_like_artifact(path.name) or (path / MANIFEST_NAME).is_file()
    stem = archive_stem(path)
    if stem is not None:
        return looks_like_artifact(stem) or peek(path, len(MANIFEST_NAME)) == MANIFEST_NAME.encode()
    return any(looks_like_artifact(path.name.removesuffix(suffix)) for suffix in _suffixes_of(path))


def _suffixes_of(path: Path) -> Iterator[str]:
    return (suffix for suffix in _OTHER_SUFFIXES if path.name.endswith(suffix))


def _stored(path: Path, *, is_archive: bool) -> StoredArtifact | InputError:
    stem = archive_stem(path) if is_archive else path.name
    if stem is None:
        remedy = (
            "Give the archives in it." if path.is_dir() else "Unpack it to a folder, or compress it with xz or zstd."
        )
        found, expected = "is not an artifact archive that can be read", " or ".join(ARCHIVE_SUFFIXES)
        return InputError(path, found, expected=expected, remedy=remedy)
    try:
        return StoredArtifact(ArtifactName.parse(stem, path), str(path), is_archive)
    except InputError as e:
        return e


def _repeated(subject: object, artifacts: list[StoredArtifact]) -> InputError:
    names = " and ".join(Path(artifact.path).name for artifact in artifacts)
    return InputError(str(subject), f"one artifact is there several times: {names}", remedy="Keep one of them.")
