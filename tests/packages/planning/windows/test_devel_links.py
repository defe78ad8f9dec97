"""The links of a devel tree whose archive has none."""

from __future__ import annotations

import json

from rocwheel.packages.plan import FileMember, TarEntry
from rocwheel.packages.planning.windows.devel_links import part_links, render_links
from tests.packages.trees import file_entry


def file(path: str) -> TarEntry:
    source = file_entry(path).source
    assert source is not None
    return TarEntry(path, 0o644, file=FileMember(path, 0o644, source, "base_dev_generic", path))


def link(path: str, text: str) -> TarEntry:
    return TarEntry(path, 0o777, link=text)


def test_files_stay_in_the_archive_and_links_become_paths_without_dots() -> None:
    entries = [file("_devel/include/a.h"), link("_devel/bin/a.dll", "../../_core/bin/a.dll")]
    files, links = part_links("_devel", entries)
    assert [entry.path for entry in files] == ["_devel/include/a.h"]
    assert links == {"bin/a.dll": "_core/bin/a.dll"}


def test_links_to_links_and_to_files_of_the_tree_lead_to_files() -> None:
    entries = [file("_devel/a"), link("_devel/b", "a"), link("_devel/c", "b"), link("_devel/d/e", "../../_core/e")]
    entries.append(link("_devel/f", "d/e"))
    assert part_links("_devel", entries)[1] == {
        "b": "_devel/a",
        "c": "_devel/a",
        "d/e": "_core/e",
        "f": "_core/e",
    }


def test_a_link_to_a_folder_becomes_its_files() -> None:
    entries = [file("_devel/lib/a.h"), link("_devel/lib/b.dll", "../../_core/b.dll"), link("_devel/lib64", "lib")]
    assert part_links("_devel", entries)[1] == {
        "lib/b.dll": "_core/b.dll",
        "lib64/a.h": "_devel/lib/a.h",
        "lib64/b.dll": "_core/b.dll",
    }


def test_the_manifest_is_json() -> None:
    assert json.loads(render_links({"bin/a.dll": "_core/bin/a.dll"})) == {"links": {"bin/a.dll": "_core/bin/a.dll"}}
