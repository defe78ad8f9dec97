"""The files of an index that list the variants (:pep:`825`, a draft) of each version of a project."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.distributions.index.entries.entry import IndexEntry
from rocwheel.distributions.variants.index_file import find_contradictions, index_file_name, render_index_file
from rocwheel.distributions.variants.variant_json import parse_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.distributions.variants.variant_json import VariantMetadata

__all__ = ["VariantsFile", "make_variants_files"]


class VariantsFile(msgspec.Struct, frozen=True):
    """A file beside the pages of a project, which list it like a distribution."""

    entry: IndexEntry
    data: bytes
    variants: dict[str, tuple[str, ...]]
    """The properties of each variant, as the draft spells them, by label."""


def make_variants_files(
    projects: Mapping[str, Sequence[IndexEntry]], machine: Sequence[str], *, may_lack: bool = False
) -> dict[str, list[VariantsFile]]:
    """Return the files of the projects that have variant wheels, by version; of others nothing.

    ``machine`` are the targets of the machines that the index is for; empty where each machine has to be asked. With
    targets there have to be variants, unless the index ``may_lack`` them, as one of several families. Raises
    `InputError` for variant wheels of a version that contradict one another; `ProblemsError` for several.
    """
    problems: list[InputError] = []
    made: dict[str, list[VariantsFile]] = {}
    for project, entries in projects.items():
        by_name: dict[str, list[IndexEntry]] = defaultdict(list)
        for entry in entries:
            if entry.label:
                by_name[index_file_name(entry.filename)].append(entry)
        for name, wheels in by_name.items():
            metadata = {entry.filename: _parse(entry) for entry in wheels}
            problems += find_contradictions(metadata)
            data = render_index_file(metadata, machine or None)
            variants = {one.label: one.words for one in metadata.values()}
            made.setdefault(project, []).append(VariantsFile(_describe(name, wheels, data), data, variants))
    if machine and not made and not may_lack:
        found = f"is asked for {', '.join(machine)}, and there are no variant wheels"
        problems.append(InputError("--variants-for", found, remedy="Make them with --variants."))
    raise_all("variant wheels", problems)
    return made


def _parse(entry: IndexEntry) -> VariantMetadata:
    return parse_metadata(entry.variant.encode(), source=entry.filename, label=entry.label)


def _describe(name: str, wheels: Sequence[IndexEntry], data: bytes) -> IndexEntry:
    """Return how a page lists the file, dated as the newest of its wheels is.

    It changes under its name when a variant comes. So no page promises its hash, which would be wrong to whoever has
    read the page before and reads the file after.
    """
    first = wheels[0]
    return IndexEntry(
        filename=name,
        project=first.project,
        version=first.version,
        identity=name,
        size=len(data),
        sha256="",
        requires_python=None,
        metadata_sha256=None,
        upload_time=max(wheel.upload_time for wheel in wheels),
    )
