"""Harnesses that compare many fields find a parser that lies about any group of them."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.binary.elf.facts import Filtee
from rocwheel.binary.pe.header import DirectoryEntry
from rocwheel.binary.pe.linkage import Exports, ImportedDll
from tests.fuzz.lies import always, each_replaced, replaced, replaced_in, require_found

if TYPE_CHECKING:
    from collections.abc import Callable


def _without_the_last(real: Callable[..., Any]) -> Callable[..., Any]:
    counts = count()
    return lambda *words, **options: list(real(*words, **options))[: -1 if next(counts) % 2 else None]


_LIES: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "the system that a library is for": ("elf.facts", "glance_platform", always(always(None))),
    "whether sections are the same": ("elf.facts", "moved.is_same_but_moved", always(always(True))),
    "requirements that are promoted": (
        "edits.metadata",
        "VersionChange",
        always(lambda *_: SimpleNamespace(text=always(b"lie"))),
    ),
    "the headers of WHEEL": ("edits.wheel", "wheel_headers", always(always([]))),
    "the name of an unpacked wheel": ("edits.wheel", "unpacked_name", always(always("demo-1.0-py3-none-lie.whl"))),
    "a name that leads elsewhere": ("edits.wheel", "unpacked_name", always(always("a/demo-1.0-py3-none-any.whl"))),
    "a DLL's machine": ("pe.facts", "read_pe", replaced_in("header", machine=0)),
    "a DLL's directories": ("pe.facts", "read_pe", replaced_in("header", directories=(DirectoryEntry(1, 1),))),
    "what a DLL imports": ("pe.facts", "read_pe", replaced(imports=(ImportedDll("lie.dll", ("x",)),))),
    "what a DLL imports later": ("pe.facts", "read_pe", replaced(delay_imports=(ImportedDll("lie.dll", ("x",)),))),
    "what a DLL exports": ("pe.facts", "read_pe", replaced(exports=Exports("api.dll", ("lie",), (), 3))),
    "a DLL's own name": ("pe.facts", "read_pe", replaced_in("exports", dll="lie.dll")),
    "a DLL's version": ("pe.facts", "read_pe", replaced(version=None)),
    "a DLL's debug entries": ("pe.facts", "iter_debug_entries", always(always(()))),
    "whether a library is dynamic": ("elf.facts", "read_elf", replaced(is_dynamic=False)),
    "a library's machine": ("elf.facts", "read_elf", replaced(machine=0)),
    "a library's segments": ("elf.facts", "read_elf", replaced(segments=())),
    "a program's interpreter": ("elf.facts", "read_elf", replaced(interpreter="lie")),
    "a library's build id": ("elf.facts", "read_elf", replaced(build_id="00")),
    "what a library needs": ("elf.facts", "read_elf", replaced(needed=("lie.so",))),
    "what a library filters": ("elf.facts", "read_elf", replaced(filtees=(Filtee("lie.so", is_optional=True),))),
    "a library's older run path": ("elf.facts", "read_elf", replaced(rpath="lie")),
    "a library's run path": ("elf.facts", "read_elf", replaced(runpath="lie")),
    "versions that a library needs": ("elf.facts", "read_elf", replaced(version_needs=())),
    "versions that a library defines": ("elf.facts", "read_elf", replaced(version_definitions=("lie",))),
    "whether a library imports dlopen": ("elf.facts", "read_elf", replaced(imports_dlopen=False)),
    "a library's sections": ("elf.facts", "read_sections", always(always(()))),
    "names of a library's sections": ("elf.facts", "read_sections", each_replaced(name="lie")),
    "a library's stack": ("elf.traits", "read_elf_traits", replaced(has_executable_stack=True)),
    "a library's code": ("elf.traits", "read_elf_traits", replaced(has_writable_code=True)),
    "a library's text relocations": ("elf.traits", "read_elf_traits", replaced(has_text_relocations=True)),
    "what a library exports": ("elf.traits", "read_elf_traits", replaced(exports=frozenset({b"lie"}))),
    "what a library defines": (
        "elf.traits",
        "read_elf_traits",
        replaced_in("linkage", definitions=frozenset({b"lie"})),
    ),
    "what a library refers to": ("elf.traits", "read_elf_traits", replaced_in("linkage", references=())),
    "names in a binary": ("reports.mentions", "mentioned_in_binary", always(always(("lie.so",)))),
    "a note's target": ("retargeting.target_note", "rename_target", always(always([]))),
    "code in a bundle": ("retargeting.kernel_file", "iter_bundles", _without_the_last),
}
"""Of harnesses that compare many fields: for a group of them, the harness, a function, and what makes a liar of it."""


@pytest.mark.parametrize("group", _LIES)
def test_a_parser_that_is_wrong_about_one_group_of_fields_is_found(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_found(*_LIES[group], monkeypatch)
