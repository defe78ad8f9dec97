"""The shortest run path for a file and its libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.foundation.errors import InputError
from rocwheel.linking.hwcaps import searched_folders
from rocwheel.linking.system_libraries import AllowedLibraries
from rocwheel.repair.advice import (
    RunPathEntry,
    advise_run_path,
    choose_folders,
    library_folders,
    normalized_place,
)
from tests.support.trees import library, package, tree

if TYPE_CHECKING:
    from rocwheel.binary.elf.facts import Elf
    from rocwheel.linking.hwcaps import CpuLevel

SYSTEM = AllowedLibraries(["libc.so.6", "libm.so.6"])
SDK = {
    "libamdhip64.so.7": ("_rocm_sdk_core/lib",),
    "librocm_sysdeps_drm.so.2": ("_rocm_sdk_core/lib/rocm_sysdeps/lib",),
    "libhipblas.so.3": ("_rocm_sdk_libraries/lib",),
    "libMIOpen.so.1": ("_rocm_sdk_libraries/lib",),
}


def elf(*needed: str) -> Elf:
    made = library("x.so", *needed).elf
    assert made is not None
    return made


def test_each_folder_is_named_once_and_says_what_it_is_for() -> None:
    needed = elf("libhipblas.so.3", "libamdhip64.so.7", "libMIOpen.so.1", "libc.so.6")
    advice = advise_run_path(needed, "jax_plugins/xla/a.so", SDK, SYSTEM)
    assert advice.entries == (
        RunPathEntry(
            "$ORIGIN/../../_rocm_sdk_libraries/lib", "_rocm_sdk_libraries/lib", ("libhipblas.so.3", "libMIOpen.so.1")
        ),
        RunPathEntry("$ORIGIN/../../_rocm_sdk_core/lib", "_rocm_sdk_core/lib", ("libamdhip64.so.7",)),
    )
    assert (advice.system, advice.missing) == (("libc.so.6",), ())


def test_what_it_opens_by_name_counts_like_what_it_needs() -> None:
    advice = advise_run_path(elf("libc.so.6"), "demo/a.so", SDK, SYSTEM, ["librocm_sysdeps_drm.so.2"])
    assert advice.values == ("$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib",)


def test_what_nobody_has_is_missing() -> None:
    assert advise_run_path(elf("libfoo.so.1", "libm.so.6"), "demo/a.so", SDK, SYSTEM).missing == ("libfoo.so.1",)


def test_its_own_folder_comes_first_where_it_serves_as_well() -> None:
    folders = {"liba.so": ("other/lib", "demo")}
    assert advise_run_path(elf("liba.so"), "demo/x.so", folders, SYSTEM).values == ("$ORIGIN",)


def test_one_folder_that_has_both_is_better_than_two() -> None:
    folders = {"liba.so": ("one", "both"), "libb.so": ("two", "both")}
    assert choose_folders(["liba.so", "libb.so"], folders) == {"both": ("liba.so", "libb.so")}


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_FOLDERS = st.dictionaries(_NAMES, st.lists(st.sampled_from(["p", "q", "r", "s"]), unique=True).map(tuple))


@given(st.lists(_NAMES), _FOLDERS)
def test_every_library_that_a_folder_holds_is_found_and_no_folder_is_idle(
    names: list[str], folders: dict[str, tuple[str, ...]]
) -> None:
    chosen = choose_folders(names, folders)
    found = [name for held in chosen.values() for name in held]
    assert sorted(found) == sorted(name for name in set(names) if folders.get(name))
    assert all(folder in folders[name] for folder, held in chosen.items() for name in held)
    assert all(held for held in chosen.values())


def test_folders_come_from_packages_at_hand_and_from_the_sdk_by_name() -> None:
    own = tree((package(), [library("demo/lib/libown.so.1")]))
    folders = library_folders(own, ["rocm-sdk-libraries"], 62)
    assert folders["libown.so.1"] == ("demo/lib",)
    assert folders["libMIOpen.so.1"] == ("_rocm_sdk_libraries/lib",)
    assert "libamdhip64.so.7" not in folders


@pytest.mark.parametrize(
    ("cpu_level", "folders"),
    [("x86-64", None), ("x86-64-v2", ("demo",)), ("x86-64-v4", ("demo",))],
)
def test_a_library_for_some_processors_alone_counts_for_these(
    cpu_level: CpuLevel, folders: tuple[str, ...] | None
) -> None:
    own = tree((package(), [library("demo/glibc-hwcaps/x86-64-v2/libb.so")]))
    assert library_folders(own, [], 62, cpu_level).get("libb.so") == folders


def test_run_paths_lead_to_what_serves_every_processor_first() -> None:
    assert searched_folders(["a/glibc-hwcaps/x86-64-v2", "b"], "x86-64-v2") == ("b",)
    assert searched_folders(["glibc-hwcaps/x86-64-v2"], "x86-64-v2") == ("",)
    assert searched_folders(["a/glibc-hwcaps/x86-64-v3"], "x86-64-v2") == ()


def test_libraries_for_other_machines_are_led_to_by_nobody() -> None:
    files = [
        library("demo/arm/liba.so", machine=183),
        library("demo/z/liba.so"),
        library("demo/arm/libb.so", machine=183),
    ]
    own = tree((package(), files))
    assert library_folders(own, [], 62) == {"liba.so": ("demo/z",)}
    assert library_folders(own, [], 183) == {"liba.so": ("demo/arm",), "libb.so": ("demo/arm",)}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("site-packages/demo/_ext.so", "demo/_ext.so"),
        ("demo/_ext.so", "demo/_ext.so"),
        ("site-packages/demo/", "demo/a.so"),
        ("site-packages", "a.so"),
        ("demo/_ext.cpython-311-x86_64-linux-gnu.so", "demo/_ext.cpython-311-x86_64-linux-gnu.so"),
        ("demo/libx.so.1.2", "demo/libx.so.1.2"),
    ],
)
def test_a_place_may_leave_out_what_goes_without_saying(text: str, place: str) -> None:
    assert normalized_place(text, "a.so") == place


@pytest.mark.parametrize("text", ["/usr/lib/a.so", "site-packages/../a.so"])
def test_a_place_outside_of_site_packages_is_refused(text: str) -> None:
    with pytest.raises(InputError) as error:
        normalized_place(text, "a.so")
    assert str(error.value) == (
        f"--at {text}: outside of site-packages; expected a path below site-packages, such as "
        "site-packages/my_package/_ext.so"
    )


@pytest.mark.parametrize(
    ("text", "told", "folder"),
    [
        ("site-packages/my_package", "site-packages/my_package", "site-packages/my_package/"),
        ("my_package", "my_package", "my_package/"),
        ("my_package/.", "my_package/.", "my_package/./"),
        ("", "''", "site-packages/"),
    ],
)
def test_a_place_that_may_be_a_folder_is_not_taken_for_the_files_name(text: str, told: str, folder: str) -> None:
    with pytest.raises(InputError) as error:
        normalized_place(text, "a.so")
    assert str(error.value) == (
        f"--at {told}: a folder, or the file's name there; expected {folder} for a folder, or a path that ends with "
        "a.so or the name of a shared library"
    )


def test_a_program_is_named_as_it_is() -> None:
    assert normalized_place("my_package/bin/tool", "tool") == "my_package/bin/tool"
    with pytest.raises(InputError):
        normalized_place("my_package/bin/tool", "tool-linked")
