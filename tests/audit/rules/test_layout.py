"""Files with wrong kinds, modes and names, and files that conflict with each other."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.audit.finding import Severity
from rocwheel.environment.tree import Tree
from tests.support.breaches import TAG, Breach, check_breach, one
from tests.support.trees import data, find, library, package, program, tree

BREACHES = {
    "unreadable-binary": Breach(
        one(data("demo/a.so", problem="truncated")),
        "demo/a.so",
        "truncated",
    ),
    "symlink": Breach(
        one(data("demo/liba.so", link="liba.so.1")),
        "demo/liba.so",
        "is a symlink to liba.so.1: installers write a text file with the target's name instead",
    ),
    "wrong-mode": Breach(
        one(program("demo/bin/tool", mode=0o100644)),
        "demo/bin/tool",
        "is a program with mode 0644, so it can't be run",
    ),
    "duplicate-library": Breach(
        one(library("demo/libx.so", soname="libx.so.1"), library("demo/libx.so.1")),
        "demo/libx.so",
        "has the same SONAME as another file in its package: libx.so.1",
    ),
    "soname-clash": Breach(
        one(
            library("demo/a/a.so", "libx.so.1", runpath="$ORIGIN"),
            library("demo/a/libx.so.1"),
            library("demo/b/b.so", "libx.so.1", runpath="$ORIGIN"),
            library("demo/b/libx.so.1"),
        ),
        "demo/a/libx.so.1",
        "shares the SONAME libx.so.1 with different files: demo/b/libx.so.1",
    ),
    "path-collision": Breach(
        tree((package("one"), [data("shared/x.py", sha256=b"1" * 32)]), (package("two"), [data("shared/x.py")])),
        "shared/x.py",
        f"2 files have the path shared/x.py, with different contents (in one-1.0-{TAG}.whl and two-1.0-{TAG}.whl)",
    ),
    "path-outside": Breach(
        one(data("../evil.so")),
        "../evil.so",
        "has a path that points outside the wheel: installers reject the wheel, or write the file outside the "
        "environment",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def _users_of_one_name(requires: tuple[str, ...], soname: str = "libx.so.1") -> Tree:
    one, two = (
        [library(f"{name}/a.so", soname, runpath="$ORIGIN"), library(f"{name}/{soname}", size=size)]
        for name, size in (("one", 1), ("two", 2))
    )
    return tree((package("one", requires=requires), one), (package("two"), two))


@pytest.mark.parametrize(
    ("requires", "severity", "end"),
    [
        pytest.param(("two",), Severity.WARNING, "", id="used together"),
        pytest.param((), Severity.NOTE, "; no given package requires both of these packages", id="strangers"),
    ],
)
def test_a_soname_clash_is_more_severe_between_packages_used_together(
    requires: tuple[str, ...], severity: Severity, end: str
) -> None:
    (finding,) = find(_users_of_one_name(requires))
    assert (finding.rule, finding.severity, finding.found) == (
        "soname-clash",
        severity,
        f"shares the SONAME libx.so.1 with different files: two/libx.so.1{end}",
    )


def test_files_with_the_same_auditwheel_hash_are_the_same_library() -> None:
    assert find(_users_of_one_name(("two",), "libgomp-e985bcbb.so.1.0.0")) == []


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        (0o104755, "has mode 4755, so it runs as another user"),
        (0o100666, "has mode 0666, so anyone can write to it"),
        (0o100244, "has mode 0244, so its owner can't read it"),
    ],
)
def test_unsafe_or_unusable_file_modes_are_reported(mode: int, found: str) -> None:
    assert [finding.found for finding in find(one(data("demo/x", mode=mode)))] == [found]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["demo/a.py", "demo/a.py"], "2 files have the path demo/a.py, with the same contents"),
        (["demo/a", "demo/a/b.py"], "demo/a is a file, but also the folder that contains demo/a/b.py"),
    ],
    ids=["twice", "file and folder"],
)
def test_a_single_wheel_may_have_conflicting_paths(paths: list[str], found: str) -> None:
    findings = find(one(*map(data, paths)), select=("path-collision",))
    assert [finding.found for finding in findings] == [found]


@pytest.mark.parametrize(("size", "found"), [(5, []), (6, ["soname-clash"])], ids=["copies", "of another size"])
def test_copies_are_recognized_by_size_without_digests(size: int, found: list[str]) -> None:
    files = (
        library("one/a.so", "libx.so", runpath="$ORIGIN"),
        library("two/a.so", "libx.so", runpath="$ORIGIN"),
        library("one/libx.so", sha256=None, size=5),
        library("two/libx.so", sha256=None, size=size),
    )
    assert [finding.rule for finding in find(Tree((), files, is_prefix=True))] == found


@pytest.mark.parametrize(
    ("mode", "is_right"),
    [(0o100600, True), (0o100775, True), (0o100644, True), (0o100244, False), (0o100646, False)],
    ids=oct,
)
def test_a_mode_is_accepted_if_the_owner_can_read_and_others_cannot_write(mode: int, is_right: bool) -> None:
    assert (find(one(data("demo/x", mode=mode))) == []) is is_right


def test_an_install_prefix_may_contain_symlinks_and_several_library_names() -> None:
    files = (
        data("lib/libx.so", link="libx.so.1"),
        library("lib/libx.so.1.0", soname="libx.so.1"),
        data("lib/libx.so.1", link="libx.so.1.0"),
        library("lib/liby.so", "libx.so.1", runpath="$ORIGIN"),
    )
    assert find(Tree((), files, is_prefix=True)) == []


def test_a_library_for_one_target_is_not_a_duplicate_of_the_generic_library() -> None:
    libraries = (library("lib/libx.so.1"), library("lib/libx.so.1.gfx906", soname="libx.so.1"))
    assert find(Tree((), libraries)) == []


def test_copies_in_a_prefix_are_reported_where_links_are_expected() -> None:
    real = library("lib/libx.so.1", size=5)
    files = (
        real,
        msgspec.structs.replace(real, path="lib/libx.so", source="lib/libx.so"),
        msgspec.structs.replace(real, path="lib/libx.so.0", source="lib/libx.so.0", size=6),
        msgspec.structs.replace(real, path="plugins/libx.so", source="plugins/libx.so"),
    )
    found = [(finding.rule, finding.path, finding.found) for finding in find(Tree((), files, is_prefix=True))]
    assert found == [
        ("duplicate-library", "lib/libx.so", "has the same SONAME as another file in its package: libx.so.1"),
    ]


@pytest.mark.parametrize(
    ("path", "mode", "fields", "is_wrong"),
    [
        ("_rocm_sdk_core/bin/hipcc", 0o100644, {}, True),
        ("_rocm_sdk_core/bin/hipcc", 0o100755, {}, False),
        ("_rocm_sdk_core/share/hipcc", 0o100644, {}, False),
        ("_rocm_sdk_core/bin/hipcc", 0o100644, {"is_script": False}, False),
        ("_rocm_sdk_core/bin/hipcc", 0, {}, False),
        ("npm/bin/npm.ps1", 0o100644, {}, False),
    ],
)
def test_a_script_in_bin_must_be_executable(path: str, mode: int, fields: dict[str, bool], is_wrong: bool) -> None:
    file = data(path, **{"mode": mode, "is_script": True} | fields)
    found = [f"is a script with mode {mode & 0o7777:04o}, so it can't be run"] if is_wrong else []
    assert [finding.found for finding in find(one(file), select=("wrong-mode",))] == found


def test_a_module_with_a_shebang_is_not_a_script() -> None:
    files = (data("demo/bin/__init__.py"), data("demo/bin/x.py", mode=0o100644, is_script=True))
    assert find(one(*files), select=("wrong-mode",)) == []
