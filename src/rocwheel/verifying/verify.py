"""Finding out what a path leads to, and verifying it."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from rocwheel.distributions.build_manifest.values import MANIFEST_NAME
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.progress import SILENT, Progress
from rocwheel.installed.reading.read_folders import find_all_site_packages
from rocwheel.verifying.builds import verify_build
from rocwheel.verifying.environments import verify_environment
from rocwheel.verifying.indexes import is_index, verify_index
from rocwheel.verifying.wheels import verify_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.verifying.values import Verified

__all__ = ["verify"]

_EXPECTED = f"a {MANIFEST_NAME}, the folder of a build, an index, wheels, or an environment"


def verify(path: Path, executor: Executor, progress: Progress = SILENT) -> Iterator[Verified]:
    """Yield what was found where ``path`` leads: one result, or one of each wheel in a folder.

    An environment with several site-packages has one result for each.

    Raises `InputError` for a path that is none of what can be verified, and for a manifest that can't be read.
    """
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as e:
        raise read_error(path, e, expected=_EXPECTED) from e
    if is_folder:
        yield from _verify_folder(path, executor, progress)
    elif path.suffix == ".whl":
        yield verify_wheel(path, executor, progress)
    elif path.name.endswith((".tar.gz", ".zip")):
        raise InputError(path, "has no list of its files with hashes", expected=_EXPECTED)
    else:
        yield verify_build(path, executor, progress)


def _verify_folder(folder: Path, executor: Executor, progress: Progress) -> Iterator[Verified]:
    try:
        if (folder / MANIFEST_NAME).is_file():
            yield verify_build(folder / MANIFEST_NAME, executor, progress)
        elif sites := find_all_site_packages(folder):
            for site in sites:
                yield verify_environment(folder if len(sites) == 1 else site, site, executor, progress)
        elif is_index(folder):
            yield verify_index(folder, executor, progress)
        elif wheels := sorted(folder.glob("*.whl")):
            for wheel in wheels:
                yield verify_wheel(wheel, executor, progress)
        else:
            raise InputError(folder, "holds nothing that can be verified", expected=_EXPECTED)
    except OSError as e:
        raise read_error(e.filename or folder, e) from e
