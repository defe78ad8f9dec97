"""Tests of `rocwheel.environment.installed_paths`."""

from __future__ import annotations

import pytest

from rocwheel.environment.installed_paths import InstalledLayout
from rocwheel.environment.run_path_entries import resolve_entry


@pytest.mark.parametrize(
    ("site", "folder", "origin", "entry"),
    [
        ("lib/python3.11/site-packages", "x/lib", "../../../bin", "$ORIGIN/../lib/python3.11/site-packages/x/lib"),
        ("lib/python3/dist-packages", "", "../../../bin", "$ORIGIN/../lib/python3/dist-packages"),
        ("", "x/lib", "../../../bin", None),
        ("", "../../../lib", "../../../bin", "$ORIGIN/../lib"),
        ("lib/python3.11/site-packages", "x/lib", "demo", "$ORIGIN/../x/lib"),
    ],
)
def test_run_paths_of_programs_use_the_site_packages_folder_of_their_python(
    site: str, folder: str, origin: str, entry: str | None
) -> None:
    layout = InstalledLayout(site)
    assert layout.spell(folder, origin) == entry
    if entry is not None:
        assert layout.inside(str(resolve_entry(entry, origin))) == folder
