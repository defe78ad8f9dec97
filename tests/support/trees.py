"""Trees of packages that exist only as values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.facts import Elf, ElfKind, ElfTraits
from rocwheel.binary.elf.header import Segment
from rocwheel.binary.elf.mapping import PAGES
from rocwheel.binary.elf.symbols import Linkage, VersionNeed
from rocwheel.binary.pe.facts import Certificate, Pe
from rocwheel.binary.pe.header import AMD64, PeHeader
from rocwheel.binary.pe.linkage import Exports, ImportedDll
from rocwheel.environment.file_reports import BundleReport, DeviceReport, PeReport
from rocwheel.environment.tree import Distribution, InstalledFile, Tree, split_environments
from rocwheel.wheels.record import RecordRow, parse_record, render_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rocwheel.audit.finding import Finding
    from rocwheel.environment.run_path_choice import SetRunpath
    from rocwheel.wheels.record import RecordEntry

__all__ = [
    "MISALIGNED",
    "code",
    "data",
    "dll",
    "exe",
    "find",
    "library",
    "package",
    "program",
    "tree",
    "windows_package",
    "with_files",
    "with_run_paths",
]

CODE = Segment(1, 5, 0, 0, 0, 4096, 4096, 4096)
MISALIGNED = (
    Segment(1, 5, 0, 0, 0, 0x1000, 0x1000, 0x200000),
    Segment(1, 6, 0x701000, 0xA00000, 0xA00000, 0x40, 0x40, 0x200000),
)
"""The segments of a library that patchelf 0.18 has changed, the second of which glibc before 2.35 refuses."""


def package(name: str = "demo", *, tag: str = "py3-none-manylinux_2_17_x86_64", **fields: Any) -> Distribution:
    """Return a wheel's distribution."""
    module = name.replace("-", "_")
    source = f"dist/{module}-1.0-{tag}.whl"
    found: dict[str, Any] = {"version": "1.0", "tags": (tag,), "is_wheel": True, "license": "MIT"} | fields
    return Distribution(name=name, source=source, dist_info=f"{module}-1.0.dist-info", **found)


def library(
    path: str, *needed: str, runpath: str | None = None, rpath: str | None = None, machine: int = 62, **fields: Any
) -> InstalledFile:
    """Return a shared library whose SONAME is its file name, unless given."""
    soname = fields.pop("soname", path.rpartition("/")[2])
    elf = Elf(
        machine=machine,
        kind=fields.pop("kind", ElfKind.SHARED_OBJECT),
        type=3,
        osabi=0,
        segments=fields.pop("segments", (msgspec.structs.replace(CODE, alignment=PAGES.get(machine, 4096)),)),
        is_dynamic=True,
        soname=soname,
        needed=needed,
        rpath=rpath,
        runpath=runpath,
        version_needs=(
            *(VersionNeed("libc.so.6", version) for version in fields.pop("versions", ("GLIBC_2.17",))),
            *(VersionNeed(name, "V1") for name in fields.pop("versions_of", ())),
        ),
        version_definitions=fields.pop("definitions", ()),
        imports_dlopen=fields.pop("imports_dlopen", False),
        build_id=fields.pop("build_id", "00"),
    )
    traits = ElfTraits(
        exports=frozenset(name.encode() for name in fields.pop("exports", ())),
        linkage=Linkage(
            frozenset(name.encode() for name in fields.pop("defines", ())), references=fields.pop("references", ())
        ),
        compilers=fields.pop("compilers", ()),
        has_text_relocations=fields.pop("text_relocations", False),
        has_executable_stack=fields.pop("executable_stack", False),
        has_writable_code=fields.pop("writable_code", False),
    )
    return data(path, elf=elf, traits=traits, mode=fields.pop("mode", 0o100755), **fields)


def program(path: str, *needed: str, **fields: Any) -> InstalledFile:
    """Return a dynamically linked program."""
    return library(path, *needed, kind=ElfKind.EXECUTABLE, soname=None, **fields)


def windows_package(name: str = "demo", **fields: Any) -> Distribution:
    """Return a wheel's distribution for Windows."""
    return package(name, tag="py3-none-win_amd64", **fields)


