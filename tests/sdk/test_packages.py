"""Which packages are installed, on disks that fail, too."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

LINKS = "_rocm_sdk_libraries/.devel_links"


@pytest.fixture
def packages(load_sdk: Callable[..., Any], tmp_path: Path) -> Any:
    """Return the module that finds packages, next to libraries and the code of two targets."""
    load = load_sdk()
    (tmp_path / "site" / LINKS).mkdir(parents=True)
    (tmp_path / "site" / LINKS).with_name("__init__.py").touch()
    for name in ("gfx1030.json", "gfx906.json", "note.txt"):
        (tmp_path / "site" / LINKS / name).touch()
    return load("rocm_sdk._packages")


def test_device_packages_are_detected_by_their_manifests(packages: Any) -> None:
    assert packages.installed_devices() == ["gfx906", "gfx1030"]


def test_there_are_no_device_packages_without_the_manifest_folder(packages: Any, tmp_path: Path) -> None:
    (tmp_path / "site" / LINKS).rename(tmp_path / "away")
    assert packages.installed_devices() == []


def failing(call: Callable[..., Any], name: str, error: int) -> Callable[..., Any]:
    """Return a call of the system that fails for one name."""

    def fail(path: Any = ".", *arguments: Any, **options: Any) -> Any:
        if str(path).endswith(name):
            raise OSError(error, os.strerror(error), str(path))
        return call(path, *arguments, **options)

    return fail


@pytest.mark.parametrize(
    ("calls", "name", "error"),
    [
        (["stat"], LINKS, errno.EIO),
        (["stat"], "/_rocm_sdk_libraries/__init__.py", errno.EIO),
        (["listdir", "scandir"], LINKS, errno.EIO),
        (["listdir", "scandir"], LINKS, errno.EACCES),
    ],
)
def test_a_file_that_the_disk_cannot_read_is_not_treated_as_missing(
    packages: Any, monkeypatch: pytest.MonkeyPatch, calls: list[str], name: str, error: int
) -> None:
    # Given a `pathlib` that takes faults for absence, as that of Python 3.14
    monkeypatch.setattr(Path, "exists", os.path.exists)
    monkeypatch.setattr(Path, "is_dir", os.path.isdir)
    for call in calls:
        monkeypatch.setattr(os, call, failing(getattr(os, call), name, error))
    # When the device packages are asked for
    with pytest.raises(OSError, match=os.strerror(error)) as caught:
        packages.installed_devices()
    # Then the error names what the disk didn't give
    assert str(caught.value.filename).endswith(name)
