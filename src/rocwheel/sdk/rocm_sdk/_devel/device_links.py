"""Links files of device packages into the development tree, and removes those of packages that are gone."""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution

from .. import _build_info
from .._installing import reinstallation_hint
from .._json_file import DamagedFileError
from .._packages import describe_package, release_of
from .._platform import this_platform
from .._printing import in_one_line
from .._walk import is_folder, is_there
from .device_file import is_free, lacks_link, link_file, unlink_file
from .manifest import read_manifest, read_note
from .modes import make_folder, modes_like, write_text
from .place import STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .place import DevelPlace

    Warn = Callable[[str], None]

__all__ = ["absent_links", "device_manifests", "link_devices", "linked_files", "restore_links"]

NOTES = ".device_links"
"""In the tree: the folder that notes which paths were linked for which device package."""


def device_manifests(place: DevelPlace) -> dict[str, list[int]]:
    """Return size and time of the manifest of each installed device package; a change of either is noticed.

    Raises `OSError` when they can't be listed.
    """
    folder = _manifest_folder(place)
    if folder is None or not is_folder(folder):
        return {}
    facts = {path.stem: path.stat() for path in sorted(folder.iterdir()) if path.suffix == ".json"}
    return {target: [fact.st_size, fact.st_mtime_ns] for target, fact in facts.items()}


def linked_files(place: DevelPlace) -> set[Path]:
    """Return the links that were made for device packages, and the notes of them; all in the tree."""
    folder = place.root / NOTES
    notes = sorted(folder.iterdir()) if is_folder(folder) else []
    return {*notes, *(place.root / path for note in notes for path in _read_note(note, _ignore))}


def absent_links(place: DevelPlace) -> list[str]:
    """Return which links and notes are gone from the tree since `link_devices` made them. Raises `OSError`.

    None when packages have come or gone since: the next use of the tree makes all that is absent.
    """
    manifests = device_manifests(place)
    if place.read_state().get("devices") != manifests:
        return []
    notes = (f"{NOTES}/{target}.json" for target in manifests)
    absent = {note for note in notes if not is_there(place.root / note)}
    for target in manifests:
        noted = _noted(place, target, _ignore)
        absent.update(path for path in _read_manifest(place, target, _ignore) if lacks_link(place, path, noted))
    return sorted(absent)


def restore_links(place: DevelPlace) -> int:
    """Make the links and notes that are gone from the tree again, and return how many. Raises `OSError`."""
    absent = absent_links(place)
    if absent:
        with place.locked():
            link_devices(place, again=True)
    return len(absent) - len(absent_links(place))


def link_devices(place: DevelPlace, *, again: bool = False) -> None:
    """Make the links agree with the installed device packages; the caller holds the lock.

    ``again`` does so though no package has come or gone since. The process may be killed at any moment: paths are noted
    before they are linked, and the state is written last. Paths where the tree has a file of its own are not noted.
    RECORD accounts for links by the line of the tree's folder: a line of its own would be wrong as soon as the device
    package changes.
    """
    manifests = device_manifests(place)
    state = place.read_state()
    if state.get("devices") == manifests and not again:
        return
    wanted = {target: _read_manifest(place, target, _warn) for target in manifests}
    notes = place.root / NOTES
    if not is_folder(notes):
        make_folder(notes, modes_like(place.package))
    _remove_others(place, notes, wanted)
    for target, paths in wanted.items():
        old = _noted(place, target, _ignore)
        noted = [path for path in paths if path in old or is_free(place, path)]
        _write(place, notes / f"{target}.json", noted)
        for path in noted:
            link_file(place, path, noted)
    state["devices"] = manifests
    _write(place, place.root / STATE, state)


def _remove_others(place: DevelPlace, notes: Path, wanted: dict[str, list[str]]) -> None:
    """Remove the links that were noted but are no longer wanted, and the notes of packages that are gone."""
    for note in sorted(path for path in notes.iterdir() if path.suffix == ".json"):
        kept = set(wanted.get(note.stem, ()))
        for path in _read_note(note, _warn):
            if path not in kept:
                unlink_file(place, path)
        if note.stem not in wanted:
            note.unlink()


def _manifest_folder(place: DevelPlace) -> Path | None:
    device = describe_package("device")
    return place.site / device.platform_module / ".devel_links" if device else None


def _read_manifest(place: DevelPlace, target: str, warn: Warn) -> list[str]:
    """Return the paths of a device package's files; none, with a warning, when they don't fit this release."""
    folder = _manifest_folder(place)
    try:
        version, paths = read_manifest(folder / f"{target}.json") if folder else ("", [])
    except DamagedFileError as e:
        warn(f"{e}. The files of this device package are left out. Reinstall: {_reinstallation(target)}")
        return []
    version = _distribution_version(place, target) or version
    if release_of(version) != release_of(_build_info.VERSION):
        warn(
            f"the device package for {target} has version {version}, not {_build_info.VERSION}: its files are left out"
        )
        return []
    return paths


def _distribution_version(place: DevelPlace, target: str) -> str:
    """Return the version of a device package by its metadata; empty when there is none.

    It comes before what the manifest says, which scripts that promote release candidates leave as it was.
    """
    device = describe_package("device", target)
    found = Distribution.discover(name=device.dist, path=[str(place.site)]) if device else ()
    try:
        return next((distribution.version for distribution in found), "")
    except OSError as e:
        if e.filename:
            raise
        raise OSError(e.errno, e.strerror, str(place.site)) from e


def _reinstallation(target: str) -> str:
    return reinstallation_hint(f"device-{target}")


def _noted(place: DevelPlace, target: str, warn: Warn) -> list[str]:
    """Return which paths were linked for a target."""
    note = place.root / NOTES / f"{target}.json"
    return _read_note(note, warn) if is_there(note) else []


def _read_note(note: Path, warn: Warn) -> list[str]:
    """Return what was noted; nothing, with a warning, when the note is damaged."""
    try:
        return read_note(note)
    except (DamagedFileError, FileNotFoundError) as e:
        warn(f"{e}. Links into device packages that are gone may stay. Reinstall: {reinstallation_hint('devel')}")
        return []


def _write(place: DevelPlace, path: Path, value: object) -> None:
    """Write JSON so that the file is either the old one or the new one, never a part."""
    new = path.with_name(f"{path.name}.new")
    write_text(new, json.dumps(value), modes_like(place.package))
    this_platform().patiently(new.replace, path)


def _warn(text: str) -> None:
    sys.stderr.write(f"rocm-sdk: warning: {in_one_line(text)}\n")


def _ignore(text: str) -> None:
    """Say nothing: `link_devices` has warned before."""
