"""Which edits of run paths take nothing away: what libraries inherit, and what they are replaced by."""

from __future__ import annotations

import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.environment.run_paths import SetRunpath
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlanner
from rocwheel.repair.run_paths import safe_edits
from tests.repair.plans import Part, plan, run_paths
from tests.support.trees import data, library, package, tree


def test_a_library_that_inherits_an_rpath_goes_on_finding_what_that_leads_to() -> None:
    first = library("demo/_e.so", "libmid.so", rpath="$ORIGIN/lib:$ORIGIN/../nvidia/cublas/lib:/tmp/me")
    made = plan(first, library("demo/lib/libmid.so", "libcublas.so.12"))
    kept = SetRunpath("$ORIGIN/lib:$ORIGIN/../nvidia/cublas/lib", RunpathTag.RPATH)
    assert (made.edits, made.left) == ({"demo/_e.so": kept}, {})


def test_a_run_path_of_its_own_does_not_cut_a_library_off_from_what_it_inherits() -> None:
    first = library("demo/_e.so", "libmid.so", rpath="/usr/local/cuda/lib64:$ORIGIN/lib:$ORIGIN/other")
    mid = library("demo/lib/libmid.so", "libcublas.so.12", "libq.so")
    made = plan(first, mid, library("demo/other/libq.so"))
    assert "demo/lib/libmid.so" not in made.edits
    assert "libcublas.so.12 in /usr/local/cuda/lib64" in made.left["demo/lib/libmid.so"]


def test_a_library_that_is_found_by_another_spelling_goes_on_finding_what_it_inherits() -> None:
    first = library("demo/lib/_e.so", "libmid.so", rpath="$ORIGIN/..:$ORIGIN/../lib:$ORIGIN")
    made = plan(first, library("demo/lib/libmid.so", "libx.so.1"))
    assert (run_paths(made), made.left) == ({"lib/_e.so": "$ORIGIN/..:$ORIGIN"}, {})


def test_an_rpath_that_libraries_not_at_hand_may_inherit_stays_one() -> None:
    entries = "$ORIGIN:$ORIGIN/../xpkg/lib:$ORIGIN/../ypkg/lib"
    for run_path in (entries, "$ORIGIN:/opt/x/lib:/opt/y/lib"):
        made = plan(library("demo/_e.so", "libx.so", rpath=run_path), requires="xpkg")
        assert (made.edits, made.left) == ({}, {})


def test_a_wrong_rpath_that_libraries_not_at_hand_may_inherit_is_mended_as_one() -> None:
    made = plan(library("demo/_e.so", "libx.so", rpath="/builds/x:$ORIGIN/../xpkg/lib"), requires="xpkg")
    assert made.edits == {"demo/_e.so": SetRunpath("$ORIGIN/../xpkg/lib", RunpathTag.RPATH)}


def test_an_rpath_stays_one_for_what_a_dependency_of_the_wheel_may_load() -> None:
    first = library("demo/_e.so", "libmid.so", rpath="$ORIGIN/lib:$ORIGIN/../other/lib")
    mid = library("demo/lib/libmid.so", "libx.so", rpath="/opt/x/lib")
    beside: list[Part] = [(package("other", is_context=True), [library("other/lib/libq.so")])]
    made = plan(first, mid, beside=beside)
    assert all(edit.tag is RunpathTag.RPATH for edit in made.edits.values())


@pytest.mark.parametrize(
    ("opened", "run_path"),
    [((), "$ORIGIN/../../other"), (("libx.so.1",), "$ORIGIN/lib:$ORIGIN/../../other")],
    ids=["nothing else is looked for", "a library that is nowhere at hand is opened"],
)
def test_a_folder_stays_first_if_its_copy_of_a_library_may_load_what_is_found_nowhere_else(
    opened: tuple[str, ...], run_path: str
) -> None:
    first = library("demo/lib/libc.so", "libb.so", rpath="$ORIGIN")
    user = library("demo/lib/libb.so", "libd.so", rpath="$ORIGIN/lib")
    made = tree((package(), [data("demo/__init__.py", size=9), first, user, library("other/libd.so")]))
    options = RepairOptions(settings=AuditSettings(dlopen={"demo/lib/libc.so": opened}))
    found = RepairPlanner(split_environments(made), options).plan(made.distributions[0])
    assert run_paths(found) == {"lib/libb.so": run_path}


