"""Writing of attestations about the outputs of a build, after these were compared with its manifest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.build_manifest.place import is_own_attestation
from rocwheel.distributions.build_manifest.provenance import make_predicate, make_statement, render_json
from rocwheel.distributions.build_manifest.read import find_manifest, parse_manifest, read_manifest_text
from rocwheel.distributions.build_manifest.values import (
    ATTESTATIONS,
    PREDICATE_NAME,
    STATEMENT_SUFFIX,
)
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError, WorkError
from rocwheel.foundation.files.writing.atomic_file import atomic_file
from rocwheel.verifying.builds import verify_build

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from pathlib import Path

    from rocwheel.foundation.progress import Progress
    from rocwheel.verifying.values import Fault

__all__ = ["Attested", "attest"]

_DISTRIBUTIONS = (".whl", ".tar.gz")


class Attested(msgspec.Struct, frozen=True):
    """What was written of a build."""

    predicate: str
    """The path of the predicate, which is the same for all outputs."""
    statements: dict[str, str]
    """The path of the statement about each output, by the path of that."""


def attest(path: Path, builder: str, executor: Executor, progress: Progress) -> Attested:
    """Write statements about the outputs of a build, given as for `find_manifest`, to ``attestations`` in its folder.

    Raises `WorkError` where an output is not what the manifest says, and for a distribution among them that it does
    not name, which would be signed and uploaded with them; `InputError` for what stands in the place of a statement
    and is none, such as a signed one; `ProblemsError` for several, before anything is written; what `read_manifest`
    raises; `WorkError` where writing fails.
    """
    source = find_manifest(path)
    text = read_manifest_text(source)
    manifest = parse_manifest(text, str(source))
    faults = [fault for fault in verify_build(source, executor, progress).faults if _matters(fault)]
    raise_all(str(source), [WorkError(fault.place, fault.found, expected=fault.expected) for fault in faults])
    folder = source.parent / ATTESTATIONS
    predicate = make_predicate(manifest, text, builder)
    statements = {output: _statement_path(folder, output.path) for output in manifest.outputs}
    raise_all(str(folder), list(map(_taken, filter(_is_taken, (folder / PREDICATE_NAME, *statements.values())))))
    _write(folder / PREDICATE_NAME, render_json(predicate))
    for output, place in statements.items():
        _write(place, render_json(make_statement(output, predicate)))
    named = {str(source.parent / output.path): str(place) for output, place in statements.items()}
    return Attested(str(folder / PREDICATE_NAME), named)


def _is_taken(path: Path) -> bool:
    return os.path.lexists(path) and not is_own_attestation(path)


def _taken(path: Path) -> InputError:
    expected = "nothing, or what rocwheel attest wrote"
    return InputError(path, "was not written by rocwheel attest", expected=expected, remedy="Move it.")


def _matters(fault: Fault) -> bool:
    """Return whether a fault keeps a build from being vouched for; bundles of signatures stand beside distributions."""
    return fault.kind != "extra" or fault.place.endswith(_DISTRIBUTIONS)


def _statement_path(folder: Path, output: str) -> Path:
    """Return where the statement about an output goes: packages of two families may have one name."""
    return folder / f"{output.removeprefix('dist/')}{STATEMENT_SUFFIX}"


def _write(path: Path, data: bytes) -> None:
    with atomic_file(path) as file:
        file.write(data)
