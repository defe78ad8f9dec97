"""Where the libraries of packages are, and which ones nobody has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.environment.known_libraries import AllowedLibraries
from rocwheel.environment.run_path_advice import assumed_sdk_folders, missing_libraries, places_for_machine
from rocwheel.environment.run_paths import LibraryPlaces
from rocwheel.environment.sdk_layout import SdkFolder, sdk_folders
from tests.support.trees import data, library, package, tree

if TYPE_CHECKING:
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
