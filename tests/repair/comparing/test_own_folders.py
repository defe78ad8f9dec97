"""Folders that one distribution has for itself, so that they hold nothing but what is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.environment.loader import SITE
from rocwheel.repair.comparison import has_nothing_to_open, is_own_folder
from tests.support.trees import data, library, package, tree

if TYPE_CHECKING:
    from rocwheel.environment.tree import Distribution, InstalledFile

MODULE = data("demo/__init__.py", size=9)
MORE = (package("more", is_context=True), [data("demo/more.py")])


def subject(*files: InstalledFile, beside: tuple[tuple[Distribution, list[InstalledFile]], ...] = ()) -> Subject:
    return Subject(tree((package(), [*files]), *beside), AuditSettings())


@pytest.mark.parametrize("folder", ["demo", "demo/lib", "demo/lib/deep", "demo.libs"])
def test_folders_of_a_package_and_of_auditwheel_are_of_one_distribution(folder: str) -> None:
    files = (MODULE, library("demo/lib/deep/a.so"), library("demo.libs/b.so"))
    assert is_own_folder(subject(*files), f"{SITE}/{folder}")


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        ((data("demo/__init__.py", size=0), library("demo/a.so")), f"{SITE}/demo"),
        ((library("nvidia/cu13/lib/a.so"),), f"{SITE}/nvidia/cu13/lib"),
        ((library("other.libs/a.so"),), f"{SITE}/other.libs"),
        ((MODULE, library("demo/a.so")), f"{SITE}/demo/gone"),
        ((data("__init__.py", size=9), library("a.so")), SITE),
        ((MODULE, library("demo/a.so")), "/environment/lib"),
        ((MODULE, library("demo/a.so")), "/opt/demo"),
    ],
    ids=[
        "an empty module",
        "no module",
        "named for another",
        "absent",
        "the top",
        "around site-packages",
        "the host's",
    ],
)
def test_other_folders_may_have_more(files: tuple[InstalledFile, ...], folder: str) -> None:
    assert not is_own_folder(subject(*files), folder)


def test_a_folder_to_which_two_distributions_add_may_have_more() -> None:
    assert not is_own_folder(subject(MODULE, library("demo/a.so"), beside=(MORE,)), f"{SITE}/demo")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (data("demo/x.py"), True),
        (library("demo/_b.so", exports=("PyInit__b",)), True),
        (library("demo/libplugin.so"), False),
        (library("demo/first.plugin"), False),
    ],
    ids=["no binary", "a module of Python", "a library", "a plugin"],
)
def test_libraries_but_for_modules_may_be_opened_by_name(file: InstalledFile, expected: bool) -> None:
    opener = library("demo/libopener.so", imports_dlopen=True)
    assert has_nothing_to_open(subject(MODULE, opener, file), f"{SITE}/demo", opener.path) is expected


def test_a_folder_that_may_have_more_may_have_something_to_open() -> None:
    opener = library("demo/libopener.so", imports_dlopen=True)
    assert not has_nothing_to_open(subject(opener), f"{SITE}/demo", opener.path)
