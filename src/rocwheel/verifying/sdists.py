"""Sdists compared with what their names and their own checksums say (source distribution format)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.formats.identity import check_identity
from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata
from rocwheel.distributions.index.entries.file_name import parse_path
from rocwheel.distributions.tar.sdist_file import read_sdist_file, read_sdist_names
from rocwheel.foundation.errors import InputError
from rocwheel.verifying.hashing import reading_faults
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["verify_sdist"]

_METADATA = "PKG-INFO"


def verify_sdist(path: Path) -> Verified:
    """Unpack an sdist to its end, which compares its checksum, and compare its name with its metadata.

    Nothing is written of its other files: they are not compared. A damaged sdist is a fault, and so is a second file of
    metadata, which installers may take for the first.
    """
    faults: list[Fault] = []
    names: tuple[str, ...] = ()
    size = 0
    with reading_faults(str(path), faults):
        size = path.stat().st_size
        names = read_sdist_names(path)
        metadata = read_sdist_file(path, _METADATA, to_end=True)
        if metadata is None:
            faults.append(Fault("missing", f"{path}!{_METADATA}", "is missing", "the metadata of an sdist"))
        elif fault := _name_fault(path, metadata):
            faults.append(fault)
    return Verified(str(path), "sdist", 1, size, tuple(faults), max(len(names) - 1, 0))


def _name_fault(path: Path, metadata: bytes) -> Fault | None:
    place = f"{path}!{_METADATA}"
    try:
        fields, _ = parse_core_metadata(metadata)
    except CoreMetadataError as e:
        return Fault("damaged", place, f"can't be read ({e})", "core metadata")
    try:
        name = parse_path(path)
        check_identity(place, fields, name.project, name.version)
    except InputError as e:
        return Fault("changed", str(e.source), e.found, e.expected)
    return None
