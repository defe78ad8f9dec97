"""Hand-written catalogs: planning is a pure function of values, so no file is needed to test it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.artifacts.artifact import ArtifactName, FileKind
from rocwheel.artifacts.catalog import Catalog, Entry
from rocwheel.artifacts.sdk_files import SdkManifest
from rocwheel.binary.elf.facts import Elf, ElfKind
from rocwheel.build.file_facts import Facts
from rocwheel.core.reading import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

X86_64 = 62
AMDGPU = 224


def file_entry(path: str, artifact: str = "base_lib_generic", *, mode: int = 0o644) -> Entry:
    """Return a file of an artifact; its content is said to lie in ``/src/ARTIFACT/PATH``."""
    source = FileRange(f"/src/{artifact}/{path}", 0, 100)
    return Entry(path, FileKind.FILE, ArtifactName.parse(artifact), mode, source=source)


def link_entry(path: str, text: str, artifact: str = "base_lib_generic") -> Entry:
    """Return a symlink of an artifact."""
    return Entry(path, FileKind.SYMLINK, ArtifactName.parse(artifact), 0o777, link=text)


def library(
    soname: str | None,
    *needed: str,
    runpath: str | None = None,
    rpath: str | None = None,
    imports_dlopen: bool = False,
) -> Elf:
    """Return the facts of a shared library."""
    return Elf(
        X86_64,
        ElfKind.SHARED_OBJECT,
        3,
        0,
        (),
        is_dynamic=True,
        soname=soname,
        needed=needed,
        runpath=runpath,
        rpath=rpath,
        imports_dlopen=imports_dlopen,
    )


def program(*needed: str, runpath: str | None = None) -> Elf:
    """Return the facts of a dynamically linked program."""
    return Elf(X86_64, ElfKind.EXECUTABLE, 3, 0, (), is_dynamic=True, needed=needed, runpath=runpath)


def static_program() -> Elf:
    """Return the facts of a program without a dynamic section."""
    return Elf(X86_64, ElfKind.EXECUTABLE, 2, 0, ())


def make_facts(
    elves: Mapping[Entry, Elf] | None = None,
    *,
    digests: Mapping[Entry, bytes] | None = None,
    targets: Mapping[Entry, tuple[str, ...]] | None = None,
    scripts: Iterable[Entry] = (),
) -> Facts:
    """Return facts by entry instead of by file."""

    def by_source(rows: Mapping[Entry, object]) -> dict[FileRange, object]:
        return {entry.source: row for entry, row in rows.items() if entry.source}

    runnable = frozenset(entry.source for entry in scripts if entry.source)
    return Facts(by_source(elves or {}), by_source(digests or {}), by_source(targets or {}), runnable)  # type: ignore[arg-type]


def make_catalog(*entries: Entry, flags: Mapping[str, bool] | None = None, version: str = "7.2.0") -> Catalog:
    """Return a catalog of the entries, with a manifest."""
    ordered = tuple(sorted(entries, key=lambda entry: (entry.path, entry.artifact)))
    names = tuple(sorted({entry.artifact for entry in ordered}))
    manifest = SdkManifest(rocm_version=version, rocm_package_version=version, flags=dict(flags or {}))
    return Catalog("/src", names, ordered, manifest)
