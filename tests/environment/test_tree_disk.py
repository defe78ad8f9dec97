"""Tests of `rocwheel.environment.loader`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.environment.installed_paths import SITE, InstalledLayout
from rocwheel.environment.loader import Library, TreeDisk
from rocwheel.environment.read_tree import read_environments, read_tree
from rocwheel.environment.run_path_advice import places_for_machine
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.reality import LOADER, list_libraries
from tests.support.trees import data, find, library, package, tree

pytestmark = [needs_compiler, pytest.mark.skipif(not LOADER.exists(), reason="needs glibc's loader")]


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """Return a prefix with versioned libraries, links by SONAME, absolute links, linked folders and links out of it."""
    outside = build_tree(tmp_path / "outside", Lib("libout.so.1.0", soname="libout.so.1"))
    root = build_tree(
        tmp_path / "prefix",
        Lib("lib/libx.so.1.2.3", ("liby.so.2",), "$ORIGIN/sub", soname="libx.so.1"),
        Lib("lib/sub/liby.so.2.0", soname="liby.so.2"),
        Lib("lib/libz.so.3.0", ("libout.so.1",), "$ORIGIN", soname="libz.so.3"),
        Lib("lib/libamdhip64.so.7.0.1", soname="libamdhip64.so.7"),
        Lib("bin/tool.so", ("libx.so.1", "libz.so.3"), "$ORIGIN/../lib64"),
        Lib("bin/other.so", ("libamdhip64.so.7",), "$ORIGIN/../lib64"),
        Lib("bin/lost.so", ("libamdhip64.so.7",)),
    )
    for link, target in {
        "lib/libx.so.1": "libx.so.1.2.3",
        "lib/libx.so": "libx.so.1",
        "lib/sub/liby.so.2": "liby.so.2.0",
        "lib/libz.so.3": str(root / "lib/libz.so.3.0"),
        "lib/libout.so.1": str(outside / "libout.so.1.0"),
        "lib/libamdhip64.so.7": "libamdhip64.so.7.0.1",
        "lib64": "lib",
        "lib/nowhere.so": "absent.so",
    }.items():
        (root / link).symlink_to(target)
    return root


def found_by_audit(root: Path) -> dict[str, dict[str, str]]:
    """Return for each file, by its path, name to the path that the audit finds; empty where it finds none."""
    answers = {}
    for process in Subject(read_tree([root]), AuditSettings()).processes:
        objects = process.loader.objects
        answers[process.file.path] = {
            search.name: "" if search.found is None else objects[search.found].library.path.removeprefix(f"{SITE}/")
            for search in process.loader.searches
        }
    return answers


def test_libraries_are_found_through_symlinks_like_the_loader_does(prefix: Path) -> None:
    answers = found_by_audit(prefix)
    assert answers.keys() >= {"bin/tool.so", "bin/other.so", "bin/lost.so", "lib/libx.so.1.2.3"}
    for path, model in answers.items():
        real = list_libraries(prefix / path) or {}
        assert model == {name: found.removeprefix(f"{prefix}/") for name, found in real.items()}
    assert answers["bin/tool.so"]["libout.so.1"] == "bin/../lib64/libout.so.1"


def test_only_the_broken_file_of_a_prefix_has_a_finding(prefix: Path) -> None:
    (finding,) = audit(read_environments([prefix]), AuditSettings(ignore=("missing-build-id",))).findings
    assert (finding.rule, finding.file) == ("unreachable-library", f"{prefix}/bin/lost.so")
    assert finding.found.startswith("needs libamdhip64.so.7, which is in lib, but its run path doesn't lead there")
    assert finding.remedy == "Add $ORIGIN/../lib to its run path when linking, or use rocwheel build to set it."


def test_library_folders_behind_symlinks_are_resolved(prefix: Path) -> None:
    folders = places_for_machine(read_tree([prefix]), (), 62).providers
    assert folders["libx.so.1"] == ("lib",)
    assert folders["libout.so.1"] == ("lib",)
    assert "nowhere.so" not in folders


def test_an_installed_environment_may_contain_symlinks(prefix: Path, tmp_path: Path) -> None:
    site = tmp_path / "env/lib/python3.11/site-packages"
    shutil.copytree(prefix, site / "demo", symlinks=True)
    info = site / "demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n")
    files = [path.relative_to(site) for path in site.rglob("*") if path.is_symlink() or path.is_file()]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    found = audit(read_environments([tmp_path / "env"]), AuditSettings(select=("un*",))).findings
    assert [(finding.rule, Path(finding.file).name) for finding in found] == [("unreachable-library", "lost.so")]


def test_a_symlink_in_a_wheel_is_not_followed() -> None:
    files = [library("demo/a.so", "libx.so.1", runpath="$ORIGIN"), library("demo/libx.so.1.0", soname="libx.so.1")]
    found = find(tree((package(), [*files, data("demo/libx.so.1", link="libx.so.1.0")])))
    assert [finding.rule for finding in found] == ["symlink", "unresolved-library"]


_ELF = found if (found := library("x.so").elf) else pytest.fail("a library has ELF facts")
_PATHS = st.sampled_from(["a", "a/b", "a/b/c", "d", "d/a", "d/a/c", "e.so", "a/e.so", "a/b/e.so", "d/a/e.so"])
_TEXTS = st.sampled_from(["..", "../a", "b", "b/c", "../d/a", "e.so", "../e.so", "/", f"{SITE}/a", "x/../b", "", "."])


@given(
    st.dictionaries(_PATHS, _TEXTS, max_size=5), st.lists(st.tuples(_PATHS, _PATHS | _TEXTS), min_size=1, max_size=8)
)
def test_lookups_do_not_depend_on_earlier_lookups(links: dict[str, str], asked: list[tuple[str, str]]) -> None:
    files = {path: _ELF for path in ("e.so", "a/e.so", "a/b/e.so") if path not in links}
    paths = [f"{SITE}/{folder}/{name}" for folder, name in asked]
    one = TreeDisk(files, links)
    assert [one.find(path, _ELF.machine) for path in paths] == [
        TreeDisk(files, links).find(path, _ELF.machine) for path in paths
    ]


@pytest.mark.parametrize(("links", "found"), [(40, True), (41, False)])
def test_symlinks_of_a_folder_and_a_file_in_it_count_toward_one_limit(links: int, found: bool) -> None:
    """Linux follows 40 links on the way to a file, ``path_resolution(7)``."""
    chain = {f"l{number}": f"l{number + 1}" for number in range(links - 2)} | {f"l{links - 2}": "real"}
    disk = TreeDisk({"real/y.so": _ELF}, chain | {"real/x.so": "y.so"})
    assert disk.find(f"{SITE}/l0/y.so", _ELF.machine)
    assert isinstance(disk.find(f"{SITE}/l0/x.so", _ELF.machine), Library) is found


def test_site_packages_is_entered_only_by_its_known_path() -> None:
    elf = library("x/libx.so").elf
    assert elf is not None
    for site, found in (("lib/python3.11/site-packages", True), ("", False), ("lib/python3.12/site-packages", False)):
        disk = TreeDisk({"x/libx.so": elf, "../../../bin/tool": elf}, {}, layout=InstalledLayout(site))
        path = f"{SITE}/../../../bin/../lib/python3.11/site-packages/x/libx.so"
        assert (disk.find(path, elf.machine) is not None) is found