def dll(path: str, *imports: str, delayed: tuple[str, ...] = (), machine: int = AMD64, **fields: Any) -> InstalledFile:
    """Return a DLL of Windows that was linked with the name that its file has, unless ``linked_as`` says otherwise."""
    is_dll = fields.pop("is_dll", True)
    linked_as = fields.pop("linked_as", path.rpartition("/")[2])
    functions = fields.pop("functions", ("f",))
    header = PeHeader(machine, is_dll, True, 1 << 32, 0, 4096, 512, 4096, 512, 0, 3, (), 0, 0, 0, 0)
    pe = Pe(
        header,
        (),
        tuple(ImportedDll(name, functions) for name in imports),
        tuple(ImportedDll(name, functions) for name in delayed),
        Exports(linked_as, ("f",)) if is_dll else None,
        certificate=Certificate(512, 8) if fields.pop("signed", False) else None,
    )
    said = {name: fields.pop(name) for name in ("faults", "archives", "kpack_fault") if name in fields}
    return data(path, windows=PeReport(machine, is_dll, pe, **said), **fields)


def exe(path: str, *imports: str, **fields: Any) -> InstalledFile:
    """Return a program of Windows."""
    return dll(path, *imports, is_dll=False, **fields)


def data(path: str, **fields: Any) -> InstalledFile:
    """Return any file; its content differs from that of all others unless a digest is given."""
    found: dict[str, Any] = {"mode": 0o100644, "sha256": hashlib.sha256(path.encode()).digest(), "size": 1} | fields
    return InstalledFile(path=path, distribution="", source=path, **found)


def code(*bundles: tuple[str, ...], size: int = 1000, compressed: bool = True, **fields: Any) -> DeviceReport:
    """Return device code in bundles of the given targets."""
    found = tuple(BundleReport(targets, size, compressed) for targets in bundles)
    targets = tuple(dict.fromkeys(target for targets in bundles for target in targets))
    return DeviceReport(found, targets, **fields)


def tree(*parts: tuple[Distribution, list[InstalledFile]]) -> Tree:
    """Return packages with their files; each gets a license, and a RECORD of its files unless it has one."""
    owners, files = [], []
    for owner, members in parts:
        own = [
            msgspec.structs.replace(file, distribution=owner.source, source=f"{owner.source}!{file.path}")
            for file in (*members, *_dist_info(owner))
        ]
        record = owner.record or record_of(owner, own)
        owners.append(msgspec.structs.replace(owner, record=record))
        files += own
    return Tree(tuple(owners), tuple(files))


def record_of(owner: Distribution, files: Iterable[InstalledFile]) -> tuple[RecordEntry, ...]:
    """Return a right RECORD of a distribution's files."""
    listed = [file for file in files if file.distribution == owner.source and not file.path.endswith("RECORD")]
    paths = [file.member if owner.is_wheel else file.path for file in listed]
    rows = [RecordRow(path, file.sha256 or b"", file.size) for path, file in zip(paths, listed, strict=True)]
    return parse_record(render_record(rows, f"{owner.dist_info}/RECORD"), "RECORD")


def with_files(made: Tree, files: Iterable[InstalledFile]) -> Tree:
    """Return a tree with other files in its packages, and a right RECORD of them."""
    files = tuple(files)
    owners = (msgspec.structs.replace(one, record=record_of(one, files)) for one in made.distributions)
    return msgspec.structs.replace(made, distributions=tuple(owners), files=files)


def _dist_info(owner: Distribution) -> list[InstalledFile]:
    names = ["METADATA", "WHEEL", "RECORD"] + ([f"licenses/{name}" for name in ("LICENSE",)] if owner.license else [])
    return [data(f"{owner.dist_info}/{name}") for name in names]


def find(audited: Tree, **settings: Any) -> list[Finding]:
    """Return the findings of an audit."""
    return list(audit(split_environments(audited), AuditSettings(**settings)).findings)


def with_run_paths(made: Tree, edits: Mapping[str, SetRunpath]) -> Tree:
    """Return a tree whose files have other run paths, by their sources."""
    files = tuple(
        msgspec.structs.replace(file, elf=edits[file.source].applied_to(file.elf))
        if file.source in edits and file.elf
        else file
        for file in made.files
    )
    return msgspec.structs.replace(made, files=files)
