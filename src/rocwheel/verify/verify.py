"""Identifies the contents at a path, and verifies them."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from rocwheel.artifacts.fetching import CHECKSUM_FILES
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import open_regular, require_listable
from rocwheel.environment.read_tree import find_all_site_packages
from rocwheel.index.entry import find_distributions
from rocwheel.index.source import indexes_below, is_local_index, is_project_folder
from rocwheel.index.write_index import default_output
from rocwheel.verify.builds import verify_build
from rocwheel.verify.environments import verify_environment
from rocwheel.verify.files import find_checksums, verify_checksums, verify_sdist, verify_wheel
from rocwheel.verify.indexes import verify_index
from rocwheel.wheels.build_manifest import MANIFEST_NAME, manifest_beside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.verify.files import Verified

_INDEX = "simple"
"""The name of an index's folder in mirrors and stores, next to the folder with the files."""
_EXPECTED = f"a {MANIFEST_NAME}, a build folder, an index, wheels, sdists, SHA256SUMS, or an environment"


_HEAD = 64


def verify(
    path: Path, executor: Executor, progress: Progress = SILENT, *, has_links: bool = False
) -> Iterator[Verified]:
    """Yield the results for ``path``: a single result, or one for each wheel and sdist in a folder.

    An environment with several site-packages folders has one result for each folder. A folder of distributions,
    including its family folders, also has results for its checksum files, its index, and its build manifest. The result
    for the parent folder of an index, as in mirrors, is for the index. With ``has_links``, files on other servers that
    the index's pages list are also compared.

    Raises `InputError` for a path that can't be verified, and for an unreadable manifest.
    """
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as e:
        raise read_error(path, e, expected=_EXPECTED) from e
    if is_folder:
        yield from _verify_folder(path, executor, progress, has_links=has_links)
    elif path.suffix == ".whl":
        yield verify_wheel(path, executor, progress)
    elif path.name.endswith(".tar.gz"):
        yield verify_sdist(path)
    elif path.suffix == ".zip":
        raise InputError(path, "has no list of files with hashes", expected=_EXPECTED)
    elif path.name in CHECKSUM_FILES:
        yield verify_checksums(path, executor, progress)
    elif path.is_file() and path.suffix != ".json" and not _begins_as_object(path):
        raise InputError(path, "contains nothing that rocwheel can verify", expected=_EXPECTED)
    else:
        yield verify_build(path, executor, progress)


def _begins_as_object(path: Path) -> bool:
    """Return whether a file begins like a JSON object, as every manifest does, even if it was renamed."""
    try:
        with open_regular(path) as file:
            return file.read(_HEAD).lstrip().startswith(b"{")
    except OSError as e:
        raise read_error(path, e, expected=_EXPECTED) from e


def _verify_folder(folder: Path, executor: Executor, progress: Progress, *, has_links: bool) -> Iterator[Verified]:
    require_listable(folder)
    try:
        if (folder / MANIFEST_NAME).is_file():
            yield verify_build(folder / MANIFEST_NAME, executor, progress)
        elif sites := find_all_site_packages(folder):
            for site in sites:
                yield verify_environment(folder if len(sites) == 1 else site, site, executor, progress)
        elif is_project_folder(folder):
            found, remedy = "is the folder of a single project in an index", f"Pass its parent folder: {folder.parent}"
            raise InputError(folder, found, expected="the whole index", remedy=remedy)
        elif is_local_index(folder):
            yield from _verify_indexes(folder, executor, progress, has_links=has_links)
        else:
            yield from _verify_files(folder, executor, progress, has_links=has_links)
    except OSError as e:
        raise read_error(e.filename or folder, e) from e


def _verify_files(folder: Path, executor: Executor, progress: Progress, *, has_links: bool) -> Iterator[Verified]:
    """Yield the results for the distributions in a folder, and for the records about them."""
    found, lists = find_distributions(folder), find_checksums(folder)
    indexes = [index for index in _indexes_of(folder, has_files=bool(found)) if is_local_index(index)]
    if not found and not lists and not indexes:
        raise InputError(folder, "contains nothing that rocwheel can verify", expected=_EXPECTED)
    for path in found:
        yield verify_wheel(path, executor, progress) if path.suffix == ".whl" else verify_sdist(path)
    for path in lists:
        yield verify_checksums(path, executor, progress)
    for index in indexes:
        yield from _verify_indexes(index, executor, progress, has_links=has_links)
    if manifest := manifest_beside(folder):
        yield verify_build(manifest, executor, progress)


def _verify_indexes(index: Path, executor: Executor, progress: Progress, *, has_links: bool) -> Iterator[Verified]:
    """Yield the results for an index, and for the family indexes in its folder."""
    for place in (index, *indexes_below(index)):
        yield verify_index(place, executor, progress, has_links=has_links)


def _indexes_of(folder: Path, *, has_files: bool) -> Iterator[Path]:
    """Yield the locations of a mirror's index, and of the index that `rocwheel index` writes for a folder."""
    yield folder / _INDEX
    if has_files:
        index = default_output(folder)
        place = folder.parent / index.name
        yield place if place.resolve() == index else index  # relative if the folder is relative
