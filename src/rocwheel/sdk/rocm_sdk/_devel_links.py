"""Links files of other packages into the development tree, and records the links to device packages in note files.

Links to device packages are hard links. Libraries look for their kernels next to their own path in the tree, and some
libraries don't follow symlinks. Across file systems, or without support for hard links, the links are symlinks. On
Windows, where users can't create symlinks, they are copies.
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
"""The folder in the tree that contains the notes, which list the linked paths of each device package."""


def device_manifests(place: DevelPlace) -> dict[str, list[int]]:
    """Return the size and time of each installed device package's manifest, so that changes can be detected.

    Raises `OSError` if the packages can't be listed.
    """
    folder = _manifest_folder(place)
    if folder is None or not is_folder(folder):
        return {}
    facts = {path.stem: path.stat() for path in sorted(folder.iterdir()) if path.suffix == ".json"}
    return {target: [fact.st_size, fact.st_mtime_ns] for target, fact in facts.items()}


def linked_files(place: DevelPlace) -> set[Path]:
    """Return the paths in the tree of the links to device packages and of the notes about them."""
    folder = place.root / NOTES
    notes = sorted(folder.iterdir()) if is_folder(folder) else []
    return {*notes, *(place.root / path for note in notes for path in _read_note(note, _ignore))}


def absent_links(place: DevelPlace) -> list[str]:
    """Return the links and notes that were removed from the tree after `link_devices`. Raises `OSError`.

    Return an empty list if the set of packages changed, because all links are then restored when the tree is next used.
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
    """Restore the removed links and notes, and return their number. Raises `OSError`."""
    absent = absent_links(place)
    if absent:
        with place.locked():
            link_devices(place, again=True)
    return len(absent) - len(absent_links(place))


def link_devices(place: DevelPlace, *, again: bool = False) -> None:
    """Update the links for the installed device packages. The caller must hold the lock.

    With ``again``, the links are updated even if the set of packages didn't change. The process may be killed at any
    time, so paths are recorded before they are linked, and the state is written last. Paths at which the tree has a
    file of its own are not recorded. The RECORD line for the tree's folder covers the links. Separate lines for the
    links would be wrong as soon as the device package changed.
    """
    manifests = device_manifests(place)
    state = place.read_state()
    if state.get("devices") == manifests and not again:
        return
    wanted = {target: _read_manifest(place, target, warn) for target in manifests}
    notes = place.root / NOTES
    if not is_folder(notes):
        make_folder(notes, place.modes)
    # Remove noted links that are no longer needed, and the notes about removed packages.
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
    """Return the paths of a device package's files.

    If the package is from a different release, warn and return an empty list.
    """
    folder = _manifest_folder(place)
    try:
        version, paths = read_manifest(folder / f"{target}.json") if folder else ("", [])
    except DamagedFileError as e:
        tell(
            f"{e}. The files of this device package are not linked. "
            f"Reinstall: {reinstallation_hint(f'device-{target}')}"
        )
        return []
    version = _distribution_version(place, target) or version
    if release_of(version) != release_of(_build_info.VERSION):
        tell(
            f"the device package for {target} has version {version}, not {_build_info.VERSION}, "
            "so its files are not linked"
        )
        return []
    return paths


