"""The folder of a wheel over which its device wheels are laid; paths in archives and markers begin there."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.wrappers import is_host_file
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.core.errors import InputError
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.targets.kernel_files.classify import classify_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import FileRange
    from rocwheel.device.splitting.wheels.finished_wheel import FinishedWheel

__all__ = ["choose_overlay_root"]


def choose_overlay_root(wheel: FinishedWheel, code: Mapping[str, FileRange], given: str = "") -> str:
    """Return the overlay root: the one that was ``given``, else the one top-level folder with all device code.

    ``code`` are the members to look at. Raises `InputError` for a folder that isn't in the wheel, when there is no
    device code, and when it is in several folders; `ProblemsError` for damaged files.
    """
    if given:
        root = posixpath.normpath(given.replace("\\", "/"))
        if not any(member.name.startswith(f"{root}/") for member in wheel.kept_members):
            raise InputError(wheel.source, f"has no folder {root}", expected="an overlay root that is in the wheel")
        return root
    problems: list[RocwheelError] = []
    shown = wheel.shown_names
    found = attempt_all(lambda item: _top_folder(*item, shown[item[0]]), sorted(code.items()), problems)
    raise_all(wheel.source, problems)
    roots = sorted({root for root in found if root is not None})
    if not roots:
        raise _no_code(wheel, code)
    if roots == [""]:
        raise _at_the_top(wheel)
    if len(roots) > 1 or not roots[0] or roots[0].endswith(".data"):
        listed = ", ".join(root or "the top" for root in roots)
        remedy = "Name the folder that holds the package: --overlay-root FOLDER"
        raise InputError(wheel.source, f"has device code in {listed}", expected="one folder", remedy=remedy)
    return roots[0]


def _at_the_top(wheel: FinishedWheel) -> InputError:
    found = "can't be split: its device code is at its top, which is the folder of all packages once it is installed"
    remedy = "Build it with the code in a folder of its own, over which device wheels can be laid."
    return InputError(wheel.source, found, expected="device code below one folder", remedy=remedy)


def _no_code(wheel: FinishedWheel, code: Mapping[str, FileRange]) -> InputError:
    expected = "a wheel with a fat binary or kernel files"
    shown = wheel.shown_names
    if not any(_is_split(shown[name], content) for name, content in sorted(code.items())):
        return InputError(wheel.source, "no device code to split off", expected=expected)
    remedy = "Its device code is in device wheels: 'rocwheel device join' takes them back."
    return InputError(wheel.source, "is split already", expected=expected, remedy=remedy)


def _is_split(name: str, content: FileRange) -> bool:
    with content.view() as data:
        return is_host_file(data) and read_split_library(data, name=name) is not None


def _top_folder(name: str, content: FileRange, shown: str) -> str | None:
    """Return the top-level folder of a file with device code; none for other files."""
    if classify_path(name) is None:
        with content.view() as data:
            if not device_targets(data, name=shown):
                return None
    return name.partition("/")[0] if "/" in name else ""
