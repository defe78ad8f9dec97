"""The distributions in the folder of a mirror that are not among those asked for, and which folders are no mirrors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rocwheel.core.errors import InputError, WorkError
from rocwheel.distributions.build_manifest.values import MANIFEST_NAME
from rocwheel.distributions.index.entries.file_name import is_distribution_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.distributions.mirroring.plan import MirrorPlan

__all__ = ["check_mirror", "find_others", "remove_others"]


def check_mirror(plan: MirrorPlan, folder: Path, *, exact: bool) -> None:
    """Raise `InputError` for a folder whose distributions are not a mirror's to keep or to remove.

    That is the folder in which the mirrored index has its own files and, where others are to be removed (``exact``),
    that of a build.
    """
    if any(_folder_of(file.url) == folder.resolve() for file in plan.files):
        raise InputError(folder, "is where the index has its files", expected="another folder to mirror them to")
    manifest = folder.parent / MANIFEST_NAME
    if exact and manifest.exists():
        remedy = "Give another folder, or leave out --exact."
        raise InputError(
            folder.parent, f"is the folder of a build ({MANIFEST_NAME})", expected="a mirror", remedy=remedy
        )


def _folder_of(url: str) -> Path | None:
    """Return the folder of a file at a ``file://`` URL; None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)).parent.resolve() if parts.scheme == "file" else None


def find_others(plan: MirrorPlan, folder: Path) -> frozenset[str]:
    """Return the names of the distributions in a folder that are not of the plan; none if there is no such folder."""
    wanted = {file.filename for file in plan.files}
    paths = folder.iterdir() if folder.is_dir() else ()
    names = (path.name for path in paths if path.is_file() and not path.name.startswith("."))
    return frozenset(name for name in names if name not in wanted and is_distribution_name(name))


def remove_others(folder: Path, names: Iterable[str]) -> None:
    """Remove distributions that no page lists any more, and their core metadata."""
    try:
        for name in sorted(names):
            (folder / name).unlink(missing_ok=True)
            (folder / f"{name}.metadata").unlink(missing_ok=True)
    except OSError as e:
        raise WorkError(folder, f"can't be cleaned ({e.strerror})", remedy="Check its permissions.") from e
