"""Tests of `rocwheel.environment.run_path_advice`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.environment.known_libraries import AllowedLibraries
from rocwheel.environment.run_path_advice import (
    RunPathEntry,
    advise_run_path,
    assumed_sdk_folders,
    missing_libraries,
    normalized_place,
    places_for_machine,
)
from rocwheel.environment.run_path_choice import LibraryPlaces
from rocwheel.environment.sdk_layout import SdkFolder, sdk_folders
from tests.support.trees import data, library, package, tree

if TYPE_CHECKING:
    from rocwheel.binary.elf.facts import Elf
    from rocwheel.environment.run_path_entries import CpuLevel


def sdk_folders_of(distribution: str) -> list[SdkFolder]:
    """Return the folders of one package of the SDK."""
    return [folder for folder in sdk_folders() if folder.distribution == distribution]


def test_sdk_packages_that_are_not_at_hand_are_assumed_to_be_installed() -> None:
    given = tree((package("rocm-sdk-core"), []))
    assumed = {folder.distribution for folder in assumed_sdk_folders(given)}
    assert assumed == {folder.distribution for folder in sdk_folders()} - {"rocm-sdk-core"}


def test_no_sdk_package_is_assumed_where_nothing_more_is_installed() -> None:
    assert assumed_sdk_folders(tree((package(), [])), closed=True) == ()


def test_folders_come_from_packages_at_hand_and_from_the_sdk_layout() -> None:
    own = tree((package(), [library("demo/lib/libown.so.1")]))
    folders = places_for_machine(own, sdk_folders_of("rocm-sdk-libraries"), 62).providers
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
    assert places_for_machine(own, [], 62, cpu_level).providers.get("libb.so") == folders


def test_libraries_for_other_machines_are_led_to_by_nobody() -> None:
    files = [
        library("demo/arm/liba.so", machine=183),
        library("demo/z/liba.so"),
        library("demo/arm/libb.so", machine=183),
    ]
    own = tree((package(), files))
    assert places_for_machine(own, [], 62).providers == {"liba.so": ("demo/z",)}
    assert places_for_machine(own, [], 183).providers == {"liba.so": ("demo/arm",), "libb.so": ("demo/arm",)}


def test_every_folder_of_the_packages_is_known() -> None:
    own = tree((package(), [data("demo/plugins/first.plugin")]))
    assert places_for_machine(own, sdk_folders_of("rocm-sdk-core"), 62).folders >= {
        "demo/plugins",
        "_rocm_sdk_core/lib",
    }


def test_what_neither_packages_nor_the_system_have_is_missing() -> None:
    elf = library("x.so", "liba.so", "libc.so.6", "libnowhere.so").elf
    assert elf is not None
    places = LibraryPlaces({"liba.so": ("demo",)}, frozenset({"demo"}))
    found = missing_libraries(elf, ["libopened.so"], places, AllowedLibraries(["libc.so.6"]))
    assert found == ("libnowhere.so", "libopened.so")


SYSTEM = AllowedLibraries(["libc.so.6", "libm.so.6"])
SDK: dict[str, tuple[str, ...]] = {
    "libamdhip64.so.7": ("_rocm_sdk_core/lib",),
    "librocm_sysdeps_drm.so.2": ("_rocm_sdk_core/lib/rocm_sysdeps/lib",),
    "libhipblas.so.3": ("_rocm_sdk_libraries/lib",),
    "libMIOpen.so.1": ("_rocm_sdk_libraries/lib",),
}
PLACES = LibraryPlaces(SDK, frozenset(folder for folders in SDK.values() for folder in folders))


def elf(*needed: str) -> Elf:
    made = library("x.so", *needed).elf
    assert made is not None
    return made


def test_each_folder_is_named_once_and_says_what_it_is_for() -> None:
    needed = elf("libhipblas.so.3", "libamdhip64.so.7", "libMIOpen.so.1", "libc.so.6")
    advice = advise_run_path(needed, "jax_plugins/xla/a.so", PLACES, SYSTEM)
    assert advice.entries == (
        RunPathEntry(
            "$ORIGIN/../../_rocm_sdk_libraries/lib", "_rocm_sdk_libraries/lib", ("libhipblas.so.3", "libMIOpen.so.1")
        ),
        RunPathEntry("$ORIGIN/../../_rocm_sdk_core/lib", "_rocm_sdk_core/lib", ("libamdhip64.so.7",)),
    )
    assert (advice.system, advice.missing) == (("libc.so.6",), ())


def test_what_it_opens_by_name_counts_like_what_it_needs() -> None:
    advice = advise_run_path(elf("libc.so.6"), "demo/a.so", PLACES, SYSTEM, ["librocm_sysdeps_drm.so.2"])
    assert advice.values == ("$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib",)


def test_what_nobody_has_is_missing() -> None:
    assert advise_run_path(elf("libfoo.so.1", "libm.so.6"), "demo/a.so", PLACES, SYSTEM).missing == ("libfoo.so.1",)


def test_its_own_folder_comes_first_where_it_serves_as_well() -> None:
    places = LibraryPlaces({"liba.so": ("other/lib", "demo")}, frozenset({"other/lib", "demo"}))
    assert advise_run_path(elf("liba.so"), "demo/x.so", places, SYSTEM).values == ("$ORIGIN",)


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
        f"--at {text}: is outside site-packages; expected a relative path in site-packages, such as "
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
        f"--at {told}: is ambiguous, because it may be a folder or the file; expected {folder} for a folder, or a path "
        "that ends with a.so or the name of a shared library"
    )


def test_a_program_is_named_as_it_is() -> None:
    assert normalized_place("my_package/bin/tool", "tool") == "my_package/bin/tool"
    with pytest.raises(InputError):
        normalized_place("my_package/bin/tool", "tool-linked")
