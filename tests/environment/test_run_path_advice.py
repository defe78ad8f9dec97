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


def test_sdk_packages_that_are_not_given_are_assumed_to_be_installed() -> None:
    given = tree((package("rocm-sdk-core"), []))
    assumed = {folder.distribution for folder in assumed_sdk_folders(given)}
    assert assumed == {folder.distribution for folder in sdk_folders()} - {"rocm-sdk-core"}


def test_a_closed_environment_assumes_no_sdk_packages() -> None:
    assert assumed_sdk_folders(tree((package(), [])), closed=True) == ()


def test_folders_come_from_given_packages_and_from_the_sdk_layout() -> None:
    own = tree((package(), [library("demo/lib/libown.so.1")]))
    folders = places_for_machine(own, sdk_folders_of("rocm-sdk-libraries"), 62).providers
    assert folders["libown.so.1"] == ("demo/lib",)
    assert folders["libMIOpen.so.1"] == ("_rocm_sdk_libraries/lib",)
    assert "libamdhip64.so.7" not in folders


@pytest.mark.parametrize(
    ("cpu_level", "folders"),
    [("x86-64", None), ("x86-64-v2", ("demo",)), ("x86-64-v4", ("demo",))],
)
def test_a_library_for_newer_processors_is_provided_only_for_those_processors(
    cpu_level: CpuLevel, folders: tuple[str, ...] | None
) -> None:
    own = tree((package(), [library("demo/glibc-hwcaps/x86-64-v2/libb.so")]))
    assert places_for_machine(own, [], 62, cpu_level).providers.get("libb.so") == folders


def test_libraries_for_other_machines_are_never_suggested() -> None:
    files = [
        library("demo/arm/liba.so", machine=183),
        library("demo/z/liba.so"),
        library("demo/arm/libb.so", machine=183),
    ]
    own = tree((package(), files))
    assert places_for_machine(own, [], 62).providers == {"liba.so": ("demo/z",)}
    assert places_for_machine(own, [], 183).providers == {"liba.so": ("demo/arm",), "libb.so": ("demo/arm",)}


def test_all_folders_of_the_packages_are_listed() -> None:
    own = tree((package(), [data("demo/plugins/first.plugin")]))
    assert places_for_machine(own, sdk_folders_of("rocm-sdk-core"), 62).folders >= {
        "demo/plugins",
        "_rocm_sdk_core/lib",
    }


def test_libraries_that_neither_packages_nor_the_system_have_are_missing() -> None:
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


def test_each_folder_is_listed_once_with_the_libraries_it_provides() -> None:
    needed = elf("libhipblas.so.3", "libamdhip64.so.7", "libMIOpen.so.1", "libc.so.6")
    advice = advise_run_path(needed, "jax_plugins/xla/a.so", PLACES, SYSTEM)
    assert advice.entries == (
        RunPathEntry(
            "$ORIGIN/../../_rocm_sdk_libraries/lib", "_rocm_sdk_libraries/lib", ("libhipblas.so.3", "libMIOpen.so.1")
        ),
        RunPathEntry("$ORIGIN/../../_rocm_sdk_core/lib", "_rocm_sdk_core/lib", ("libamdhip64.so.7",)),
    )
    assert (advice.system, advice.missing) == (("libc.so.6",), ())


def test_libraries_opened_by_name_count_like_needed_libraries() -> None:
    advice = advise_run_path(elf("libc.so.6"), "demo/a.so", PLACES, SYSTEM, ["librocm_sysdeps_drm.so.2"])
    assert advice.values == ("$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib",)


def test_a_library_that_no_package_has_is_missing() -> None:
    assert advise_run_path(elf("libfoo.so.1", "libm.so.6"), "demo/a.so", PLACES, SYSTEM).missing == ("libfoo.so.1",)


def test_the_folder_of_the_file_itself_is_preferred_among_equally_good_folders() -> None:
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
def test_a_place_may_omit_site_packages_and_the_file_name(text: str, place: str) -> None:
    assert normalized_place(text, "a.so") == place


@pytest.mark.parametrize("text", ["/usr/lib/a.so", "site-packages/../a.so"])
def test_a_place_outside_site_packages_is_refused(text: str) -> None:
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
def test_a_place_that_may_be_a_folder_or_a_file_is_refused_as_ambiguous(text: str, told: str, folder: str) -> None:
    with pytest.raises(InputError) as error:
        normalized_place(text, "a.so")
    assert str(error.value) == (
        f"--at {told}: is ambiguous, because it may be a folder or the file; expected {folder} for a folder, or a path "
        "that ends with a.so or the name of a shared library"
    )


def test_the_place_of_a_program_ends_with_its_file_name() -> None:
    assert normalized_place("my_package/bin/tool", "tool") == "my_package/bin/tool"
    with pytest.raises(InputError):
        normalized_place("my_package/bin/tool", "tool-linked")
