"""Which run paths the files of one wheel get: what stays, what goes, and of which kind they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.settings import Configuration
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.linking.run_path_choice import SetRunpath
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.run_paths import run_path_edits
from tests.support.trees import data, library, package, tree

if TYPE_CHECKING:
    from rocwheel.installed.tree import InstalledFile, Tree

OTHER = (package("other", is_context=True), [library("other/lib/libq.so")])


def edits(made: Tree, settings: Configuration | None = None) -> dict[str, SetRunpath]:
    return run_path_edits(made, made.distributions[0], RepairOptions(settings=settings or Configuration()))


def of_wheel(*files: InstalledFile, requires: tuple[str, ...] = ()) -> dict[str, SetRunpath]:
    return edits(tree((package(requires=requires), list(files)), OTHER))


def test_an_rpath_into_packages_of_other_releases_becomes_a_runpath() -> None:
    file = library("demo/_e.so", "libq.so", rpath="$ORIGIN/../other/lib")
    assert of_wheel(file, requires=("other",)) == {
        "demo/_e.so": SetRunpath("$ORIGIN/../other/lib", RunpathTag.RUNPATH),
    }
    assert of_wheel(file, requires=("other==1.0",)) == {}


def test_entries_into_packages_that_are_not_at_hand_stay_only_in_files_that_may_use_them() -> None:
    entry = "$ORIGIN/../elsewhere/lib"
    files = [
        library("demo/opens.so", runpath=entry, imports_dlopen=True),
        library("demo/lacks.so", "libelsewhere.so", runpath=entry),
        library("demo/whole.so", "libc.so.6", runpath=entry),
    ]
    assert of_wheel(*files, requires=("elsewhere",)) == {"demo/whole.so": SetRunpath("", RunpathTag.RUNPATH)}


def test_where_nothing_more_will_come_the_sdk_is_not_taken_for_granted() -> None:
    made = tree((package(), [library("demo/_e.so", "libamdhip64.so.7")]))
    assert edits(made, Configuration(closed=True)) == {}
    assert edits(made) == {"demo/_e.so": SetRunpath("$ORIGIN/../_rocm_sdk_core/lib", RunpathTag.RUNPATH)}


def test_a_folder_of_plugins_without_known_libraries_stays_in_files_that_open_by_name() -> None:
    opener = library("demo/_e.so", runpath="$ORIGIN/plugins", imports_dlopen=True)
    assert of_wheel(opener, data("demo/plugins/first.plugin")) == {}
    assert of_wheel(opener)["demo/_e.so"].value == ""
