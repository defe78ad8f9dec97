"""A whole merge: from the selectors of several builds, written or planned, to one sdist."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.errors import InputError, RocwheelError, write_error
from rocwheel.core.scratch import remove_abandoned
from rocwheel.core.writing import check_destination
from rocwheel.distributions.formats.sdist import sdist_name, sdist_stem, write_sdist
from rocwheel.distributions.formats.source_date import SourceDate
from rocwheel.packages.merging.checks import check_together
from rocwheel.packages.merging.merge_info import merge_info
from rocwheel.packages.merging.read_selectors import read_selectors
from rocwheel.packages.planning.sdk_source import render_literals
from rocwheel.packages.planning.selector.distributions import requires_txt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.packages.merging.selectors import Selector

__all__ = ["MergeResult", "merge_selectors"]


class MergeResult(msgspec.Struct, frozen=True):
    """What a merge made."""

    path: str
    size: int
    """In bytes."""
    version: str
    families: dict[str, tuple[str, ...]]
    """Values of ``sys_platform`` by what can be selected: GPU targets or families."""
    merged: tuple[str, ...]
    """The paths of the selectors; those that were given twice, or are equal, once."""


def merge_selectors(paths: Sequence[Path], dest_dir: Path, *, default_family: str = "") -> MergeResult:
    """Write one selector for the builds of several, dated by ``SOURCE_DATE_EPOCH``.

    ``paths`` are those of sdists, plans (``.json``) and folders of builds: what is planned gives the same as when it is
    built.

    The order of the selectors does not matter: the same ones give the same bytes. ``default_family`` is what machines
    without a GPU get; else what the selectors say, if they agree.

    Raises `InputError`, or `ProblemsError` with all that is wrong, before anything is written, also where a selector
    stands in its place that is for more GPUs; `WorkError` when the sdist can't be written.
    """
    check_destination(dest_dir)
    selectors = read_selectors(paths)
    check_together(selectors, default_family)
    first = selectors[0]
    target = dest_dir / sdist_name(first.name, first.version)
    if target.exists() and any(one.path.exists() and target.samefile(one.path) for one in selectors):
        found = "is one of the selectors to merge"
        raise InputError(target, found, expected="another folder", remedy="Change --dest-dir.")
    info = merge_info(selectors, default_family)
    _require_no_loss(target, info)
    date = SourceDate.from_environment(os.environ)
    try:
        dest_dir.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    remove_abandoned(dest_dir)
    write_sdist(target, sdist_stem(first.name, first.version), _files(first, info), mtime=date.seconds)
    families = {name: tuple(row["platforms"]) for name, row in info["FAMILIES"].items()}
    return MergeResult(
        str(target), target.stat().st_size, first.version, families, tuple(str(one.path) for one in selectors)
    )


def _require_no_loss(target: Path, info: dict[str, Any]) -> None:
    """Raise `InputError` where another selector stands that chooses for more GPUs: they would be lost."""
    if not target.exists():
        return
    try:
        standing = read_selectors([target])
    except RocwheelError as e:
        remedy = "Remove it, or change --dest-dir."
        raise InputError(target, "is there already, and is no selector that can be read", remedy=remedy) from e
    lost = {choice for one in standing for choice in _choices(one.info)} - _choices(info)
    if lost:
        named = ", ".join(f"{name} ({system})" for name, system in sorted(lost))
        found = f"is there already, and is for {named}, too, which would be lost"
        raise InputError(target, found, remedy="Merge the builds that it is of as well, or change --dest-dir.")


def _choices(info: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the families that a selector can choose, each with a platform that has it."""
    return {(name, system) for name, row in info["FAMILIES"].items() for system in row["platforms"]}


def _files(selector: Selector, info: dict[str, Any]) -> dict[str, bytes]:
    """Return the files of a selector with other facts."""
    listed = [name for name in selector.files if name.endswith(".egg-info/requires.txt")]
    changed = dict.fromkeys(listed, requires_txt(info).encode())
    return {**selector.files, **changed, selector.place: render_literals(info).encode()}
