"""Links of the development tree to files of other packages, and which it has of device packages.

Links to device packages are hard links: what opens a library or program by its path in the tree looks for its kernels
beside that, and some of it doesn't follow symlinks. Across file systems, and where there are no hard links, they are
symlinks; on Windows, whose users may not make these, copies.
"""

from __future__ import annotations

import json
import os
import posixpath
import shutil
from contextlib import suppress
from importlib.metadata import Distribution

from . import _build_info
from ._devel_place import DISK_FAULTS, STATE, DevelError, make_folder, write_text
from ._files import DamagedFileError, is_file, is_folder, is_there, list_below, read_field, read_json
from ._installing import reinstallation_hint
from ._output import warn
from ._packages import describe_package, release_of
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path
    from typing import Any

    from ._devel_place import DevelPlace, Modes

    Link = tuple[Path, str]
    Warn = Callable[[str], None]

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
        noted = _noted(place, target)
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
    wanted = {target: _read_manifest(place, target, warn) for target in manifests}
    notes = place.root / NOTES
    if not is_folder(notes):
        make_folder(notes, place.modes)
    # Remove the links that were noted but are no longer wanted, and the notes of packages that are gone.
    for note in sorted(path for path in notes.iterdir() if path.suffix == ".json"):
        kept = set(wanted.get(note.stem, ()))
        for path in _read_note(note, warn):
            if path not in kept:
                unlink_file(place, path)
        if note.stem not in wanted:
            note.unlink()
    for target, paths in wanted.items():
        old = _noted(place, target)
        noted = [path for path in paths if path in old or is_free(place, path)]
        _write(place, notes / f"{target}.json", noted)
        for path in noted:
            link_file(place, path, noted)
    state["devices"] = manifests
    _write(place, place.root / STATE, state)


def _manifest_folder(place: DevelPlace) -> Path | None:
    device = describe_package("device")
    return place.site / device.platform_module / ".devel_links" if device else None


def _read_manifest(place: DevelPlace, target: str, tell: Warn) -> list[str]:
    """Return the paths of a device package's files; none, with a warning, when they don't fit this release."""
    folder = _manifest_folder(place)
    try:
        version, paths = read_manifest(folder / f"{target}.json") if folder else ("", [])
    except DamagedFileError as e:
        tell(
            f"{e}. The files of this device package are left out. Reinstall: {reinstallation_hint(f'device-{target}')}"
        )
        return []
    version = _distribution_version(place, target) or version
    if release_of(version) != release_of(_build_info.VERSION):
        tell(
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


def _noted(place: DevelPlace, target: str) -> list[str]:
    """Return which paths were linked for a target."""
    note = place.root / NOTES / f"{target}.json"
    return _read_note(note, _ignore) if is_there(note) else []


def _read_note(note: Path, tell: Warn) -> list[str]:
    """Return what was noted; nothing, with a warning, when the note is damaged."""
    try:
        return read_note(note)
    except (DamagedFileError, FileNotFoundError) as e:
        tell(f"{e}. Links into device packages that are gone may stay. Reinstall: {reinstallation_hint('devel')}")
        return []


def _write(place: DevelPlace, path: Path, value: object) -> None:
    """Write JSON so that the file is either the old one or the new one, never a part."""
    new = path.with_name(f"{path.name}.new")
    write_text(new, json.dumps(value), place.modes)
    this_platform().retry(new.replace, path)


def _ignore(text: str) -> None:
    """Say nothing: `link_devices` has warned before."""


def read_manifest(manifest: Path) -> tuple[str, list[str]]:
    """Return the version of a device package and the paths of its files, relative to the tree.

    Raises `DamagedFileError`, also for a path that leads out of the tree.
    """
    expected = "an object with 'version' and 'links'"
    try:
        document = read_json(manifest, dict, expected)
    except FileNotFoundError as e:
        raise DamagedFileError(manifest, "leads nowhere", expected) from e
    version = read_field(manifest, document, "version", str)
    links = read_field(manifest, document, "links", list)
    return version, [_read_path(manifest, read_field(manifest, link, "relpath", str)) for link in links]


def read_links(place: DevelPlace) -> dict[str, str]:
    """Return the paths in the tree of files that other packages have, with the paths of those in site-packages.

    There are none where the archive has symlinks for them. Raises `DevelError` for a damaged manifest.
    """
    expected = "an object with 'links', paths by paths"
    try:
        links = read_field(place.links, read_json(place.links, dict, expected), "links", dict)
        return {_read_path(place.links, path): _read_path(place.links, target) for path, target in links.items()}
    except FileNotFoundError:
        return {}
    except DamagedFileError as e:
        msg = f"{e}. Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg) from e


def read_note(note: Path) -> list[str]:
    """Return the paths that were linked for a device package. Raises `DamagedFileError`."""
    return [_read_path(note, path) for path in read_json(note, list, "a list of paths")]


def _read_path(file: Path, path: Any) -> str:
    """Return a path that stays inside, and that a file can have. Raises `DamagedFileError` for any other."""
    if not isinstance(path, str) or not _is_inside(path) or this_platform().name_fault(path):
        raise DamagedFileError(file, f"has the path {path!a}", "paths relative to the tree, which stay inside it")
    return posixpath.normpath(path)


def _is_inside(path: str) -> bool:
    is_name = not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in path)
    return bool(path) and is_name and not path.startswith("/") and ".." not in path.split("/")


