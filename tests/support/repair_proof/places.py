"""Where the run paths of a wheel's files lead, apart from the wheel's own folders."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.environment.sdk_layout import sdk_folders
from tests.support.repair_proof.chroot import SITE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.repair_proof.wheel_files import UnpackedFile

__all__ = ["Places", "find_places", "sdk_libraries", "sdk_places"]

_ORIGIN = re.compile(r"\$(?:ORIGIN\b|\{ORIGIN\})")
# Judged here once more, not by what repairs go by. These are on no machine but the one that built the wheel.
_BUILD = re.compile(
    r"/(_solib_[^/]*|[^/]*\.runfiles|bazel-[^/]+|execroot|local_config_[^/]*|CMakeFiles)(/|$)"
    r"|^/(home|root|tmp|build|builds|workspace|__w|github|project|croot)(/|$)"
)


class Places(msgspec.Struct, frozen=True):
    """The folders that entries lead to, as they are spelled from ``/`` on, and the entries that lead to none."""

    folders: tuple[str, ...]
    builds: tuple[str, ...]
    """Folders that only builds have."""
    unfixed: tuple[str, ...]
    """Entries that lead elsewhere for each process: relative ones, and those with tokens other than ``$ORIGIN``."""


def find_places(files: Iterable[UnpackedFile], own: Iterable[str]) -> Places:
    """Return the places of all files' run paths, but for the SDK's and for ``own`` ones, whose files are known."""
    entries = [(entry, file.folder) for file in files for entry in (file.elf.run_path or "").split(":") if entry]
    spelled = dict.fromkeys(_from_root(entry, folder) for entry, folder in entries)
    fixed = [place for place in spelled if place.startswith("/") and "$" not in place]
    known = {*own, *sdk_places()}
    foreign = [place for place in fixed if posixpath.normpath(place) not in known]
    builds = [place for place in foreign if _BUILD.search(posixpath.normpath(place))]
    return Places(
        folders=tuple(place for place in foreign if place not in builds),
        builds=tuple(builds),
        unfixed=tuple(place for place in spelled if place not in fixed),
    )


def _from_root(entry: str, folder: str) -> str:
    return _ORIGIN.sub(lambda _: posixpath.join(SITE, folder), entry)


def sdk_libraries(place: str) -> tuple[str, ...] | None:
    """Return the SONAMEs in a folder of the SDK's packages in some site-packages or other; None for other folders."""
    parts = [part.partition("_gfx")[0] for part in posixpath.normpath(place).split("/")]
    top = next((index for index, part in enumerate(parts) if part.startswith("_rocm_sdk_")), None)
    if top is None:
        return None
    inside = "/".join(parts[top:])
    return next((folder.libraries for folder in sdk_folders() if folder.folder == inside), ())


def sdk_places() -> dict[str, tuple[str, ...]]:
    """Return the folders of the SDK's packages, each with the SONAMEs that the packages have there."""
    return {f"{SITE}/{folder.folder}": folder.libraries for folder in sdk_folders()}
