"""Names of archive groups and archives, and the paths that lead to them."""

from __future__ import annotations

import pytest

from rocwheel.device.splitting.planning.names import archive_path, name_groups, search_path


def test_a_group_is_named_after_its_library() -> None:
    assert name_groups(["lib/librocsparse.so.0.1"]) == {"lib/librocsparse.so.0.1": "librocsparse.so.0.1"}


def test_names_hold_nothing_that_windows_forbids() -> None:
    assert name_groups(["lib/a:b c?.so"]) == {"lib/a:b c?.so": "a-b-c-.so"}


def test_two_libraries_of_one_name_get_groups_of_their_own() -> None:
    assert name_groups(["a/libx.so", "b/libX.so", "liby.so"]) == {
        "a/libx.so": "libx.so-394a5c07",
        "b/libX.so": "libX.so-aa8abcf0",
        "liby.so": "liby.so",
    }


def test_an_archive_lies_in_the_hidden_folder_below_the_root() -> None:
    assert archive_path("libx.so", "gfx90a") == ".kpack/libx.so_gfx90a.kpack"


@pytest.mark.parametrize(
    ("binary", "path"),
    [
        ("libx.so", ".kpack/libx.so_@GFXARCH@.kpack"),
        ("lib/libx.so", "../.kpack/libx.so_@GFXARCH@.kpack"),
        ("lib/a/b/libx.so", "../../../.kpack/libx.so_@GFXARCH@.kpack"),
    ],
)
def test_a_marker_leads_from_the_folder_of_its_file(binary: str, path: str) -> None:
    assert search_path(binary, "libx.so") == path
