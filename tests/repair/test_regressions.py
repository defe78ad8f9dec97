"""Tests of `rocwheel.repair.regressions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.repair.regressions import Found, Regression, find_regressions, has_nothing_to_open, is_own_folder
from tests.repair.plans import SDK, plan
from tests.support.trees import data, library, package, tree, with_run_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rocwheel.environment.tree import Distribution, InstalledFile, Tree


MODULE = data("demo/__init__.py", size=9)
MORE = (package("more", is_context=True), [data("demo/more.py")])


def subject(*files: InstalledFile, beside: tuple[tuple[Distribution, list[InstalledFile]], ...] = ()) -> Subject:
    return Subject(tree((package(), [*files]), *beside), AuditSettings())


@pytest.mark.parametrize("folder", ["demo", "demo/lib", "demo/lib/deep", "demo.libs"])
def test_folders_of_a_package_and_of_auditwheel_belong_to_one_distribution(folder: str) -> None:
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
def test_other_folders_may_have_more_files(files: tuple[InstalledFile, ...], folder: str) -> None:
    assert not is_own_folder(subject(*files), folder)


def test_a_folder_shared_by_two_distributions_may_have_more_files() -> None:
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
def test_libraries_other_than_modules_may_be_opened_by_name(file: InstalledFile, expected: bool) -> None:
    opener = library("demo/libopener.so", imports_dlopen=True)
    assert has_nothing_to_open(subject(MODULE, opener, file), f"{SITE}/demo", opener.path) is expected


def test_a_folder_that_may_have_more_files_may_have_something_to_open() -> None:
    opener = library("demo/libopener.so", imports_dlopen=True)
    assert not has_nothing_to_open(subject(opener), f"{SITE}/demo", opener.path)


def test_the_libraries_that_each_file_finds_are_listed() -> None:
    needed = ("libq.so", "libamdhip64.so.7", "libc.so.6", "libx.so.1", "liby.so.1")
    file = library("demo/a.so", *needed, runpath="/opt/x:$ORIGIN/../x/lib")
    made = plan(file, library("demo/b.so", "liby.so.1"), library("demo/lib/libq.so"), beside=SDK)
    folders = "/opt/x:x/lib"
    assert made.finds["demo/a.so"] == (
        Found("libq.so", "wheel", "demo/lib"),
        Found("libamdhip64.so.7", "package", "rocm-sdk-core"),
        Found("libc.so.6", "system"),
        Found("libx.so.1", "kept", folders),
        Found("liby.so.1", "kept", folders),
    )
    assert made.finds["demo/b.so"] == (Found("liby.so.1", "nothing"),)


def test_kept_folders_around_site_packages_are_listed_as_in_the_run_path() -> None:
    entries = "$ORIGIN/../../../../lib:$ORIGIN/../../../$LIB:$ORIGIN/$LIB:$ORIGIN/../x/lib:/opt/x/:/opt/$PLATFORM"
    made = plan(library("demo/a.so", "libx.so.1", runpath=entries))
    places = "$ORIGIN/../../../../lib:$ORIGIN/../../../$LIB:$ORIGIN/$LIB:x/lib:/opt/x/:/opt/$PLATFORM"
    assert made.finds["demo/a.so"] == (Found("libx.so.1", "kept", places),)


LOSSES_SDK = (
    package("rocm-sdk-core", version="7.1.2", is_context=True),
    [library("_rocm_sdk_core/lib/libamdhip64.so.7")],
)


def regressions(
    before: Tree,
    *,
    sure: Callable[[str], set[str]] = lambda name: {name},
    opened: Mapping[str, tuple[str, ...]] | None = None,
    **edits: SetRunpath,
) -> list[Regression]:
    owner = before.distributions[0]
    changed = {f"{owner.source}!demo/{name}.so": edit for name, edit in edits.items()}
    after = with_run_paths(before, changed)
    settings_ = AuditSettings(dlopen=dict(opened or {}))
    found = find_regressions(
        Subject(before, settings_), Subject(after, settings_), changed, {owner.source: sure(owner.name)}
    )
    return list(found)


RUNPATH = RunpathTag.RUNPATH


def test_removing_a_folder_that_may_have_the_library_is_a_regression() -> None:
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath="/opt/x/:$ORIGIN")]))
    blamed = (f"{package().source}!demo/a.so",)
    assert regressions(made, a=SetRunpath("$ORIGIN", RUNPATH)) == [
        Regression("demo/a.so", "libx.so.1", ("/opt/x/",), blamed)
    ]
    assert regressions(made, a=SetRunpath("/opt/x", RUNPATH)) == [
        Regression("demo/a.so", "libx.so.1", ("demo",), blamed),
    ]
    assert regressions(made, a=SetRunpath("$ORIGIN/../demo:/opt/x", RUNPATH)) == []


def test_a_package_that_is_not_required_cannot_replace_a_library() -> None:
    other = (package("other", is_context=True), [library("other/libx.so.1")])
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath="/opt/x")]), other)
    edit = SetRunpath("$ORIGIN/../other", RUNPATH)
    assert [regression.folders for regression in regressions(made, a=edit)] == [("/opt/x",)]
    assert regressions(made, a=edit, sure=lambda name: {name, "other"}) == []


def test_a_file_that_opens_libraries_by_name_may_find_them_in_any_folder() -> None:
    made = tree((package(), [library("demo/a.so", runpath="/opt/x:/tmp/me", imports_dlopen=True)]))
    (regression,) = regressions(made, a=SetRunpath("", RUNPATH))
    assert regression.words == "demo/a.so would no longer find the libraries that it opens by name in /opt/x"


def test_a_folder_around_site_packages_is_reported_as_in_the_run_path() -> None:
    entries = "$ORIGIN/../../../../lib:$ORIGIN/../../../$LIB:$ORIGIN/../x/lib"
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath=entries)]))
    (regression,) = regressions(made, a=SetRunpath("", RUNPATH))
    places = "$ORIGIN/../../../../lib, $ORIGIN/../../../$LIB, x/lib"
    assert regression.words == f"demo/a.so would no longer find libx.so.1 in {places}"


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ("/opt/glibc-hwcaps/", "/opt/glibc-hwcaps", ()),
        ("/opt/glibc-hwcaps", "/opt/glibc-hwcaps/", ()),
        ("$ORIGIN/glibc-hwcaps/", "$ORIGIN/glibc-hwcaps", ()),
        ("/opt/glibc-hwcaps/", "/opt", ("/opt/glibc-hwcaps/",)),
        ("/opt/glibc-hwcaps/:/opt", "/opt", ("/opt/glibc-hwcaps/",)),
    ],
)
def test_a_folder_named_like_one_for_newer_processors_counts_as_a_separate_folder(
    before: str, after: str, lost: tuple[str, ...]
) -> None:
    made = tree((package(), [library("demo/a.so", "libx.so.1", runpath=before)]))
    found = regressions(made, a=SetRunpath(after, RUNPATH))
    assert [folder for regression in found for folder in regression.folders] == [*lost]


REPLACED = [
    library("demo/sub/libx.so"),
    library("demo/w/libx.so", soname="libx.so.1"),
    library("demo/q/libx.so.1", "libgone.so"),
]
"""Two files of one name; as the second one has another SONAME, what is loaded after it needs no third."""


def test_a_newly_loaded_file_that_finds_less_is_blamed_on_the_file_that_loads_the_other_copy() -> None:
    first = library("demo/m.so", "a.so", "c.so", runpath="$ORIGIN:$ORIGIN/sub")
    opener = library("demo/a.so", "libx.so", runpath="$ORIGIN/w:$ORIGIN/sub")
    other = library("demo/sub/c.so", "libx.so.1", runpath="$ORIGIN/../q")
    made = tree((package(), [first, opener, other, *REPLACED]))
    found = regressions(
        made, a=SetRunpath("$ORIGIN/sub:$ORIGIN/w", RUNPATH), m=SetRunpath("$ORIGIN/sub:$ORIGIN", RUNPATH)
    )
    assert found == [Regression("demo/q/libx.so.1", "libgone.so", (), (f"{package().source}!demo/a.so",))]


@pytest.mark.parametrize(
    "first", ["demo/_a.so", "demo/z.so"], ids=["loaded by an earlier file", "loaded by a later one"]
)
def test_a_library_that_settings_say_a_file_opens_is_compared_for_every_loader(first: str) -> None:
    file = library("demo/x.so", runpath="/opt/v/lib:$ORIGIN")
    made = tree((package(), sorted([library(first, "x.so", runpath="$ORIGIN"), file], key=lambda held: held.path)))
    edit, blamed = SetRunpath("$ORIGIN", RUNPATH), (f"{package().source}!demo/x.so",)
    found = regressions(made, opened={"demo/x.so": ("libv.so",)}, x=edit)
    assert found == [Regression("demo/x.so", "libv.so", ("/opt/v/lib",), blamed)]


def test_a_library_that_settings_say_a_dependency_opens_is_found_by_its_inherited_rpath() -> None:
    files = [library("demo/a.so", "libx.so", rpath="$ORIGIN/lib:/opt/v/lib"), library("demo/lib/libx.so")]
    found = regressions(
        tree((package(), files)),
        opened={"demo/lib/libx.so": ("libv.so",)},
        a=SetRunpath("$ORIGIN/lib", RunpathTag.RPATH),
    )
    blamed = (f"{package().source}!demo/a.so",)
    assert found == [Regression("demo/lib/libx.so", "libv.so", ("/opt/v/lib",), blamed)]


@pytest.mark.parametrize(
    ("copy", "requires", "another"),
    [
        (library("demo/w/libx.so", soname="libx.so.1"), "libx.so.1", []),
        (library("demo/w/libx.so", "libq.so.1", runpath="$ORIGIN/../q"), "libq.so.1", [library("demo/q/libq.so.1")]),
    ],
    ids=["by the SONAME of the other copy", "since the other copy loaded it"],
)
def test_a_library_found_because_it_was_loaded_is_lost_with_the_copy_that_loaded_it(
    copy: InstalledFile, requires: str, another: list[InstalledFile]
) -> None:
    files = [
        library("demo/a.so", "libx.so", "c.so", runpath="$ORIGIN/w:$ORIGIN/sub"),
        library("demo/sub/c.so", requires, runpath="$ORIGIN"),
        library("demo/sub/libx.so"),
    ]
    found = regressions(tree((package(), [*files, copy, *another])), a=SetRunpath("$ORIGIN/sub:$ORIGIN/w", RUNPATH))
    assert found == [Regression("demo/sub/c.so", requires, (), (f"{package().source}!demo/a.so",))]


def libraries_that_lack_one(*first: str) -> Tree:
    """Describe a file that takes a library from ``w``, which may find ``libq.so`` in a folder of its own."""
    files = [
        library("demo/a.so", *first, runpath="$ORIGIN/w:$ORIGIN/sub"),
        library("demo/sub/c.so", "libq.so", runpath="$ORIGIN:/opt/c"),
        library("demo/sub/libx.so"),
        library("demo/w/libx.so", "libq.so", runpath="/opt/q"),
    ]
    return tree((package(), files))


def test_a_library_that_another_copy_may_load_from_a_machine_is_lost_with_that_copy() -> None:
    edit = SetRunpath("$ORIGIN/sub:$ORIGIN/w", RUNPATH)
    (regression,) = regressions(libraries_that_lack_one("libx.so", "c.so"), a=edit)
    assert regression == Regression("demo/sub/c.so", "libq.so", ("/opt/q",), (f"{package().source}!demo/a.so",))
    assert regression.words == "demo/sub/c.so would no longer find libq.so in /opt/q"


def test_a_library_that_another_copy_may_load_only_later_is_not_lost_with_that_copy() -> None:
    edit = SetRunpath("$ORIGIN/sub:$ORIGIN/w", RUNPATH)
    assert regressions(libraries_that_lack_one("c.so", "libx.so"), a=edit) == []


def test_a_library_that_only_a_machine_copy_may_have_loaded_is_lost_with_that_copy() -> None:
    opener = library("demo/c.so", "b.so", rpath="$ORIGIN")
    user = library("demo/b.so", "libd.so", rpath="$ORIGIN/lib")
    made = tree((package(), [data("demo/__init__.py", size=9), opener, user, library("other/libd.so")]))
    opened = {"demo/c.so": ("libamdhip64.so.6",)}
    blamed = (f"{package().source}!demo/b.so",)
    (regression,) = regressions(made, opened=opened, b=SetRunpath("$ORIGIN/../other", RunpathTag.RPATH))
    assert regression == Regression("demo/c.so", "libamdhip64.so.6", ("demo/lib",), blamed, brought_by="libd.so")
    assert regression.words == (
        "demo/c.so would no longer find libamdhip64.so.6, which the libd.so in demo/lib may have loaded"
    )
    assert regressions(made, opened=opened, b=SetRunpath("$ORIGIN/lib:$ORIGIN/../other", RunpathTag.RPATH)) == []
    assert regressions(made, b=SetRunpath("$ORIGIN/../other", RunpathTag.RPATH)) == []


def test_a_machine_copy_that_inherits_no_rpath_has_loaded_nothing() -> None:
    opener = library("demo/c.so", "b.so", runpath="$ORIGIN")
    user = library("demo/b.so", "libd.so", runpath="$ORIGIN/lib")
    made = tree((package(), [opener, user, library("other/libd.so")]))
    edit = SetRunpath("$ORIGIN/../other", RUNPATH)
    assert regressions(made, opened={"demo/c.so": ("libamdhip64.so.6",)}, b=edit) == []


def test_a_library_loaded_by_a_machine_copy_is_not_lost_if_its_user_searches_there_too() -> None:
    user = library("demo/b.so", "libd.so", rpath="$ORIGIN/lib")
    made = tree((package(), [user, library("other/libd.so")]))
    edit = SetRunpath("$ORIGIN/../other:$ORIGIN/lib", RunpathTag.RPATH)
    assert regressions(made, opened={"demo/b.so": ("libx.so.1",)}, b=edit) == []


def test_the_library_of_a_machine_toolkit_loads_no_more_than_the_sdk_copy() -> None:
    first = library("demo/a.so", "libamdhip64.so.7", rpath="/opt/rocm/lib")
    made = tree((package(requires=("rocm-sdk-core",)), [first]), LOSSES_SDK)
    edit = SetRunpath("$ORIGIN/../_rocm_sdk_core/lib", RunpathTag.RPATH)
    found = regressions(
        made, sure=lambda name: {name, "rocm-sdk-core"}, opened={"demo/a.so": ("libplugin.so",)}, a=edit
    )
    assert [regression for regression in found if regression.brought_by] == []


def test_libraries_loaded_by_a_machine_copy_do_not_matter_for_needed_libraries() -> None:
    files = [library("demo/c.so", "b.so", "libtorch.so", rpath="$ORIGIN"), library("other/libd.so")]
    made = tree((package(), [*files, library("demo/b.so", "libd.so", rpath="$ORIGIN/lib")]))
    assert regressions(made, b=SetRunpath("$ORIGIN/../other:$ORIGIN", RunpathTag.RPATH)) == []


OTHER = (package("other", is_context=True), [library("other/lib/libq.so"), data("other/__init__.py", size=9)])


def inherited(made: Tree, path: str) -> list[str]:
    """Return the names of what no longer inherits the RPATH of a file once that is a RUNPATH."""
    owner = made.distributions[0]
    edits = {f"{owner.source}!{path}": SetRunpath("$ORIGIN:$ORIGIN/../other/lib", RUNPATH)}
    subjects = (Subject(made, AuditSettings()), Subject(with_run_paths(made, edits), AuditSettings()))
    return [regression.name for regression in find_regressions(*subjects, edits, {owner.source: {owner.name, "other"}})]


@pytest.mark.parametrize(
    ("folder", "module", "lost"),
    [
        ("demo", data("demo/__init__.py", size=9), []),
        ("demo.libs", data("demo/x.py"), []),
        ("demo", data("demo/__init__.py", size=0), ["libunseen.so"]),
        ("demo", data("demo/x.py"), ["libunseen.so"]),
        ("more.libs", data("demo/x.py"), ["libunseen.so"]),
    ],
    ids=["in a package", "of auditwheel", "in a package that may be shared", "in no package", "named for another"],
)
def test_a_missing_library_inherits_an_rpath_only_if_its_folder_may_have_more_files(
    folder: str, module: InstalledFile, lost: list[str]
) -> None:
    file = library(f"{folder}/a.so", "libunseen.so", rpath="$ORIGIN")
    assert inherited(tree((package(), [file, module]), OTHER), f"{folder}/a.so") == lost


@pytest.mark.parametrize(
    ("beside", "lost"),
    [
        ([], []),
        ([library("demo/_b.so", exports=("PyInit__b",))], []),
        ([library("demo/libplugin.so")], [""]),
    ],
    ids=["nothing", "a module of Python", "a library"],
)
def test_a_dependency_loses_an_inherited_wheel_folder_only_if_it_may_open_a_library_there(
    beside: list[InstalledFile], lost: list[str]
) -> None:
    files = [
        library("demo/_a.so", "libgomp.so", rpath="$ORIGIN:$ORIGIN/../demo.libs", exports=("PyInit__a",)),
        library("demo.libs/libgomp.so", imports_dlopen=True),
        data("demo/__init__.py", size=9),
    ]
    owner = package()
    made = tree((owner, [*files, *beside]))
    edits = {f"{owner.source}!demo/_a.so": SetRunpath("$ORIGIN/../demo.libs", RUNPATH)}
    subjects = (Subject(made, AuditSettings()), Subject(with_run_paths(made, edits), AuditSettings()))
    assert [regression.name for regression in find_regressions(*subjects, edits, {owner.source: {owner.name}})] == lost