def _distribution_version(place: DevelPlace, target: str) -> str:
    """Return the version in the metadata of a device package, or an empty string if there is no metadata.

    The metadata takes precedence over the manifest, because scripts that promote release candidates don't change the
    manifest.
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
    note = place.root / NOTES / f"{target}.json"
    return _read_note(note, _ignore) if is_there(note) else []


def _read_note(note: Path, tell: Warn) -> list[str]:
    """Return the recorded paths. If the note is damaged, warn and return an empty list."""
    try:
        return read_note(note)
    except (DamagedFileError, FileNotFoundError) as e:
        tell(f"{e}. Links to removed device packages may remain. Reinstall: {reinstallation_hint('devel')}")
        return []


def _write(place: DevelPlace, path: Path, value: object) -> None:
    """Write a JSON file atomically."""
    new = path.with_name(f"{path.name}.new")
    write_text(new, json.dumps(value), place.modes)
    this_platform().retry(new.replace, path)


def _ignore(text: str) -> None:
    """Print nothing, because `link_devices` already printed a warning."""


def read_manifest(manifest: Path) -> tuple[str, list[str]]:
    """Return the version of a device package and the paths of its files, relative to the tree.

    Raises `DamagedFileError` for a damaged manifest and for a path that points outside the tree.
    """
    expected = "an object with 'version' and 'links'"
    try:
        document = read_json(manifest, dict, expected)
    except FileNotFoundError as e:
        raise DamagedFileError(manifest, "is a broken link", expected) from e
    version = read_field(manifest, document, "version", str)
    links = read_field(manifest, document, "links", list)
    return version, [_read_path(manifest, read_field(manifest, link, "relpath", str)) for link in links]


def read_links(place: DevelPlace) -> dict[str, str]:
    """Return the paths in the tree that other packages provide, each with the path of the file in site-packages.

    The result is empty if the archive has symlinks instead. Raises `DevelError` if the manifest is damaged.
    """
    expected = "an object whose 'links' maps paths to paths"
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
    """Return a valid path inside the tree. Raises `DamagedFileError` for any other path."""
    if not isinstance(path, str) or not _is_inside(path) or this_platform().name_fault(path):
        raise DamagedFileError(file, f"has the path {path!a}", "relative paths that stay inside the tree")
    return posixpath.normpath(path)


def _is_inside(path: str) -> bool:
    is_name = not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in path)
    return bool(path) and is_name and not path.startswith("/") and ".." not in path.split("/")


def link_file(place: DevelPlace, path: str, noted: Collection[str]) -> None:
    """Link a file of a device package into the tree if `lacks_link` returns `True`. Raises `OSError`.

    ``noted`` contains the paths that are already linked or that will be linked.
    """
    if not lacks_link(place, path, noted):
        return
    link, file = _link_and_file(place, path)
    if not link.parent.is_dir():
        make_folder(link.parent, place.modes)
    with suppress(FileNotFoundError):
        link.unlink()  # the file is from an earlier package
    try:
        give_name(file, link)
    except OSError as e:  # another file system, or a file system without hard links
        if e.errno in DISK_FAULTS:
            raise
        if this_platform().is_windows:
            shutil.copy2(file, link)
        else:
            link.symlink_to(_link_text(path))


def lacks_link(place: DevelPlace, path: str, noted: Collection[str]) -> bool:
    """Return whether a link is missing.

    No link is missing if the package lacks the file or if the tree has a file of its own.

    A link is also missing if its file was replaced, so that the content or the time differs.
    """
    link, file = _link_and_file(place, path)
    if not is_file(file) or is_folder(link):
        return False
    if os.path.lexists(link) and (path not in noted or _is_as(link, file)):
        return False
    return link.parent.resolve() == place.root.resolve() / posixpath.dirname(path)


def is_free(place: DevelPlace, path: str) -> bool:
    """Return whether the tree has no file of its own at a path. The path may be free or occupied by the link."""
    link, file = _link_and_file(place, path)
    return not os.path.lexists(link) or (is_there(link) and is_there(file) and link.samefile(file))


def _is_as(link: Path, file: Path) -> bool:
    """Return whether a path is a link to a file or a copy of it. In container images, hard links can become copies."""
    if not is_there(link):
        return False
    there, here = link.stat(), file.stat()
    return link.samefile(file) or (there.st_size, int(there.st_mtime)) == (here.st_size, int(here.st_mtime))


def unlink_file(place: DevelPlace, path: str) -> None:
    """Remove the link to a file of a device package, and folders that become empty. Raises `OSError`."""
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
    """Create a hard link, and retry if that fails. Raises `OSError`.

    A second attempt may succeed, for example after a server has verified renewed credentials or a virus scanner has
    closed the file. A copy or symlink instead of the hard link would be permanent.
    """
    try:
        os.link(source, path)
    except PermissionError:
        os.link(source, path)


def link_hard(source: Path, path: Path) -> None:
    """Create a hard link to a file, or copy the file if the file system doesn't support hard links.

    Raises `OSError`.
    """
    try:
        give_name(source.resolve(), path)
    except OSError as e:  # another file system, or a file system without hard links
        if e.errno in DISK_FAULTS:
            raise
        shutil.copy2(source, path)


def make_links(links: list[Link], locate: Callable[[str], Path], modes: Modes) -> list[str]:
    """Create links, each of which is a pair of a path and a target. ``locate`` returns the file or folder of a target.

    A target may be another link, and its path may contain a link to a folder. Return the missing targets.
    """
    waiting = links
    while waiting:
        left = [link for link in waiting if not _link_file(locate(link[1]), link[0])]
        if len(left) == len(waiting):  # all files that folders may contain exist now
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
