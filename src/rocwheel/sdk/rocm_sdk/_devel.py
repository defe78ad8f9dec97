"""The development tree ``_rocm_sdk_devel``.

It is expanded from an archive on first use, and is later updated as packages change.

Frameworks and the programs of rocm-sdk-core import `get_devel_root` from here.
"""

from __future__ import annotations

import errno
from pathlib import Path

from ._devel_links import device_manifests, link_devices, restore_links
from ._devel_place import DevelError, find_place, missing_packages_text
from ._files import is_there
from ._installing import reinstallation_hint
from ._output import warn
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._devel_place import DevelPlace


def get_devel_root(*, is_strict: bool = False) -> Path:
    """Return the development tree. Expand the tree and link device files into it if necessary.

    Several processes may call this function at the same time. Raises `ModuleNotFoundError` if rocm-sdk-devel isn't
    installed, and `DevelError` if the tree can't be created or if it links to packages that were removed. If files of
    device packages can't be linked, the function raises `DevelError` if ``is_strict``, and otherwise prints a warning.
    """
    place = find_place()
    if place.is_unfinished:
        from ._devel_expansion import ensure_expanded  # noqa: PLC0415 (slow to import, and needed only once)

        ensure_expanded(place)
    state = require_whole(place)
    try:
        if state.get("devices") != device_manifests(place):
            with place.locked():
                link_devices(place)
    except OSError as e:
        text = _lack_text(place, e)
        if is_strict:
            raise DevelError(text) from e
        warn(text)
    return Path(this_platform().plain(str(place.root)))


def restore_device_links() -> int:
    """Restore links to files from device packages if they were removed, and return the number of restored links.

    Raises `ModuleNotFoundError` if rocm-sdk-devel isn't installed, and `DevelError` if a file can't be linked.
    """
    place = find_place()
    try:
        return restore_links(place)
    except OSError as e:
        raise DevelError(_lack_text(place, e)) from e


def _lack_text(place: DevelPlace, error: OSError) -> str:
    is_refused = isinstance(error, PermissionError) or error.errno == errno.EROFS
    remedy = ". As a user with write access, run: rocm-sdk init" if is_refused else ""
    return f"{place.root} lacks files from installed device packages: {error}{remedy}"


def require_whole(place: DevelPlace) -> dict[str, object]:
    """Return the state file of the tree, which describes its archive.

    Raises `DevelError` if the tree is incomplete, or if it links to a package that isn't installed.
    """
    state = place.read_state()
    if not state:
        found = f"{place.root}: the tree is incomplete, and its archive is missing"
        msg = f"{found}. Reinstall: {reinstallation_hint('devel')}"
        raise DevelError(msg)
    linked = state.get("packages")
    packages = map(str, linked) if isinstance(linked, list) else ()
    missing = [name for name in packages if not is_there(place.site / name / "__init__.py")]
    if missing:
        raise DevelError(missing_packages_text(missing))
    return state
