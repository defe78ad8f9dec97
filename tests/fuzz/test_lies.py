"""Each harness that compares answers finds a parser that lies: its comparison is reached by its seeds, and can fail."""

from __future__ import annotations

import importlib
from collections import defaultdict
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from packaging.requirements import Requirement

import fuzz.beside_pefile
import fuzz.fat_files
import fuzz.harness
from fuzz.attempt import attempt
from fuzz.harness import all_harnesses, find_harness
from rocwheel.binary.kpack.marker import Marker
from rocwheel.binary.pe.exports import Exports
from rocwheel.binary.pe.header import DirectoryEntry
from rocwheel.binary.pe.imports import ImportedDll
from rocwheel.foundation.files.patch import FilePatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

_NUMBERS = count()


def _always(answer: object) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _replaced(**fields: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes a function give its answer with other values in these fields."""
    return lambda real: lambda *words, **options: msgspec.structs.replace(real(*words, **options), **fields)


def _each_replaced(**fields: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def lying(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *words, **options: [msgspec.structs.replace(one, **fields) for one in real(*words, **options)]

    return lying


def _with_header(**fields: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def lying(real: Callable[..., Any]) -> Callable[..., Any]:
        def lie(*words: object, **options: object) -> object:
            found = real(*words, **options)
            return msgspec.structs.replace(found, header=msgspec.structs.replace(found.header, **fields))

        return lie

    return lying


def _with_another_own_name(real: Callable[..., Any]) -> Callable[..., Any]:
    def lie(*words: object, **options: object) -> object:
        found = real(*words, **options)
        return msgspec.structs.replace(
            found, exports=found.exports and msgspec.structs.replace(found.exports, dll="lie.dll")
        )

    return lie


def _never_the_same(_: str) -> object:
    return object()


@contextmanager
def _deb(_: Path) -> Iterator[object]:
    yield SimpleNamespace(members=lambda: [SimpleNamespace(path="../climbs", content=None, size=0)])


def _unchanged(data: memoryview, *_: object, **__: object) -> FilePatch:
    return FilePatch(len(data), ())


def _other_marker(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _: real([Marker("lie", ("x",))])


def _no_code_at_first(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *words, look, **options: real(*words, look=look, **options) if look.deep else None


def _other_manifest(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda manifest: real(msgspec.structs.replace(manifest, rocwheel="lie"))


def _without_bundles(data: memoryview, **_: object) -> object:
    host = fuzz.fat_files.host_of(bytes(data))
    return SimpleNamespace(size=len(host), apply=_always([host]))


def _with_small_bundles(real: Callable[..., Any]) -> Callable[..., Any]:
    def lie(data: memoryview, *, name: str) -> list[object]:
        replace = msgspec.structs.replace
        return [replace(one, compressed=replace(one.compressed, raw_size=0)) for one in real(data, name=name)]

    return lie


def _yanked_for_another_reason(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *words: msgspec.structs.replace(real(*words), yanked={"x": str(next(_NUMBERS))})


class _LeakyLock:
    """A lock file that is written with a password."""

    projects = built = ()

    def unhashed(self) -> None: ...

    def without_users(self) -> _LeakyLock:
        return self

    def noting(self, *_: object) -> _LeakyLock:
        return self

    def render(self) -> bytes:
        return b'"https://user:secret@host"'


def _escape(place: Any) -> None:
    (place.site / "elsewhere").write_bytes(b"")


def _receive(path: Path, *_: object) -> None:
    path.write_bytes(b"other")


def _other_run_path(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, _value, tag, *, name: real(data, "/other", tag, name=name)


_SPLITTING = {
    "join": ("fat_files.plan_fat_file", _always(_unchanged)),
    "split": ("fat_files.read_split_library", _always(_always(None))),
    "trim": ("fat_files.device_patch", _always(_without_bundles)),
}

_LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "elf.facts": ("read_elf", _replaced(soname="lie")),
    "elf.traits": ("read_compilers", _always(_always(("lie",)))),
    "elf.run_path": ("plan_runpath", _other_run_path),
    "pe.facts": ("read_pe", _replaced(sections=())),
    "pe.objects": ("device_targets", _always(_always(()))),
    "device_code.bundles": ("iter_bundles", _each_replaced(size=1 << 40)),
    "device_code.packed_bundle": ("iter_bundles", _with_small_bundles),
    "device_code.any_file": ("device_targets", _always(_always(()))),
    "device_code.code_object": ("count_kernels", _always(_always(0))),
    "device_code.metadata": ("read_metadata", _always(_always(()))),
    "device_code.kpack": ("read_kernel", _always(_always(b"lie"))),
    "device_code.kpack_table": ("read_kernel", _always(_always(b"lie"))),
    "device_code.marker": ("encode_markers", _other_marker),
    "device_code.target_id": ("parse_target_id", _always(_never_the_same)),
    "device_code.entry_id": ("BundleEntryId", _always(SimpleNamespace(parse=_never_the_same))),
    "kernel_files.tables": ("table_processors", _always(lambda _, path: (path,))),
    "archives.ar": ("iter_ar_members", _each_replaced(offset=0)),
    "archives.deb": ("open_deb", _always(_deb)),
    "archives.deb_files": ("open_deb", _always(_deb)),
    "archives.artifact": ("read_archive", _always(_always(SimpleNamespace(members=[SimpleNamespace(path="lie")])))),
    "archives.sdist": ("read_sdist", _always(_always(defaultdict(lambda: b"lie")))),
    "archives.sdist_metadata": ("read_sdist_file", _always(_always(b"lie"))),
    "archives.zip": ("iter_member", _always(_always([b"lie"]))),
    "sdk.archive": ("ensure_expanded", _always(_escape)),
    "sdk.packed_archive": ("ensure_expanded", _always(_escape)),
    "sdk.dlls": ("read_imports", _always(_always(["lie.dll"]))),
    "sdk.notes": ("read_manifest", _always(_always(("1.0", ["../climbs"])))),
    "sdk.gpus": ("read_topology", _always(_always(([1], [2])))),
    "wheels.record": ("parse_record", _always(_always(()))),
    "wheels.metadata": ("parse_core_metadata", _always(_always(({"name": "lie"}, {})))),
    "wheels.entry_points": ("read_entry_points", _always(_always(["console_scripts: lie"]))),
    "wheels.requirement": ("parse_requirement", _always(_always(Requirement("lie")))),
    "wheels.file_name": ("parse_file_name", _always(_always(SimpleNamespace(label="", project="lie", version=0)))),
    "wheels.tags": ("parse_platforms", _always(_always(()))),
    "pages.html": ("read_html_page", _replaced(files=())),
    "pages.json": ("read_json_page", _replaced(files=())),
    "pages.own": ("parse_project", _yanked_for_another_reason),
    "pages.lock_file": ("LockFile", _always(SimpleNamespace(read=_always(_LeakyLock())))),
    "pages.rows": ("read_rows", _always(_always({"rocm": SimpleNamespace(row="another's")}))),
    "pages.times": ("parse_time", _always(lambda _: next(_NUMBERS))),
    "texts.manifest": ("format_manifest", _always(_always(b"lie\n"))),
    "texts.dist_info": ("with_declared_targets", _always(_always(b'{"dist_amdgpu_targets":"gfx906"}'))),
    "texts.artifact_name": ("ArtifactName", _always(SimpleNamespace(parse=_always("lie")))),
    "texts.checksums": ("parse_checksums", _always(_always({"a": "lie"}))),
    "texts.debian_relations": ("compare_versions", _always(_always(1))),
    "texts.cache_entry": ("parse_entry", _always(_always(SimpleNamespace(data=b"lie")))),
    "texts.part_stamp": ("receive", _always(_receive)),
    "texts.size": ("parse_size", _always(_always(-1))),
    "frameworks.run_path": ("spell_run_path", _always(_always("lie"))),
    "reports.device": ("read_device_facts", _no_code_at_first),
    "reports.dll": ("read_pe_report", _always(_always(None))),
    "reports.devel_paths": ("read_archive_paths", _always(_always(("a//b",)))),
    "reports.about": ("describe", _always(_always(SimpleNamespace(summary="s" * 999)))),
    "reports.build_manifest": ("render_manifest", _other_manifest),
    **{f"{kind}.{name}": lie for kind in ("elf", "pe") for name, lie in _SPLITTING.items()},
}
"""For each harness a function that it calls, and what makes a liar of that."""

_LIES_OF_FIELDS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "a DLL's machine": ("pe.facts", "read_pe", _with_header(machine=0)),
    "a DLL's directories": ("pe.facts", "read_pe", _with_header(directories=(DirectoryEntry(1, 1),))),
    "what a DLL imports": ("pe.facts", "read_pe", _replaced(imports=(ImportedDll("lie.dll", ("x",)),))),
    "what a DLL imports later": ("pe.facts", "read_pe", _replaced(delay_imports=(ImportedDll("lie.dll", ("x",)),))),
    "what a DLL exports": ("pe.facts", "read_pe", _replaced(exports=Exports("api.dll", ("lie",), (), 3))),
    "a DLL's own name": ("pe.facts", "read_pe", _with_another_own_name),
    "a DLL's version": ("pe.facts", "read_pe", _replaced(version=None)),
    "a DLL's debug entries": ("pe.facts", "iter_debug_entries", _always(_always(()))),
}
"""Of harnesses that compare many fields: for a group of them, the harness, a function, and what makes a liar of it."""


def _module_of(name: str, function: str) -> tuple[ModuleType, str]:
    if function.startswith("fat_files."):
        return fuzz.fat_files, function.partition(".")[2]
    return importlib.import_module(f"fuzz.harnesses.{name.partition('.')[0]}"), function


@pytest.mark.parametrize("name", _LIES)
def test_a_parser_that_lies_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _require_found(name, *_LIES[name], monkeypatch)


@pytest.mark.parametrize("group", _LIES_OF_FIELDS)
def test_a_parser_that_lies_about_one_group_of_fields_is_found(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _require_found(*_LIES_OF_FIELDS[group], monkeypatch)


def _require_found(name: str, function: str, lie: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    harness = find_harness(name)
    seeds = list(harness.seeds())
    module, function = _module_of(name, function)
    monkeypatch.setattr(module, function, lie(getattr(module, function)))
    faults = [attempt(harness, seed) for seed in seeds]
    assert "wrong answer" in {fault.kind for fault in faults if fault}, faults


def test_every_harness_that_compares_answers_is_lied_to(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    for module in (
        fuzz.fat_files,
        fuzz.beside_pefile,
        *(importlib.import_module(f"fuzz.harnesses.{one}") for one in fuzz.harness.MODULES),
    ):
        if hasattr(module, "require"):
            monkeypatch.setattr(module, "require", lambda *_: compared.append(True))
    found = []
    for harness in all_harnesses():
        compared.clear()
        for seed in harness.seeds():
            attempt(harness, seed)
        found += [harness.name] if compared else []
    assert sorted(found) == sorted(_LIES)