def test_an_entry_through_a_folder_that_does_not_exist_is_not_mended_ahead_of_others() -> None:
    files = [
        library("demo/a.so", "libb.so", runpath="$ORIGIN/nope/../lib:$ORIGIN/lib2"),
        library("demo/lib/libb.so", "libgone.so"),
        library("demo/lib2/libb.so"),
    ]
    assert run_paths(plan(*files)) == {"a.so": "$ORIGIN/lib2"}


def test_a_file_that_replaces_another_must_find_what_it_needs() -> None:
    files = [
        library("demo/a.so", "libb.so", runpath="$ORIGIN/lib2:$ORIGIN/lib"),
        library("demo/lib/libb.so", "libgone.so"),
        library("demo/lib2/libb.so"),
    ]
    made = tree((package(), files))
    settings = AuditSettings()
    source = f"{made.distributions[0].source}!demo/a.so"
    edit = SetRunpath("$ORIGIN/lib:$ORIGIN/lib2", RunpathTag.RUNPATH)
    found = safe_edits(made, {source: (edit,)}, {}, settings)
    assert found.edits == {}
    assert found.left == {source: "demo/lib/libb.so would no longer find libgone.so in a package"}


def test_a_file_that_comes_to_load_what_is_broken_ends_the_edits_of_who_takes_another_copy() -> None:
    made = plan(
        library("demo/_m.so", "a.so", "c.so", rpath="$ORIGIN/w:$ORIGIN/sub"),
        library("demo/sub/a.so", "libx.so"),
        library("demo/sub/c.so", "libx.so.1", runpath="$ORIGIN/../q"),
        library("demo/sub/libx.so"),
        library("demo/w/libx.so", soname="libx.so.1"),
        library("demo/q/libx.so.1", "libgone.so"),
    )
    assert made.edits == {}
    assert made.left == {"demo/sub/a.so": "demo/q/libx.so.1 would no longer find libgone.so in a package"}


OTHER: list[Part] = [
    (package("other", is_context=True), [library("other/lib/libq.so"), data("other/__init__.py", size=9)])
]


@pytest.mark.parametrize("run_path", ["$ORIGIN", "$ORIGIN:/opt/x/lib:$ORIGIN/../xpkg/lib"])
def test_an_rpath_becomes_a_runpath_if_a_user_says_so_whoever_may_inherit_it(run_path: str) -> None:
    file = library("demo/a.so", "libq.so", "libunseen.so", rpath=run_path)
    made = tree((package(requires=("other",)), [file, data("demo/__init__.py", size=0)]), *OTHER)
    tags = []
    for tag in (None, RunpathTag.RUNPATH):
        found = RepairPlanner(split_environments(made), RepairOptions(tag=tag)).plan(made.distributions[0])
        tags += [edit.tag for edit in found.edits.values()]
        assert found.left == {}
    assert tags == [RunpathTag.RPATH, RunpathTag.RUNPATH]


def test_a_user_who_asks_for_runpaths_does_not_lose_what_a_library_at_hand_inherits() -> None:
    files = [
        library("demo/_e.so", "libmid.so", rpath="$ORIGIN/lib:$ORIGIN/other"),
        library("demo/lib/libmid.so", "libq.so"),
        library("demo/other/libq.so"),
    ]
    made = tree((package(), files))
    options = RepairOptions(tag=RunpathTag.RUNPATH)
    found = RepairPlanner(split_environments(made), options).plan(made.distributions[0])
    assert found.edits == {
        "demo/_e.so": SetRunpath("$ORIGIN/lib", RunpathTag.RUNPATH),
        "demo/lib/libmid.so": SetRunpath("$ORIGIN/../other", RunpathTag.RUNPATH),
    }
