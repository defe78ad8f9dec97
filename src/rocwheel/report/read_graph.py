"""Which library loads which from which package, as the dynamic loader would, with what the audit finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.audit import check
from rocwheel.audit.dll_uses import Where
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.foundation.errors import RocwheelError, raise_work
from rocwheel.foundation.progress import SILENT, Progress, step
from rocwheel.installed.reading.read_tree import read_environments
from rocwheel.installed.reading.wheel_reading import WheelReading
from rocwheel.linking.known.windows_libraries import find_sdk_dll
from rocwheel.linking.tree_disk import place_of
from rocwheel.report.values.graph import FoundFault, Graph, Load, Loading, LostCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.audit.dll_uses import DllUse
    from rocwheel.audit.finding import Finding
    from rocwheel.audit.subject import Process

__all__ = ["read_graph"]

_SETTINGS = AuditSettings()
_HEADERS = WheelReading(headers_only=True)


def read_graph(paths: Sequence[Path], progress: Progress = SILENT, how: WheelReading = _HEADERS) -> Graph:
    """Return what loads what in wheels, environments, artifacts and folders; with nothing to read, an empty graph.

    Members of wheels are read as ``how`` says: by default, device code is not decompressed. What can't be read as a
    whole is left out, or the graph's problem. Raises `WorkError` where the system is at fault.
    """
    if not paths:
        return Graph()
    unread: list[RocwheelError] = []
    try:
        environments = read_environments(paths, progress=progress, unread=unread, how=how)
    except RocwheelError as e:
        raise_work(e)
        return Graph(problem=str(e))
    subjects = [Subject(tree, _SETTINGS) for tree in environments.each]
    with step(progress, "finding what loads what"):
        files = dict.fromkeys(loading for subject in subjects for loading in _loadings(subject))
    with step(progress, "checking by the rules of the audit"):
        findings = dict.fromkeys(finding for subject in subjects for finding in check(subject))
    lost = dict.fromkeys(
        LostCode(gap.file.place, gap.file.package, tuple(map(str, gap.targets)))
        for subject in subjects
        for gap in subject.code.gaps()
        if gap.is_lost and gap.targets
    )
    loadings = tuple(sorted(files, key=lambda one: (one.path, one.package)))
    return Graph(loadings, tuple(map(_fault, findings)), lost=tuple(lost))


def _loadings(subject: Subject) -> Iterator[Loading]:
    for process in subject.processes:
        owner = subject.tree.owners.get(process.file.distribution)
        is_library = process.file.elf is not None and process.file.elf.is_shared_library
        yield Loading(process.file.path, owner.name if owner else "", is_library, tuple(_loads(subject, process)))
    yield from _windows_loadings(subject)


def _windows_loadings(subject: Subject) -> Iterator[Loading]:
    uses: dict[str, dict[str, Load]] = {file.path: {} for file, _ in subject.windows.audited}
    for use in subject.dll_uses:
        uses[use.user.path].setdefault(use.name, _load(subject, use))
    for file, report in subject.windows.audited:
        owner = subject.tree.owners.get(file.distribution)
        yield Loading(file.path, owner.name if owner else "", report.is_dll, tuple(uses[file.path].values()))


def _load(subject: Subject, use: DllUse) -> Load:
    if use.provider is not None and use.where in (Where.OWN, Where.ADDED):
        owner = subject.tree.owners.get(use.provider.distribution)
        return Load(use.name, use.provider.path, owner.name if owner else "")
    if use.where is Where.ASSUMED and (sdk := find_sdk_dll(use.name)):
        return Load(use.name, f"{sdk.folder}/{use.name}", sdk.distribution)
    return Load(use.name, is_missing=use.where in (Where.NOWHERE, Where.OUT_OF_REACH))


def _loads(subject: Subject, process: Process) -> Iterable[Load]:
    found: dict[str, Load] = {}
    for search in process.loader.searches:
        if search.requester:
            continue
        if search.found is None:
            if not search.is_optional:
                found.setdefault(search.name, Load(search.name, is_missing=True))
            continue
        library = process.loader.objects[search.found].library
        file, provider = subject.file_of(library), subject.provider_of(library)
        path = file.path if file else place_of(library) if provider else ""
        found.setdefault(search.name, Load(search.name, path, provider))
    return found.values()


def _fault(finding: Finding) -> FoundFault:
    return FoundFault(
        finding.rule, finding.severity.value, finding.distribution, finding.path, finding.found, finding.remedy
    )
