"""What a distribution is called: by its file name, and by its core metadata, which have to agree."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.metadata import RawMetadata

__all__ = ["check_identity"]


def check_identity(path: Path | str, metadata: RawMetadata, project: str, version: Version) -> None:
    """Raise `InputError` when metadata names another project, or another version, than the file name does.

    ``project`` is the normalised name in the file name of ``path``. Installers refuse such a file.
    """
    if canonicalize_name(metadata.get("name", "")) != project:
        found = f"its metadata names the project {quoted(metadata.get('name', ''))}"
        raise InputError(path, found, expected=f"{project!r} as in the file name")
    stated = None
    with suppress(ValueError):
        stated = Version(metadata.get("version", ""))
    if stated != version:
        found = f"its metadata gives the version {quoted(metadata.get('version', ''))}"
        raise InputError(path, found, expected=f"{str(version)!r} as in the file name")