def link_file(place: DevelPlace, path: str, noted: Collection[str]) -> None:
    """Link a file of a device package into the tree unless `lacks_link` says no. Raises `OSError`.

    ``noted`` are the paths that were linked before, or are to be.
    """
    if not lacks_link(place, path, noted):
        return
    link, file = _link_and_file(place, path)
    if not link.parent.is_dir():
        make_folder(link.parent, place.modes)
    with suppress(FileNotFoundError):
        link.unlink()  # what an earlier package had there
    try:
        give_name(file, link)
    except OSError as e:  # another file system, or one without hard links
        if e.errno in DISK_FAULTS:
            raise
        if this_platform().is_windows:
            shutil.copy2(file, link)
        else:
            link.symlink_to(_link_text(path))


def lacks_link(place: DevelPlace, path: str, noted: Collection[str]) -> bool:
    """Return whether a file lacks its link; not when the package lacks it or the tree has its own file there.

    A link to a file that was replaced since has other content, or another time.
    """
    link, file = _link_and_file(place, path)
    if not is_file(file) or is_folder(link):
        return False
    if os.path.lexists(link) and (path not in noted or _is_as(link, file)):
        return False
    return link.parent.resolve() == place.root.resolve() / posixpath.dirname(path)


def is_free(place: DevelPlace, path: str) -> bool:
    """Return whether the tree has nothing of its own at a path: nothing at all, or the link already."""
    link, file = _link_and_file(place, path)
    return not os.path.lexists(link) or (is_there(link) and is_there(file) and link.samefile(file))


def _is_as(link: Path, file: Path) -> bool:
    """Return whether a link leads to a file; also to a copy of it, which image layers make of hard links."""
    if not is_there(link):
        return False
    there, here = link.stat(), file.stat()
    return link.samefile(file) or (there.st_size, int(there.st_mtime)) == (here.st_size, int(here.st_mtime))


def unlink_file(place: DevelPlace, path: str) -> None:
    """Remove the link of a file of a device package, and the folders that it leaves empty. Raises `OSError`."""
    link = place.root / path
    if not os.path.lexists(link) or (link.is_symlink() and str(link.readlink()) != _link_text(path)):
        return
    if is_folder(link) or link.parent.resolve() != place.root.resolve() / posixpath.dirname(path):
        return
    link.unlink()
    for folder in link.parents:
        if folder == place.root or any(folder.iterdir()):
            return
        folder.rmdir()


def _link_text(path: str) -> str:
    return f"{'../' * (path.count('/') + 1)}{_device_module()}/{path}"


def _device_module() -> str:
    device = describe_package("device")
    return device.platform_module if device else ""


def give_name(source: Path, path: Path) -> None:
    """Give a file a second name. Raises `OSError`.

    What is refused once may be allowed at once after: a server that looks at renewed credentials, a file that a virus
    scanner had open. What would stand in for the hard link stays.
    """
    try:
        os.link(source, path)
    except PermissionError:
        os.link(source, path)


def link_hard(source: Path, path: Path) -> None:
    """Give a file a second name; where the file system can't, copy it. Raises `OSError`."""
    try:
        give_name(source.resolve(), path)
    except OSError as e:  # another file system, or one without hard links
        if e.errno in DISK_FAULTS:
            raise
        shutil.copy2(source, path)


def make_links(links: list[Link], locate: Callable[[str], Path], modes: Modes) -> list[str]:
    """Make each link, a path and its target, of the file or folder that ``locate`` has for the target.

    A link may lead to another, or through one to a folder. Return the targets that are not there.
    """
    waiting = links
    while waiting:
        left = [link for link in waiting if not _link_file(locate(link[1]), link[0])]
        if len(left) == len(waiting):  # then all files are there that folders may hold
            left = [link for link in waiting if not _link_folder(locate(link[1]), link[0], modes)]
        if len(left) == len(waiting):
            break
        waiting = left
    return [target for _, target in waiting]


def _link_file(source: Path, path: Path) -> bool:
    is_made = is_file(source)
    if is_made:
        link_hard(source, path)
    return is_made


def _link_folder(source: Path, path: Path, modes: Modes) -> bool:
    if not is_folder(source) or source == path or source in path.parents:
        return False
    make_folder(path, modes)
    for file in list_below(source):
        place = path / file.relative_to(source)
        if is_folder(file):
            make_folder(place, modes)
        else:
            link_hard(file, place)
    return True


def _link_and_file(place: DevelPlace, path: str) -> tuple[Path, Path]:
    return place.root / path, place.site / _device_module() / path
