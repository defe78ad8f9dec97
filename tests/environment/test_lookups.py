"""How often the loader model looks into folders, however many files ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.audit import unresolved
from rocwheel.audit.rules import conflicts
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.core.errors import InputError
from rocwheel.environment.loader import KnownFolders, TreeDisk
from rocwheel.environment.run_path_entries import resolve_entry
from tests.support.trees import find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import InstalledFile

MANY = 40


def chain(**fields: Any) -> list[InstalledFile]:
    """Return libraries that each need the next one and one that is gone, with RPATHs that all inherit."""
    return [
        library(f"demo/lib{n:02}.so", f"lib{n + 1:02}.so", f"libgone{n}.so", rpath=f"$ORIGIN:/opt/v{n}", **fields)
        for n in range(MANY)
    ]


def subject(*files: InstalledFile) -> Subject:
    return Subject(tree((package(), [*files])), AuditSettings())


def test_names_that_no_folder_has_are_looked_up_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    found = TreeDisk.find

    def counted(self: TreeDisk, path: str, machine: int) -> object:
        tried.append(path.rpartition("/")[2])
        return found(self, path, machine)

    needed = [f"libgone{n}.so" for n in range(MANY)]
    run_path = ":".join(f"$ORIGIN/f{n}" for n in range(MANY))
    one = subject(library("demo/a.so", *needed, rpath=run_path), *chain())
    monkeypatch.setattr(TreeDisk, "find", counted)
    assert len(one.processes) == MANY + 1
    assert not [name for name in tried if name.startswith("libgone")]
    assert len(tried) <= MANY * MANY / 2


def test_a_link_that_leads_nowhere_and_a_folder_have_a_name() -> None:
    disk = TreeDisk({}, {"demo/liba.so": "gone"}, obstacles={})
    assert [disk.has_name(name) for name in ("liba.so", "demo", "gone")] == [True, True, False]


def test_run_paths_are_described_once_for_all_processes() -> None:
    described = []

    def describe(entry: str, folder: str) -> tuple[str, str]:
        described.append(entry)
        return folder, entry

    known = KnownFolders(describe)
    for process in subject(*chain()).processes:
        for index in range(len(process.loader.objects)):
            folders = [*process.loader.folders(index, known)]
            assert len(folders) == index + 2  # the folder of all files, and one of each file up to the first
    assert len(described) == len(set(described)) + MANY - 1  # $ORIGIN is once in each file


def test_each_pair_of_libraries_is_compared_once_for_each_of_two_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def counted(first: InstalledFile, second: InstalledFile) -> frozenset[bytes]:
        compared.append((first.path, second.path))
        return frozenset()

    monkeypatch.setattr(conflicts, "_common", counted)
    find(tree((package(), chain(exports=("f",)))))
    assert len(compared) == 2 * len(set(compared)) == MANY * (MANY - 1)


def test_files_that_need_too_many_lookups_for_their_size_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.audit.subject._MOST_LOOKUPS", 1000)
    with pytest.raises(InputError) as caught:
        _ = subject(*chain()).processes
    assert str(caught.value) == (
        f"{package().source}!demo/lib09.so: makes the dynamic loader look for libraries in too many places; expected "
        "at most 1000 lookups for all files, and one more for each KiB. Pass fewer packages at a time."
    )
    large = [library(f"demo/lib{n:02}.so", f"lib{n + 1:02}.so", rpath="$ORIGIN", size=1 << 20) for n in range(MANY)]
    assert len(subject(*large).processes) == MANY


def test_a_run_path_is_resolved_once_for_all_names_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = []

    def counted(entry: str, folder: str) -> str | None:
        resolved.append(entry)
        return resolve_entry(entry, folder)

    monkeypatch.setattr(unresolved, "resolve_entry", counted)
    needed = [f"libgone{n}.so" for n in range(MANY)]
    run_path = ":".join(f"$ORIGIN/../part/f{n}" for n in range(MANY))
    one = subject(library("demo/a.so", *needed, runpath=run_path))
    missing = list(unresolved.find_unresolved(one, "unresolved-library"))
    assert len(missing) == MANY
    unresolved.absent_requirements(one, missing)
    assert len(resolved) <= MANY
