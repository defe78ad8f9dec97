"""The outputs of a build compared with its manifest."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.distributions.build_manifest.read import read_manifest
from rocwheel.distributions.build_manifest.render import render_sums
from rocwheel.distributions.build_manifest.values import SUMS_NAME
from rocwheel.distributions.index.notes.known_files import NOTES
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE, PAGES
from rocwheel.distributions.variants.index_file import is_index_file_name
from rocwheel.foundation.collecting import serialised
from rocwheel.foundation.files.writing.scratch import is_scratch
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.verifying.hashing import Promise, find_fault, reading_faults
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from rocwheel.distributions.build_manifest.values import BuildManifest, ManifestOutput
    from rocwheel.foundation.progress import Progress

__all__ = ["extra_files", "verify_build"]

_OF_INDEXES = frozenset((*PAGES, FRONT_PAGE, *NOTES))
_METADATA = ".metadata"


def verify_build(path: Path, executor: Executor, progress: Progress) -> Verified:
    """Compare what lies beside a manifest with it; raise what `read_manifest` raises.

    What `rocwheel index` writes among distributions is no extra file.
    """
    manifest = read_manifest(path)
    size = sum(output.size for output in manifest.outputs)
    step = begin_large(progress, f"verifying {path.name}", size)
    check = partial(_output_fault, path.parent, advance=serialised(step.advance))
    faults = [fault for fault in executor.map(check, manifest.outputs) if fault]
    faults += _sums_faults(path.parent, manifest)
    faults += _extra_files(path.parent, manifest)
    progress.end()
    return Verified(str(path), "build", len(manifest.outputs), size, tuple(faults))


def _output_fault(folder: Path, output: ManifestOutput, advance: Callable[[int], object]) -> Fault | None:
    path = folder / output.path
    parent = os.path.realpath(path.parent)
    if parent != os.path.normpath(os.path.join(os.path.realpath(folder), os.path.dirname(output.path))):  # noqa: PTH118, PTH120
        return Fault("link", str(path), f"is reached through a symlink, in {parent}", "a file below the manifest")
    return find_fault(Promise(path, output.sha256, output.size), advance)


def _sums_faults(folder: Path, manifest: BuildManifest) -> list[Fault]:
    """Return a fault where there are checksums beside a manifest that say something else."""
    path, faults = folder / SUMS_NAME, list[Fault]()
    if path.is_symlink():
        return [Fault("link", str(path), "is a symlink", "a file")]
    if not path.is_file():
        return []
    with reading_faults(str(path), faults):
        expected = render_sums(manifest)
        with path.open("rb") as file:
            if file.read(len(expected) + 1) != expected:
                faults.append(Fault("changed", str(path), "has other checksums", "those of the manifest"))
    return faults


def extra_files(manifest: BuildManifest, names: Iterable[str]) -> list[str]:
    """Return the files, of those below the folder of a build, that stand among its outputs and are none of them.

    What `rocwheel index` writes there is none of these.
    """
    known = {output.path for output in manifest.outputs}
    tops = _tops(manifest)
    extra = (name for name in names if name not in known and "/" in name and name.partition("/")[0] in tops)
    return sorted(name for name in extra if not _is_of_an_index(name.rpartition("/")[2]))


def _tops(manifest: BuildManifest) -> set[str]:
    """Return the folders that the outputs of a build are in, or in folders of."""
    return {output.path.partition("/")[0] for output in manifest.outputs if "/" in output.path} | {"dist"}


def _extra_files(folder: Path, manifest: BuildManifest) -> list[Fault]:
    found = (path for top in sorted(_tops(manifest)) for path in _files_below(folder / top))
    names = extra_files(manifest, (path.relative_to(folder).as_posix() for path in found))
    return [Fault("extra", str(folder / name), "is not in the manifest", "files of this build alone") for name in names]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield files and links below a folder; links are not followed."""
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]  # noqa: PTH114, PTH118
        yield from (Path(root, name) for name in (*files, *links) if not is_scratch(name))


def _is_of_an_index(name: str) -> bool:
    return name in _OF_INDEXES or name.endswith(_METADATA) or is_index_file_name(name)
