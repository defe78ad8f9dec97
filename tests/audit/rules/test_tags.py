"""Compatibility tags that promise more, or less, than the files of a wheel keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.symbols import SymbolReference
from rocwheel.environment.file_reports import PeReport
from rocwheel.environment.read_tree import read_tree
from tests.support.breaches import Breach, check_breach, one
from tests.support.places import ELF_FIXTURES
from tests.support.trees import data, dll, exe, find, library, package, windows_package
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from rocwheel.environment.tree import InstalledFile

if TYPE_CHECKING:
    from pathlib import Path

LINUX = "manylinux_2_17_x86_64"


def uses_python(*names: str) -> InstalledFile:
    """Return an extension module that needs functions of the interpreter."""
    references = tuple(map(SymbolReference, names))
    return library("demo/a.abi3.so", references=references, defines=("PyInit_a",), exports=("PyInit_a",))


BREACHES = {
    "tag-too-old": Breach(
        one(library("demo/a.so", versions=("GLIBC_2.34",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "promises to run on glibc 2.17, but needs a newer version (demo/a.so: GLIBC_2.34)",
    ),
    "tag-too-new": Breach(
        one(library("demo/a.so"), owner=package(tag="py3-none-manylinux_2_28_x86_64")),
        "demo-1.0-py3-none-manylinux_2_28_x86_64.whl",
        "requires glibc 2.28, but its files run on 2.17",
    ),
    "tag-unknown": Breach(
        one(library("demo/a.so"), owner=package(tag="py3-none-manylinx_2_28_x86_64")),
        "demo-1.0-py3-none-manylinx_2_28_x86_64.whl",
        "has the tag manylinx_2_28_x86_64, which no installer accepts",
    ),
    "tag-local": Breach(
        one(library("demo/a.so"), owner=package(tag="py3-none-linux_x86_64")),
        "demo-1.0-py3-none-linux_x86_64.whl",
        "has the tag linux_x86_64: public indexes such as PyPI reject the wheel",
    ),
    "elf-in-any-wheel": Breach(
        one(library("demo/a.so"), owner=package(tag="py3-none-any")),
        "demo-1.0-py3-none-any.whl",
        "is for any platform, but contains machine code: demo/a.so",
    ),
    "elf-in-purelib": Breach(
        one(library("demo/a.so"), owner=package(is_purelib=True)),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "sets Root-Is-Purelib: true, but contains machine code: demo/a.so",
    ),
    "wrong-machine": Breach(
        one(library("demo/a.so", machine=183)),
        "demo/a.so",
        "is for aarch64, but demo-1.0-py3-none-manylinux_2_17_x86_64.whl has no tag for this machine",
    ),
    "wrong-python": Breach(
        one(library("demo/a.so", "libpython3.11.so.1.0")),
        "demo/a.so",
        "needs libpython3.11.so.1.0, but demo-1.0-py3-none-manylinux_2_17_x86_64.whl is for py3-none",
    ),
    "unstable-symbol": Breach(
        one(uses_python("PyFrame_GetBack", "PyFrame_GetLocals"), owner=package(tag=f"cp39-abi3-{LINUX}")),
        "demo/a.abi3.so",
        "uses PyFrame_GetBack, PyFrame_GetLocals, which the stable ABI doesn't include, "
        "but demo-1.0-cp39-abi3-manylinux_2_17_x86_64.whl is for abi3",
    ),
    "mach-o-unchecked": Breach(
        one(data("demo/a.dylib", is_mach_o=True), owner=package(tag="py3-none-macosx_11_0_arm64")),
        "demo-1.0-py3-none-macosx_11_0_arm64.whl",
        "has 1 Mach-O file: demo/a.dylib",
    ),
    "tag-mismatch": Breach(
        one(owner=package(tags=("py3-none-any",))),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "has the line 'Tag: py3-none-any' in WHEEL, but its file name implies 'Tag: py3-none-manylinux_2_17_x86_64'",
    ),
    "musl-unchecked": Breach(
        one(library("demo/a.so", "libnothing.so"), owner=package(tag="py3-none-musllinux_1_2_x86_64")),
        "demo-1.0-py3-none-musllinux_1_2_x86_64.whl",
        "is for musl: the audit doesn't check whether its libraries find each other",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_a_compressed_tag_set_in_wheel_is_reported_with_the_expected_lines() -> None:
    tag = "py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64"
    (finding,) = find(one(owner=package(tag=tag, tags=(tag,))))
    assert finding.found == (
        "has the line 'Tag: py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64' in WHEEL, but its file name implies "
        "'Tag: py3-none-manylinux2014_x86_64', 'Tag: py3-none-manylinux_2_17_x86_64'"
    )


def test_machine_code_in_the_platlib_folder_of_a_pure_wheel_is_accepted(tmp_path: Path) -> None:
    code, tag = (ELF_FIXTURES / "libplain.so").read_bytes(), "py3-none-manylinux_2_5_x86_64"
    wheel = make_wheel(tmp_path, "demo", {"demo-1.0.data/platlib/demo/a.so": code}, tag=tag, is_purelib=True)
    rules = {finding.rule for finding in find(read_tree([wheel]))}
    assert "elf-in-purelib" not in rules
    wheel = make_wheel(tmp_path / "root", "demo", {"demo/a.so": code}, tag=tag, is_purelib=True)
    assert "elf-in-purelib" in {finding.rule for finding in find(read_tree([wheel]))}


@pytest.mark.parametrize(
    ("asked", "tag", "found"),
    [
        ("GLIBC_2.14", "manylinux_2_17_x86_64.manylinux2014_x86_64", []),
        ("GLIBC_2.25", "manylinux_2_26_x86_64", []),
        ("GLIBC_2.36", "manylinux_2_36_x86_64", []),
        ("GLIBC_2.14", "manylinux_2_24_x86_64", ["tag-too-new"]),
        ("GLIBC_2.35", "manylinux_2_36_x86_64", ["tag-too-new"]),
    ],
)
def test_the_next_tag_that_auditwheel_knows_is_not_too_new(asked: str, tag: str, found: list[str]) -> None:
    names = tuple(f"py3-none-{platform}" for platform in tag.split("."))
    audited = one(library("demo/a.so", versions=(asked,)), owner=package(tag=f"py3-none-{tag}", tags=names))
    assert [finding.rule for finding in find(audited)] == found


@pytest.mark.parametrize(
    ("platform", "found"),
    [
        ("win_amd64", "is for Linux, but demo-1.0-py3-none-win_amd64.whl is for win_amd64"),
        ("musllinux_1_1_x86_64", "needs libc.so.6 from glibc, which systems with musl don't have"),
    ],
)
def test_glibc_libraries_do_not_run_on_other_systems(platform: str, found: str) -> None:
    audited = one(library("demo/a.so", "libc.so.6"), owner=package(tag=f"py3-none-{platform}"))
    assert [f.found for f in find(audited, select=("wrong-machine",))] == [found]


@pytest.mark.parametrize(
    ("tag", "needed", "is_wrong"),
    [
        ("py3-none", "libpython3.11.so.1.0", True),
        ("cp311-abi3", "libpython3.11.so.1.0", True),
        ("cp310-cp310", "libpython3.11.so.1.0", True),
        ("cp310.cp311-none", "libpython3.11.so.1.0", True),
        ("cp311-cp311", "libpython3.11.so.1.0", False),
        ("cp314-cp314t", "libpython3.14t.so.1.0", False),
        ("py3-none", "libpython3.so", False),
    ],
)
def test_only_wheels_for_one_python_version_may_need_its_library(tag: str, needed: str, is_wrong: bool) -> None:
    owner = package(tag=f"{tag}-manylinux_2_17_x86_64")
    audited = one(library("demo/a.so", needed), owner=owner)
    found = [f"needs {needed}, but {owner.label} is for {tag}"] if is_wrong else []
    assert [finding.found for finding in find(audited, select=("wrong-python",))] == found


@pytest.mark.parametrize(
    ("tag", "remedy"),
    [
        ("manylinx_2_28_x86_64", "Use the tag manylinux_2_17_x86_64. 'rocwheel repair' sets it."),
        ("linux_x86_64", "Use the tag manylinux_2_17_x86_64. 'rocwheel repair' sets it."),
    ],
)
def test_the_remedy_for_a_useless_tag_is_the_right_tag(tag: str, remedy: str) -> None:
    (finding,) = find(one(library("demo/a.so", versions=("GLIBC_2.17",)), owner=package(tag=f"py3-none-{tag}")))
    assert finding.remedy == remedy


def test_the_remedy_for_an_unknown_tag_is_the_nearest_tag() -> None:
    (finding,) = find(one(owner=package(tag="py3-none-win64")))
    assert (finding.rule, finding.remedy) == ("tag-unknown", "Use the tag win_amd64.")


def test_a_dll_in_a_pure_windows_wheel_is_accepted() -> None:
    audited = one(dll("demo/a.dll"), owner=windows_package(is_purelib=True))
    assert find(audited, select=("elf-in-purelib",)) == []


@pytest.mark.parametrize("file", [dll("demo/a.dll"), data("demo/a.dylib", is_mach_o=True)])
def test_machine_code_for_any_system_is_reported_in_a_pure_wheel(file: InstalledFile) -> None:
    audited = one(file, owner=package(tag="py3-none-any", is_purelib=True))
    rules = ("elf-in-any-wheel", "elf-in-purelib")
    assert [finding.rule for finding in find(audited, select=rules)] == [*rules]


@pytest.mark.parametrize(
    "file", [exe("demo/launcher.exe"), data("demo/a.dll", windows=PeReport(0x14C, True, is_managed=True))]
)
def test_launchers_and_dotnet_code_are_accepted_in_a_pure_wheel(file: InstalledFile) -> None:
    audited = one(file, owner=package(tag="py3-none-any", is_purelib=True))
    assert find(audited, select=("elf-in-any-wheel", "elf-in-purelib")) == []


@pytest.mark.parametrize(
    ("tag", "names", "found"),
    [
        ("cp312-cp312", ["cpython-311-x86_64-linux-gnu.so"], {"cpython-311-x86_64-linux-gnu.so": "CPython 3.11"}),
        ("cp312-cp312", ["cpython-311-x86_64-linux-gnu.so", "cpython-312-x86_64-linux-gnu.so"], {}),
        ("cp312-cp312", ["cp311-win_amd64.pyd"], {"cp311-win_amd64.pyd": "CPython 3.11"}),
        ("cp312-cp312", ["pypy310-pp73-x86_64-linux-gnu.so"], {"pypy310-pp73-x86_64-linux-gnu.so": "PyPy 3.10"}),
        ("cp313-cp313t", ["cpython-313-x86_64-linux-gnu.so"], {"cpython-313-x86_64-linux-gnu.so": "CPython 3.13"}),
        ("cp313-cp313t", ["cpython-313t-x86_64-linux-gnu.so"], {}),
        ("cp39-abi3", ["cpython-311-darwin.so"], {"cpython-311-darwin.so": "CPython 3.11"}),
        ("cp39-abi3", ["cpython-39-x86_64-linux-gnu.so"], {"cpython-39-x86_64-linux-gnu.so": "CPython 3.9"}),
        ("cp39-abi3", ["abi3.so"], {}),
        ("cp39-abi3", ["so", "cpython-311-darwin.so"], {}),
        ("cp311.cp312-cp311.cp312", ["cpython-311-darwin.so", "cpython-312-darwin.so"], {}),
        ("pp310-pypy310_pp73", ["pypy310-pp73-x86_64-linux-gnu.so"], {}),
        ("py3-none", ["cpython-311-x86_64-linux-gnu.so"], {}),
    ],
)
def test_extension_modules_must_match_the_python_of_the_tag(tag: str, names: list[str], found: dict[str, str]) -> None:
    owner = package(tag=f"{tag}-{LINUX}")
    audited = one(*(data(f"demo/_ext.{name}") for name in names), owner=owner)
    assert {f.path: f.found for f in find(audited, select=("wrong-python",))} == {
        f"demo/_ext.{name}": f"is only for {python}, but {owner.label} is for {tag}" for name, python in found.items()
    }


@pytest.mark.parametrize(
    ("exports", "is_wrong"), [(("register_ops",), False), (("PyInit__C",), True), (("PyModExport__C",), True)]
)
def test_a_library_that_python_cannot_import_may_have_a_module_name(exports: tuple[str, ...], is_wrong: bool) -> None:
    file = library("demo/_C.cpython-310-x86_64-linux-gnu.so", exports=exports)
    assert bool(find(one(file, owner=package(tag=f"cp310-abi3-{LINUX}")), select=("wrong-python",))) is is_wrong


def test_modules_of_a_bundled_python_do_not_have_to_match_the_tag() -> None:
    file = data("demo/python/lib/python3.11/lib-dynload/_x.cpython-311-x86_64-linux-gnu.so")
    assert find(one(file, owner=package(tag=f"cp312-cp312-{LINUX}")), select=("wrong-python",)) == []


def test_stable_abi_symbols_must_not_be_newer_than_the_tag() -> None:
    file = uses_python("PyObject_Vectorcall", "PyList_Append", "PyType_GetModuleByDef")
    (finding,) = find(one(file, owner=package(tag=f"cp310-abi3-{LINUX}")), select=("unstable-symbol",))
    assert finding.found == (
        "uses PyObject_Vectorcall, PyType_GetModuleByDef from Python 3.13, but "
        "demo-1.0-cp310-abi3-manylinux_2_17_x86_64.whl is for 3.10"
    )
    assert find(one(file, owner=package(tag=f"cp313-abi3-{LINUX}")), select=("unstable-symbol",)) == []
    assert find(one(file, owner=package(tag=f"cp310-cp310-{LINUX}")), select=("unstable-symbol",)) == []


def test_a_dll_in_an_abi3_wheel_must_not_use_functions_newer_than_the_tag() -> None:
    file = dll("demo/a.pyd", "python3.dll", functions=("PyObject_Vectorcall", "PyList_Append"))
    (finding,) = find(one(file, owner=package(tag="cp310-abi3-win_amd64")), select=("unstable-symbol",))
    assert finding.found.startswith("uses PyObject_Vectorcall from Python 3.12, but ")


def test_a_python_symbol_defined_by_another_library_is_accepted() -> None:
    files = (uses_python("PyDemo_New"), library("demo/libdemo.so", defines=("PyDemo_New",)))
    assert find(one(*files, owner=package(tag=f"cp310-abi3-{LINUX}")), select=("unstable-symbol",)) == []


def test_symbols_that_a_missing_library_may_define_are_not_checked() -> None:
    references = (SymbolReference("PyEnumMeta_Check"),)
    for needed, is_judged in (("libshiboken6.abi3.so.6.12", False), ("libc.so.6", True)):
        audited = one(
            library("demo/a.abi3.so", needed, references=references), owner=package(tag=f"cp310-abi3-{LINUX}")
        )
        assert bool(find(audited, select=("unstable-symbol",))) is is_judged


@pytest.mark.parametrize(
    ("lines", "severity"),
    [
        (("py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64",), "note"),
        (("py3-none-manylinux_2_17_x86_64",), "error"),
        (("py3-none-any.more", "odd"), "error"),
    ],
)
def test_several_tags_on_one_line_of_wheel_are_only_a_note(lines: tuple[str, ...], severity: str) -> None:
    owner = package(tag="py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64", tags=lines)
    (finding,) = find(one(owner=owner), select=("tag-mismatch",))
    assert finding.severity.value == severity
