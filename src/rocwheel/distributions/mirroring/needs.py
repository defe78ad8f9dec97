"""What a file of an index requires: from the core metadata beside it, or else from the file itself."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, read_error
from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.formats.requirements.build_requires import read_build_requires
from rocwheel.distributions.formats.requirements.requirements import RequirementError, parse_requirement
from rocwheel.distributions.formats.requirements.requires_txt import parse_requires_txt, to_requires_dist
from rocwheel.distributions.index.entries.entry import read_metadata
from rocwheel.distributions.index_reading.source import read_text
from rocwheel.distributions.mirroring.fetch import fetch_file
from rocwheel.distributions.tar.sdist_file import read_sdist_file
from rocwheel.stores.urls import shown_url

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.distributions.index_reading.trust import ListedFile

__all__ = ["Needs", "NeedsReader"]


class Needs(msgspec.Struct, frozen=True):
    """What a distribution requires."""

    requires: tuple[Requirement, ...]
    extras: tuple[str, ...]
    """The extras that it has, normalised."""


class NeedsReader:
    """Reads what files of an index require; each is asked for once."""

    def __init__(self, folder: Path) -> None:
        """Note where files are or go that don't have their core metadata beside them."""
        self._folder = folder
        self._known: dict[str, Needs] = {}
        self.fetched: set[str] = set()
        """Names of the files that were brought into the folder for this."""

    def read(self, file: ListedFile) -> Needs:
        """Return what a file requires; raise `InputError` for metadata that is malformed or not what was promised."""
        if file.filename not in self._known:
            self._known[file.filename] = self._read(file)
        return self._known[file.filename]

    def _read(self, file: ListedFile) -> Needs:
        if file.metadata_sha256 and file.filename.endswith(".whl"):
            return _parse(file, self._read_promised(file, file.metadata_sha256), ())
        if fetch_file(self._folder, file):
            self.fetched.add(file.filename)
        path = self._folder / file.filename
        try:
            lines = () if path.name.endswith(".whl") else (*_read_requires_txt(path, file), *read_build_requires(path))
            return _parse(file, read_metadata(path), lines)
        except OSError as e:
            raise read_error(path, e) from e

    def _read_promised(self, file: ListedFile, sha256: str) -> bytes:
        """Return the core metadata beside a file (:pep:`658`): what an earlier run has of it, else what is there."""
        local = self._folder / f"{file.filename}.metadata"
        if local.is_file():
            data = local.read_bytes()
            if hashlib.sha256(data).hexdigest() == sha256:
                return data
        parts = urlsplit(file.url)
        url = urlunsplit(parts._replace(path=f"{parts.path}.metadata"))
        data = read_text(url)
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise InputError(
                shown_url(url), f"has the SHA-256 {found}", expected=sha256, remedy="Ask who publishes it."
            )
        return data


def _read_requires_txt(path: Path, file: ListedFile) -> tuple[str, ...]:
    """Return what setuptools or the selector's maker has listed in an sdist, for the case that its metadata doesn't."""
    info = f"{file.project.replace('-', '_')}.egg-info/requires.txt"
    found = read_sdist_file(path, f"src/{info}") or read_sdist_file(path, info) or b""
    return tuple(to_requires_dist(*line) for line in parse_requires_txt(found.decode(errors="replace")))


def _parse(file: ListedFile, data: bytes, lines: tuple[str, ...]) -> Needs:
    try:
        metadata = parse_core_metadata(data)[0]
        requires = tuple(map(parse_requirement, dict.fromkeys((*metadata.get("requires_dist", ()), *lines))))
    except (CoreMetadataError, RequirementError) as e:
        raise InputError(shown_url(file.url), f"its requirements can't be read: {e}") from e
    extras = {canonicalize_name(extra) for extra in metadata.get("provides_extra", ())}
    extras |= {canonicalize_name(name) for line in lines for name in _named_extras(line)}
    return Needs(requires, tuple(sorted(extras)))


def _named_extras(line: str) -> list[str]:
    return [line.rpartition('extra == "')[2].rstrip('"')] if 'extra == "' in line else []
