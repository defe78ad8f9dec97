"""Compares a build's outputs with its manifest, and writes attestations about them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.scratch import is_scratch
from rocwheel.core.workers import raise_all, serialized
from rocwheel.core.writing import atomic_file
from rocwheel.index.folder_notes import OWN_NAMES
from rocwheel.index.pages import METADATA_SUFFIX
from rocwheel.verify.files import Fault, Promise, Verified, find_fault, reading_faults, verify_wheel
from rocwheel.wheels.build_manifest import (
    ATTESTATIONS,
    PREDICATE_NAME,
    STATEMENT_SUFFIX,
    SUMS_NAME,
    find_manifest,
    is_own_attestation,
    make_predicate,
    make_statement,
    parse_manifest,
    read_manifest,
    read_manifest_text,
    render_json,
    render_sums,
)
from rocwheel.wheels.file_names import DISTRIBUTION_SUFFIXES
from rocwheel.wheels.variants import is_index_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from rocwheel.core.progress import Progress
    from rocwheel.wheels.build_manifest import BuildManifest, ManifestOutput


def verify_build(path: Path, executor: Executor, progress: Progress) -> Verified:
    """Compare the files next to a manifest with the manifest, and the wheels among them with their RECORD.

    Raises the same errors as `read_manifest`. Files that `rocwheel index` writes next to distributions aren't
    considered extra files.
    """
    manifest = read_manifest(path)
    size = sum(output.size for output in manifest.outputs)
    progress.begin(f"verifying {path.name}", size)
    check = partial(_output_fault, path.parent, advance=serialized(progress.advance))
    faults = [fault for fault in executor.map(check, manifest.outputs) if fault]
    progress.end()
    faulty = {fault.place for fault in faults}
    files = [path.parent / output.path for output in manifest.outputs]
    for file in (file for file in files if file.suffix == ".whl" and str(file) not in faulty):
        faults += verify_wheel(file, executor, progress).faults
    faults += _sums_faults(path.parent, manifest)
    faults += _extra_files(path.parent, manifest)
    return Verified(str(path), "build", len(manifest.outputs), size, tuple(faults))


def _output_fault(folder: Path, output: ManifestOutput, advance: Callable[[int], object]) -> Fault | None:
    path = folder / output.path
    parent = os.path.realpath(path.parent)
    if parent != os.path.normpath(os.path.join(os.path.realpath(folder), os.path.dirname(output.path))):  # noqa: PTH118, PTH120
        return Fault(
            "link",
            str(path),
            f"is reached through a symlink to {parent}",
            "a file in the manifest's folder or its subfolders",
        )
    return find_fault(Promise(path, output.sha256, output.size), advance)


def _sums_faults(folder: Path, manifest: BuildManifest) -> list[Fault]:
    """Return a fault if the checksum file next to a manifest doesn't match the manifest."""
    path, faults = folder / SUMS_NAME, list[Fault]()
    if path.is_symlink():
        return [Fault("link", str(path), "is a symlink", "a file")]
    if not path.is_file():
        return []
    with reading_faults(str(path), faults):
        expected = render_sums(manifest)
        with path.open("rb") as file:
            if file.read(len(expected) + 1) != expected:
                faults.append(
                    Fault("changed", str(path), "contains different checksums", "the checksums in the manifest")
                )
    return faults


def extra_files(manifest: BuildManifest, names: Iterable[str]) -> list[str]:
    """Return the files among ``names``, which are in a build's folder, that aren't outputs.

    Files that `rocwheel index` writes in this folder aren't included.
    """
    known = {output.path for output in manifest.outputs}
    tops = _tops(manifest)
    extra = (name for name in names if name not in known and "/" in name and name.partition("/")[0] in tops)
    named = ((name, name.rpartition("/")[2]) for name in extra)
    return sorted(
        name
        for name, last in named
        if not (last in OWN_NAMES or last.endswith(METADATA_SUFFIX) or is_index_file_name(last))
    )


def _tops(manifest: BuildManifest) -> set[str]:
    """Return the top-level folders of a build's outputs."""
    return {output.path.partition("/")[0] for output in manifest.outputs if "/" in output.path} | {"dist"}


def _extra_files(folder: Path, manifest: BuildManifest) -> list[Fault]:
    found = (path for top in sorted(_tops(manifest)) for path in _files_below(folder / top))
    names = extra_files(manifest, (path.relative_to(folder).as_posix() for path in found))
    return [Fault("extra", str(folder / name), "isn't in the manifest", "only files from this build") for name in names]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files and symbolic links in a folder and its subfolders. Links aren't followed."""
    for root, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]  # noqa: PTH114, PTH118
        yield from (Path(root, name) for name in (*files, *links) if not is_scratch(name))


class Attested(msgspec.Struct, frozen=True):
    """The attestations that were written for a build."""

    predicate: str
    """The path of the predicate, which is the same for all outputs."""
    statements: dict[str, str]
    """The path of each output's statement, keyed by the path of the output."""


def attest(path: Path, builder: str, executor: Executor, progress: Progress) -> Attested:
    """Write statements about a build's outputs to ``attestations`` in its folder. For ``path``, see `find_manifest`.

    Raises `WorkError` if an output differs from the manifest, or if the folder contains another distribution, which
    would also be signed and uploaded. Raises `InputError` if another file, such as a signed statement, is already at a
    statement's path. Raises `ProblemsError` for several problems, before anything is written. Also raises the same
    errors as `read_manifest`, and `WorkError` if writing fails.
    """
    source = find_manifest(path)
    text = read_manifest_text(source)
    manifest = parse_manifest(text, str(source))
    # Signature bundles are next to distributions.
    every = verify_build(source, executor, progress).faults
    faults = [fault for fault in every if fault.kind != "extra" or fault.place.endswith(DISTRIBUTION_SUFFIXES)]
    raise_all(str(source), [WorkError(fault.place, fault.found, expected=fault.expected) for fault in faults])
    folder = source.parent / ATTESTATIONS
    predicate = make_predicate(manifest, text, builder)
    statements = {
        output: folder
        / f"{output.path.removeprefix('dist/')}{STATEMENT_SUFFIX}"  # includes the folder of the output's family
        for output in manifest.outputs
    }
    places = (folder / PREDICATE_NAME, *statements.values())
    taken = [place for place in places if os.path.lexists(place) and not is_own_attestation(place)]
    found, expected = "wasn't written by rocwheel attest", "no file, or a file that rocwheel attest wrote"
    raise_all(
        str(folder),
        [InputError(path, found, expected=expected, remedy="Move the file to another folder.") for path in taken],
    )
    _write(folder / PREDICATE_NAME, render_json(predicate))
    for output, place in statements.items():
        _write(place, render_json(make_statement(output, predicate)))
    named = {str(source.parent / output.path): str(place) for output, place in statements.items()}
    return Attested(str(folder / PREDICATE_NAME), named)


def _write(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write(data)
