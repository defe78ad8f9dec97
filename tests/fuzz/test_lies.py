"""Each harness that compares answers finds a parser that lies: its comparison is reached by its seeds, and can fail."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import trials.fuzz.beside.dll
import trials.fuzz.beside.elf_facts
import trials.fuzz.fat_files
import trials.fuzz.harness
from rocwheel.artifacts.from_prefix import Sign
from rocwheel.artifacts.import_table import TextEdit
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.kpack.markers import Marker
from rocwheel.core.patch import FilePatch
from rocwheel.wheels.file_names import FileName
from tests.fuzz.lies import always, each_replaced, replaced, require_found
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import all_harnesses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NUMBERS = count()


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
    host = trials.fuzz.fat_files.host_of(bytes(data))
    return SimpleNamespace(size=len(host), apply=always([host]))


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


def _edits_that_remove(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda: [TextEdit(msgspec.structs.replace(one.rule, replace="")) for one in real()]


def _other_run_path(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, _value, tag, *, name: real(data, "/other", tag, name=name)


_SPLITTING = {
    "join": ("fat_files.plan_fat_file", always(_unchanged)),
    "split": ("fat_files.read_split_library", always(always(None))),
    "trim": ("fat_files.device_patch", always(_without_bundles)),
}

_LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "elf.facts": ("read_elf", replaced(soname="lie")),
    "elf.traits": ("read_compilers", always(always(("lie",)))),
    "elf.run_path": ("plan_runpath", _other_run_path),
    "elf.moved_words": ("moved_words.are_same_but_moved", always(always(True))),
    "pe.facts": ("read_pe", replaced(sections=())),
    "pe.objects": ("device_targets", always(always(()))),
    "device_code.bundles": ("iter_bundles", each_replaced(size=1 << 40)),
    "device_code.packed_bundle": ("iter_bundles", _with_small_bundles),
    "device_code.any_file": ("device_targets", always(always(()))),
    "device_code.code_object": ("count_kernels", always(always(0))),
    "device_code.metadata": ("read_metadata", always(always(()))),
    "device_code.kpack": ("read_kernel", always(always(b"lie"))),
    "device_code.kpack_table": ("read_kernel", always(always(b"lie"))),
    "device_code.marker": ("encode_markers", _other_marker),
    "device_code.target_id": ("parse_target_id", always(_never_the_same)),
    "device_code.entry_id": ("BundleEntryId", always(SimpleNamespace(parse=_never_the_same))),
    "kernel_files.tables": ("table_processors", always(lambda _, path: (path,))),
    "archives.ar": ("iter_ar_members", each_replaced(offset=0)),
    "archives.deb": ("open_deb", always(_deb)),
    "archives.deb_files": ("open_deb", always(_deb)),
    "archives.artifact": (
        "read_artifact_archive",
        always(always(SimpleNamespace(members=[SimpleNamespace(path="lie")]))),
    ),
    "archives.sdist": ("read_sdist", always(always(defaultdict(lambda: b"lie")))),
    "archives.sdist_metadata": ("read_sdist_file", always(always(b"lie"))),
    "archives.zip": ("iter_member", always(always([b"lie"]))),
    "sdk.archive": ("ensure_expanded", always(_escape)),
    "sdk.packed_archive": ("ensure_expanded", always(_escape)),
    "sdk.dlls": ("read_imports", always(always(["lie.dll"]))),
    "sdk.notes": ("read_manifest", always(always(("1.0", ["../climbs"])))),
    "sdk.gpus": ("read_topology", always(always(([1], [2])))),
    "wheels.record": ("parse_record", always(always(()))),
    "wheels.metadata": ("parse_core_metadata", always(always(({"name": "lie"}, {})))),
    "wheels.entry_points": ("read_entry_points", always(always(["console_scripts: lie"]))),
    "wheels.requirement": ("parse_requirement", always(always(Requirement("lie")))),
    "wheels.file_name": ("parse_file_name", always(always(FileName("lie", Version("0"), "0 sdist")))),
    "wheels.tags": ("parse_platforms", always(always(()))),
    "pages.html": ("read_html_page", replaced(files=())),
    "pages.json": ("read_json_page", replaced(files=())),
    "pages.own": ("parse_project", _yanked_for_another_reason),
    "pages.lock_file": ("LockFile", always(SimpleNamespace(read=always(_LeakyLock())))),
    "pages.rows": ("read_rows", always(always({"rocm": SimpleNamespace(row="another's")}))),
    "pages.times": ("parse_time", always(lambda _: next(_NUMBERS))),
    "texts.manifest": ("format_stages", always(always(b"lie\n"))),
    "texts.dist_info": ("with_declared_targets", always(always(b'{"dist_amdgpu_targets":"gfx906"}'))),
    "texts.artifact_name": ("ArtifactName", always(SimpleNamespace(parse=always("lie")))),
    "texts.checksums": ("parse_checksums", always(always({"a": "lie"}))),
    "texts.debian_relations": ("compare_versions", always(always(1))),
    "texts.cache_entry": ("parse_entry", always(always(SimpleNamespace(data=b"lie")))),
    "texts.part_stamp": ("receive", always(_receive)),
    "texts.size": ("parse_size", always(always(-1))),
    "frameworks.run_path": ("spell_run_path", always(always("lie"))),
    "reports.device": ("read_device_facts", _no_code_at_first),
    "reports.dll": ("read_pe_report", always(always(None))),
    "reports.devel_paths": ("read_archive_paths", always(always(("a//b",)))),
    "reports.about": ("describe", always(always(SimpleNamespace(summary="s" * 999)))),
    "reports.mentions": ("mentioned_in_source", always(always(("lie.so",)))),
    "retargeting.target_note": ("rename_target", always(always([(0, b"\0")]))),
    "retargeting.kernel_file": ("write_kernel_file", always(lambda data, file, *_, **__: file.write(data))),
    "retargeting.table": ("write_kernel_file", always(lambda data, file, *_, **__: file.write(data))),
    "reports.build_manifest": ("render_manifest", _other_manifest),
    "doctor.record": ("read_inside", always(always([]))),
    "doctor.script": ("script_interpreter", always(always("lie"))),
    "doctor.origin": ("_distributions", always(SimpleNamespace(name_origin=always("lie"), find_distribution=0))),
    "edits.metadata": ("set_version", always(always(b"Version: lie\n"))),
    "edits.wheel": ("set_wheel_fields", always(lambda wheel, **_: wheel)),
    "settings.audit": ("find_settings", always(always((AuditSettings(), None)))),
    "settings.documents": ("read_address", always(always("lie"))),
    "settings.previous": ("read_previous", always(always({"hip": {"a/b"}}))),
    "imports.release": ("stated_signs", always(always([Sign("version", "lie")]))),
    "imports.cmake_checks": ("cmake_checked_files", always(always(["lie"]))),
    "imports.text_edits": ("_edits", _edits_that_remove),
    "imports.gpu_field": ("parse_gpu_field", always(always(()))),
    "servers.listing": ("list_pages", always(always([SimpleNamespace(name="lie")]))),
    "servers.root_page": (
        "RootPage",
        always(lambda *_: SimpleNamespace(read=lambda: frozenset("lie"), add=always(0))),
    ),
    "servers.address": ("noted_url", always(always("https://lie/"))),
    **{f"{kind}.{name}": lie for kind in ("elf", "pe") for name, lie in _SPLITTING.items()},
}
"""For each harness a function that it calls, and what makes a liar of that."""


@pytest.mark.parametrize("name", _LIES)
def test_a_wrong_parser_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_found(name, *_LIES[name], monkeypatch)


def test_every_harness_that_compares_answers_is_tested_with_a_wrong_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    beside = (one.name for one in pkgutil.iter_modules(trials.fuzz.beside.__path__))
    names = [
        *(f"beside.{one}" for one in beside),
        *(f"harnesses.{one}" for one in trials.fuzz.harness.MODULES),
        "fat_files",
    ]
    for module in (importlib.import_module(f"trials.fuzz.{one}") for one in names):
        if hasattr(module, "require"):
            monkeypatch.setattr(module, "require", lambda *_: compared.append(True))
    found = []
    for harness in all_harnesses():
        compared.clear()
        for seed in harness.seeds():
            attempt(harness, seed)
        found += [harness.name] if compared else []
    assert sorted(found) == sorted(_LIES)
