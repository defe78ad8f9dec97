"""Tests of what differs between two sides: every change planted in the second of two versions is found."""

from __future__ import annotations

import shutil
import zipfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from rocwheel.diff.breaking import find_breaks
from rocwheel.diff.changes import Comparison, FieldChange, FileChange, Status
from rocwheel.diff.compare import compare_sides, lost_targets
from rocwheel.diff.sides import open_side
from tests.support.bundles import bundle_of
from tests.support.kpack_files import make_kpack, split_two
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.pe_files import pe_file
from tests.support.places import FIXTURES
from tests.support.sdists import write_sdist
from tests.support.two_versions import PLANTED, TwoVersions, make_two_versions
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError
    from tests.support.tools import RunTool


def compare(old: Path, new: Path) -> Comparison:
    """Return what differs, of sides that can be read."""
    unread: list[RocwheelError] = []
    with ExitStack() as stack:
        sides = [stack.enter_context(open_side(path)) for path in (old, new)]
        comparison = compare_sides(*sides, unread=unread)
    assert unread == []
    return comparison


def rules(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return package, rule and file of each finding."""
    return [(finding.package, finding.rule, finding.file) for finding in find_breaks(comparison)]


def change_of(comparison: Comparison, path: str) -> FileChange:
    [change] = [file for package in comparison.packages for file in package.files if file.path == path]
    return change


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> TwoVersions:
    """Return two versions that differ in all that is planted."""
    return make_two_versions(tmp_path_factory.mktemp("versions"))


@needs_compiler
@pytest.mark.parametrize("rule", PLANTED)
def test_each_planted_change_is_found(rule: str, versions: TwoVersions) -> None:
    findings = find_breaks(compare(*versions))
    assert [(one.file, one.found) for one in findings if one.rule == rule] == PLANTED[rule]


@needs_compiler
def test_only_the_planted_changes_are_found(versions: TwoVersions) -> None:
    assert {finding.rule for finding in find_breaks(compare(*versions))} == set(PLANTED)


@needs_compiler
def test_header_changes_of_a_library_are_listed(versions: TwoVersions) -> None:
    library = change_of(compare(*versions), "demo/lib/libdemo.so.1").library
    assert library is not None
    assert library.fields == (
        FieldChange("NEEDED", ("libz.so.1",), ("libm.so.6",)),
        FieldChange("RUNPATH", ("$ORIGIN",), ("$ORIGIN/../lib64",)),
    )


@needs_compiler
def test_removed_symbols_match_those_missing_in_nm_output(
    versions: TwoVersions, run_tool: RunTool, tmp_path: Path
) -> None:
    listed: list[set[str]] = []
    for wheel in versions:
        zipfile.ZipFile(wheel).extract("demo/lib/libdemo.so.1", tmp_path)
        lines = run_tool(["nm", "-D", "--defined-only", tmp_path / "demo/lib/libdemo.so.1"]).splitlines()
        listed.append({line.split()[2] for line in lines if line.split()[1] != "A"})
    gone = {name for name in listed[0] - listed[1] if not name.startswith("__hip_cuid")}
    library = change_of(compare(*versions), "demo/lib/libdemo.so.1").library
    assert library is not None
    assert {*library.symbols_went, *library.weak_symbols_went} == gone == {"gone@@V_1", "weakened@@V_1", "older@@V_2"}


@needs_compiler
def test_a_wheel_does_not_differ_from_itself(versions: TwoVersions) -> None:
    comparison = compare(versions.old, versions.old)
    assert [package.status for package in comparison.packages] == [Status.SAME]
    assert comparison.packages[0].files == ()


@needs_compiler
def test_unpacked_wheels_have_the_same_findings_as_wheels(versions: TwoVersions, tmp_path: Path) -> None:
    for name, wheel in zip(("old", "new"), versions, strict=True):
        zipfile.ZipFile(wheel).extractall(tmp_path / name)
    found = set(rules(compare(tmp_path / "old", tmp_path / "new")))
    # Modes are not in what `zipfile` unpacks.
    assert found == {one for one in rules(compare(*versions)) if one[1] != "mode-changed"}


@needs_compiler
def test_a_symbol_version_that_is_no_longer_the_default_is_not_a_loss(tmp_path: Path) -> None:
    source = "int f(void) { return 1; }\n"
    old = build_tree(tmp_path / "old", Lib("liba.so.1", source=source, script="V_1 { global: f; };\n"))
    again = '__asm__(".symver f1, f@V_1"); __asm__(".symver f2, f@@V_2");\n'
    again += "int f1(void) { return 1; } int f2(void) { return 2; }\n"
    script = "V_1 { global: f; local: *; }; V_2 { global: f; } V_1;\n"
    new = build_tree(tmp_path / "new", Lib("liba.so.1", source=again, script=script))
    assert rules(compare(old, new)) == []


@needs_compiler
def test_removing_symbols_of_private_versions_is_not_reported(tmp_path: Path) -> None:
    script = "V_1 { global: kept; }; V_PRIVATE { global: f; };\n"
    old = build_tree(
        tmp_path / "old",
        Lib("liba.so.1", source="int f(void) { return 1; } int kept(void) { return 1; }", script=script),
    )
    script = "V_1 { global: kept; }; V_PRIVATE { };\n"
    new = build_tree(tmp_path / "new", Lib("liba.so.1", source="int kept(void) { return 1; }", script=script))
    assert rules(compare(old, new)) == []


@needs_compiler
def test_a_new_soname_of_a_linked_library_is_one_finding(tmp_path: Path) -> None:
    for name, number in (("old", 1), ("new", 2)):
        tree = build_tree(tmp_path / name, Lib(f"lib/libx.so.{number}.0", soname=f"libx.so.{number}"))
        (tree / f"lib/libx.so.{number}").symlink_to(f"libx.so.{number}.0")
        (tree / "lib/libx.so").symlink_to(f"libx.so.{number}")
    assert rules(compare(tmp_path / "old", tmp_path / "new")) == [("files", "soname-changed", "lib/libx.so.1.0")]


@needs_compiler
def test_two_libraries_with_different_names_are_compared(tmp_path: Path) -> None:
    old = build_tree(tmp_path / "old", Lib("liba.so.1", source="int f(void) { return 1; }"))
    new = build_tree(tmp_path / "new", Lib("libb.so.1", soname="liba.so.1"))
    assert rules(compare(old / "liba.so.1", new / "libb.so.1")) == [("files", "symbol-gone", "liba.so.1")]


def test_builds_are_compared_by_package(tmp_path: Path) -> None:
    for name, package in (("old", "gone"), ("new", "fresh")):
        dist = tmp_path / name / "dist"
        make_wheel(dist, "alpha", {"alpha.py": b"", "data": name.encode()}, tag="py3-none-any")
        make_wheel(dist, package, {f"{package}.py": b""}, tag="py3-none-any")
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert [(package.name, package.status) for package in comparison.packages] == [
        ("alpha", Status.CHANGED), ("gone", Status.WENT), ("fresh", Status.CAME),
    ]  # fmt: skip
    assert rules(comparison) == [("gone", "package-gone", "")]


def test_a_move_between_packages_is_a_warning(tmp_path: Path) -> None:
    kernels = {"a/k.hsaco": bundle_of("gfx906", "gfx90a")}
    make_wheel(tmp_path / "old", "alpha", {**kernels, "a/b.py": b""})
    make_wheel(tmp_path / "old", "beta", {})
    make_wheel(tmp_path / "new", "alpha", {"a/k.hsaco": bundle_of("gfx90a")})
    make_wheel(tmp_path / "new", "beta", {"b/k.hsaco": bundle_of("gfx906"), "a/b.py": b""})
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert rules(comparison) == [("alpha", "gpu-moved", ""), ("alpha", "file-moved", "a/b.py")]


def test_a_gpu_that_an_unrelated_package_already_has_is_gone_not_moved(tmp_path: Path) -> None:
    make_wheel(tmp_path / "old", "alpha", {"a/k.hsaco": bundle_of("gfx906", "gfx90a")})
    make_wheel(tmp_path / "old", "beta", {"b/other.hsaco": bundle_of("gfx90a")})
    make_wheel(tmp_path / "new", "alpha", {"a/k.hsaco": bundle_of("gfx90a")})
    make_wheel(tmp_path / "new", "beta", {"b/other.hsaco": bundle_of("gfx906", "gfx90a")})
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert rules(comparison) == [("alpha", "gpu-gone", ""), ("alpha", "gpu-gone", "a/k.hsaco")]


def test_a_gpu_whose_kernels_move_to_a_package_with_other_kernels_for_it_has_moved(tmp_path: Path) -> None:
    kernels = {"lib/library/T_gfx906.hsaco": bundle_of("gfx906")}
    make_wheel(tmp_path / "old", "alpha", {"a/k.hsaco": bundle_of("gfx90a"), **kernels})
    make_wheel(tmp_path / "old", "beta", {"b/x.hsaco": bundle_of("gfx906")})
    make_wheel(tmp_path / "new", "alpha", {"a/k.hsaco": bundle_of("gfx90a")})
    make_wheel(tmp_path / "new", "beta", {"b/x.hsaco": bundle_of("gfx906"), **kernels})
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert rules(comparison) == [
        ("alpha", "gpu-moved", ""), ("alpha", "file-moved", "lib/library/T_gfx906.hsaco"),
    ]  # fmt: skip


def test_a_gpu_is_gone_when_only_one_of_two_libraries_moved(tmp_path: Path) -> None:
    both = {"a/k.hsaco": bundle_of("gfx906"), "c/m.hsaco": bundle_of("gfx906")}
    make_wheel(tmp_path / "old", "alpha", both)
    make_wheel(tmp_path / "old", "beta", {})
    make_wheel(tmp_path / "new", "alpha", {"c/m.hsaco": bundle_of("gfx90a")})
    make_wheel(tmp_path / "new", "beta", {"a/k.hsaco": bundle_of("gfx906")})
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert ("alpha", "gpu-gone", "") in rules(comparison)
    assert ("alpha", "gpu-gone", "c/m.hsaco") in rules(comparison)


def test_a_gpu_is_gone_only_from_the_library_when_another_file_in_the_package_has_it(tmp_path: Path) -> None:
    same = {"a/same.hsaco": bundle_of("gfx906")}
    old = make_wheel(tmp_path / "old", "alpha", {**same, "a/k.hsaco": bundle_of("gfx906", "gfx90a")})
    new = make_wheel(tmp_path / "new", "alpha", {**same, "a/k.hsaco": bundle_of("gfx90a")})
    assert rules(compare(old, new)) == [("alpha", "gpu-gone", "a/k.hsaco")]


KERNELS = "a/lib/{}/library/kernels_{}.co"


def kernels(*names: tuple[str, str]) -> dict[str, bytes]:
    """Return kernel files of libraries, each for a target."""
    return {KERNELS.format(*name): b"kernels" for name in names}


def test_a_kernel_library_that_loses_a_gpu_is_reported_even_if_other_libraries_keep_it(tmp_path: Path) -> None:
    rest = kernels(("blas", "gfx906"), ("blas", "gfx90a"), ("fft", "gfx906"))
    old = make_wheel(tmp_path / "old", "alpha", {**rest, **kernels(("fft", "gfx90a"))})
    new = make_wheel(tmp_path / "new", "alpha", rest)
    comparison = compare(old, new)
    assert rules(comparison) == [("alpha", "gpu-gone", "a/lib/fft/library/"), ("alpha", "kernels-gone", "")]
    [finding] = [one for one in find_breaks(comparison) if one.rule == "gpu-gone"]
    assert finding.found == "no longer has kernels for gfx90a"


def test_a_kernel_library_removed_from_a_package_for_one_gpu_is_reported(tmp_path: Path) -> None:
    for folder in ("old", "new"):
        make_wheel(tmp_path / folder, "dev-a", kernels(("blas", "gfx906"), ("fft", "gfx906")))
        fft = kernels(("fft", "gfx90a")) if folder == "old" else {}
        make_wheel(tmp_path / folder, "dev-b", {**kernels(("blas", "gfx90a")), **fft})
    found = [one for one in rules(compare(tmp_path / "old", tmp_path / "new")) if one[1].startswith("gpu-")]
    assert found == [("dev-b", "gpu-gone", "a/lib/fft/library/")]


@pytest.mark.parametrize(("package", "library"), [("alpha", "new-fft"), ("beta", "fft"), ("beta", "new-fft")])
def test_kernels_moved_to_another_folder_or_package_are_not_gone(package: str, library: str, tmp_path: Path) -> None:
    rest = kernels(("blas", "gfx90a"))
    make_wheel(tmp_path / "old", "alpha", {**rest, **kernels(("fft", "gfx90a"))})
    make_wheel(tmp_path / "old", "beta", rest)
    for name in ("alpha", "beta"):
        make_wheel(tmp_path / "new", name, {**rest, **(kernels((library, "gfx90a")) if name == package else {})})
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert [one for one in rules(comparison) if one[1] == "gpu-gone"] == []


@needs_compiler
@pytest.mark.parametrize("package", ["alpha", "beta"])
def test_a_gpu_whose_code_moves_into_an_archive_is_not_gone(package: str, tmp_path: Path) -> None:
    """The library is split; its code is in archives of the same package, or of another one."""
    split = split_two(tmp_path / "split")
    archives = {f"a/.kpack/{path.name}": path for path in (tmp_path / "split/.kpack").iterdir()}
    fat = FIXTURES / "v22/libtwo.plain.so"
    new: dict[str, dict[str, Path | bytes]] = {"alpha": {"a/lib/libtwo.so": split}, "beta": {"b/file": b""}}
    new[package] |= archives
    make_wheel(tmp_path / "old", "alpha", {"a/lib/libtwo.so": fat})
    make_wheel(tmp_path / "old", "beta", {"b/file": b""})
    for name, files in new.items():
        make_wheel(tmp_path / "new", name, files)
    found = [rule for _, rule, _ in rules(compare(tmp_path / "old", tmp_path / "new")) if rule.startswith("gpu-")]
    assert found == ([] if package == "alpha" else ["gpu-moved"])


def test_a_gpu_whose_archive_is_renamed_and_moved_to_another_package_has_moved(tmp_path: Path) -> None:
    archive = make_kpack({("lib/libx.so", 0, "gfx906"): b"code" * 99})
    make_wheel(tmp_path / "old", "alpha", {"a/.kpack/first_gfx906.kpack": archive, "a/b": b""})
    make_wheel(tmp_path / "old", "beta", {"b/file": b""})
    make_wheel(tmp_path / "new", "alpha", {"a/b": b""})
    make_wheel(tmp_path / "new", "beta", {"b/file": b"", "b/.kpack/second.kpack": archive})
    found = [one for one in rules(compare(tmp_path / "old", tmp_path / "new")) if one[1].startswith("gpu-")]
    assert found == [("alpha", "gpu-moved", "")]


def test_a_gpu_that_only_archives_of_another_library_have_is_gone(tmp_path: Path) -> None:
    for folder, library in (("old", "lib/libx.so"), ("new", "lib/liby.so")):
        archive = make_kpack({(library, 0, "gfx906"): b"code" * 99})
        rest = {"a/b": b"", "a/.kpack/x.kpack": archive} if folder == "old" else {"a/b": b""}
        make_wheel(tmp_path / folder, "alpha", rest)
        make_wheel(tmp_path / folder, "beta", {"b/y.kpack": archive} if folder == "new" else {})
    found = [one for one in rules(compare(tmp_path / "old", tmp_path / "new")) if one[1].startswith("gpu-")]
    assert found == [("alpha", "gpu-gone", "")]


def test_a_wheel_and_a_folder_are_compared_as_files(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"a/b.py": b"1", "a/c.py": b"2"})
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "a/b.py").write_bytes(b"1")
    comparison = compare(wheel, tree)
    assert comparison.as_files
    assert rules(comparison) == [("files", "module-gone", "a/c.py")]


def test_environments_are_compared_by_distribution(tmp_path: Path) -> None:
    for name, text in (("old", b"1"), ("new", b"2")):
        wheel = make_wheel(tmp_path / f"{name}-dist", "alpha", {"alpha.py": text}, tag="py3-none-any")
        site = tmp_path / name / "lib/python3.12/site-packages"
        zipfile.ZipFile(wheel).extractall(site)
        (site / "loose.pth").write_bytes(text)
    comparison = compare(tmp_path / "old", tmp_path / "new")
    paths = {package.name: [file.path for file in package.files] for package in comparison.packages}
    assert paths == {"alpha": ["alpha-1.0.dist-info/RECORD", "alpha.py"], "": ["loose.pth"]}


def test_installing_distributions_is_not_a_breaking_change(tmp_path: Path) -> None:
    site = tmp_path / "environment/lib/python3.12/site-packages"
    wheel = make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b"1"}, tag="py2.py3-none-manylinux_2_17_x86_64")
    zipfile.ZipFile(wheel).extractall(site)
    zipfile.ZipFile(make_wheel(tmp_path, "beta", {"beta.py": b"1"}, tag="py3-none-any")).extractall(site)
    text = b"Metadata-Version: 2.1\nName: beta\nVersion: 1.0\n"
    write_sdist(tmp_path / "dist", "beta-1.0", {"PKG-INFO": text, "src/beta.py": b"1"})
    comparison = compare(tmp_path / "dist", tmp_path / "environment")
    assert rules(comparison) == []
    assert {package.name: package.files for package in comparison.packages} == {"alpha": (), "beta": ()}


def test_programs_removed_from_an_environment_are_found(tmp_path: Path) -> None:
    for name, tools in (("old", ("kept", "gone")), ("new", ("kept",))):
        prefix = tmp_path / name
        info = prefix / "lib/python3.12/site-packages/alpha-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n")
        (info / "RECORD").write_text(
            "".join(f"../../../bin/{tool},,\n" for tool in tools) + "../../../../outside,,\n../../../bin/missing,,\n"
        )
        (prefix / "bin").mkdir()
        (tmp_path / "outside").write_text(name)
        for tool in tools:
            (prefix / "bin" / tool).write_text("#!/bin/sh\n")
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert rules(comparison) == [("alpha", "program-gone", "../../../bin/gone")]
    paths = {package.name: [file.path for file in package.files] for package in comparison.packages}
    assert paths["alpha"] == ["../../../bin/gone"]


def test_requirements_that_pin_the_version_of_the_wheel_itself_are_not_a_difference(tmp_path: Path) -> None:
    old = make_wheel(tmp_path, "alpha", {}, version="1.0", requires=("beta==1.0", "c==1.0; python_version>'3'"))
    new = make_wheel(tmp_path, "alpha", {}, version="2.0", requires=("beta==2.0", "c==2.0; python_version>'3'"))
    assert compare(old, new).packages[0].fields == ()


def test_files_of_equal_size_with_different_content_differ(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text(name)
    shutil.copy(tmp_path / "old/data", tmp_path / "old/same")
    shutil.copy(tmp_path / "old/data", tmp_path / "new/same")
    comparison = compare(tmp_path / "old", tmp_path / "new")
    assert [(file.path, file.has_other_content) for file in comparison.packages[0].files] == [("data", True)]


def test_removed_dlls_and_removed_functions_of_dlls_are_reported(tmp_path: Path) -> None:
    def wheel(folder: str, files: dict[str, bytes]) -> Path:
        return make_wheel(tmp_path / folder, "demo", files, tag="py3-none-win_amd64")

    kept, mangled = pe_file("d.dll"), f"demo/d-{'0' * 32}.dll"
    old = wheel("old", {"demo/a.dll": pe_file("a.dll", "b.dll"), "demo/b.dll": pe_file("b.dll"), mangled: kept})
    new = wheel("new", {"demo/a.dll": pe_file("a.dll", "c.dll", function="g"), "demo/c.dll": pe_file("c.dll")})
    compared = compare(old, new)
    library = change_of(compared, "demo/a.dll").library
    assert library is not None
    assert (library.symbols_went, library.symbols_came, library.is_library) == (("f",), 1, True)
    assert library.fields == (FieldChange("Import", ("b.dll",), ("c.dll",)),)
    breaks = {(one.rule, one.file) for one in find_breaks(compared) if one.severity.value == "error"}
    assert breaks == {("symbol-gone", "demo/a.dll"), ("library-gone", "demo/b.dll")}


def test_removed_targets_are_sorted_by_processor_number() -> None:
    went, replaced = lost_targets(["gfx1030", "gfx90a:xnack-", "gfx906", "gfx90a:xnack+", "gfx803"], [])
    assert (went, replaced) == (("gfx803", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1030"), ())
