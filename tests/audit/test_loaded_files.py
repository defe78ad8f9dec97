"""Which files of packages some process loads."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.audit.loaded_files import loaded_paths
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.environment.tree import InstalledFile
from tests.support.breaches import one
from tests.support.trees import data, library, package, program, tree

MODULE = library("demo/a.so", "libb.so", runpath="$ORIGIN", exports=("PyInit_a",))
B, C = library("demo/libb.so"), library("demo/libc1.so.1")


def loaded(*files: object, owner: object = None, **settings: object) -> set[str]:
    audited = one(*files, owner=owner)  # type: ignore[arg-type]
    return set(loaded_paths(Subject(audited, AuditSettings(**settings))))  # type: ignore[arg-type]


def test_an_extension_module_and_its_dependencies_are_loaded() -> None:
    assert loaded(MODULE, B, C) == {"demo/a.so", "demo/libb.so"}


def test_a_program_is_loaded() -> None:
    assert loaded(program("demo/bin/run"), C) == {"demo/bin/run"}


@pytest.mark.parametrize("mention", ["libc1.so.1", "libc1.so", "libc1"])
def test_a_library_named_in_a_source_file_is_loaded(mention: str) -> None:
    source = data("demo/__init__.py", mentions=frozenset([mention]))
    assert loaded(MODULE, B, C, source) == {"demo/a.so", "demo/libb.so", "demo/libc1.so.1"}


def test_a_library_named_in_a_loaded_library_is_loaded() -> None:
    namer = msgspec.structs.replace(B, mentions=frozenset(["libc1.so.1"]))
    assert "demo/libc1.so.1" in loaded(MODULE, namer, C)


def test_a_library_named_only_in_an_unloaded_library_is_not_loaded() -> None:
    namer = library("demo/plugin.so", mentions=frozenset(["libc1.so.1", "plugin.so"]))
    assert loaded(MODULE, B, C, namer) == {"demo/a.so", "demo/libb.so"}


def test_a_library_declared_as_opened_in_the_settings_is_loaded() -> None:
    assert "demo/libc1.so.1" in loaded(MODULE, B, C, dlopen={"demo/a.so": ("libc1.so.1",)})


def test_all_libraries_of_a_library_package_count_as_loaded() -> None:
    assert loaded(B, C) == {"demo/libb.so", "demo/libc1.so.1"}


def test_each_file_of_a_package_is_checked_for_an_entry_point_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def has_init_function(file: InstalledFile) -> bool:
        asked.append(file.path)
        return False

    monkeypatch.setattr(InstalledFile, "has_init_function", property(has_init_function))
    copies = [library(f"demo/lib{number}.so") for number in range(40)]
    assert loaded(*copies) == {file.path for file in copies}
    assert max(map(asked.count, asked)) <= 2


def test_sdk_libraries_count_as_loaded() -> None:
    owner = package("rocm-sdk-core")
    assert "demo/libc1.so.1" in loaded(program("demo/bin/run"), C, owner=owner)


def test_libraries_in_a_prefix_count_as_loaded() -> None:
    audited = msgspec.structs.replace(tree((package(), [MODULE, C])), is_prefix=True)
    assert "demo/libc1.so.1" in loaded_paths(Subject(audited, AuditSettings()))
