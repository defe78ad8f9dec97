"""DLLs and programs of Windows whose layout is refused, and the machines that they are for."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.finding import Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.pe.layout import FaultKind, LayoutFault
from rocwheel.environment.file_reports import PeReport
from rocwheel.environment.tree import split_environments
from tests.support.breaches import Breach, brief, check_breach, one
from tests.support.trees import data, dll, exe, find, library, package, windows_package

BREACHES = {
    f"image-{kind.value}": Breach(
        one(dll("demo/a.dll", faults=(LayoutFault(kind, "has a fault"),)), owner=windows_package()),
        "demo/a.dll",
        "has a fault",
    )
    for kind in FaultKind
} | {
    "image-signed": Breach(
        one(dll("demo/a.dll", signed=True), owner=windows_package()),
        "demo/a.dll",
        "is signed: any edit, such as removing device code, invalidates the signature",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


def test_several_layout_faults_are_one_finding_with_a_stable_fingerprint() -> None:
    faults = [tuple(LayoutFault(FaultKind.LAYOUT, f"fault {at}") for at in places) for places in ((1, 2, 3), (4,))]
    found = [find(one(dll("demo/a.dll", faults=some), owner=windows_package())) for some in faults]
    assert [[finding.found for finding in some] for some in found] == [["fault 1; and 2 more faults"], ["fault 4"]]
    assert found[0][0].fingerprint == found[1][0].fingerprint


@pytest.mark.parametrize("name", ["a.dll", "tool.exe", "_c.PYD"])
def test_a_file_with_a_dll_name_that_is_not_a_dll_is_unreadable(name: str) -> None:
    assert brief(find(one(data(f"demo/{name}"), owner=windows_package()))) == [
        ("unreadable-binary", f"demo/{name}", "is named like a Windows DLL or program, but isn't one")
    ]


def test_linux_packages_may_contain_any_file_with_a_dll_name() -> None:
    assert find(one(data("demo/a.dll"), library("demo/a.so"))) == []


def test_a_dll_for_another_machine_is_an_error() -> None:
    assert brief(find(one(dll("demo/a.dll", machine=0xAA64), owner=windows_package()))) == [
        ("wrong-machine", "demo/a.dll", "is for ARM64, but demo-1.0-py3-none-win_amd64.whl is for win_amd64")
    ]


@pytest.mark.parametrize(("is_dll", "severity"), [(True, Severity.ERROR), (False, Severity.WARNING)])
def test_a_32_bit_dll_is_an_error_and_a_32_bit_program_is_a_warning(is_dll: bool, severity: Severity) -> None:
    old = data("demo/old.dll", windows=PeReport(0x14C, is_dll))
    (finding,) = find(one(old, owner=windows_package()))
    assert (finding.rule, finding.severity) == ("wrong-machine", severity)


def test_a_dll_in_a_linux_wheel_is_a_warning_and_a_program_is_accepted() -> None:
    (finding,) = find(one(dll("demo/a.dll"), exe("demo/b.exe"), library("demo/c.so")))
    assert (finding.rule, finding.severity) == ("wrong-machine", Severity.WARNING)
    assert (
        finding.found == "is for Windows, but demo-1.0-py3-none-manylinux_2_17_x86_64.whl is for manylinux_2_17_x86_64"
    )


def test_file_modes_in_windows_packages_are_ignored() -> None:
    assert find(one(dll("demo/a.dll", mode=0o100666), owner=windows_package())) == []


def test_launchers_in_a_wheel_for_any_platform_are_accepted() -> None:
    launchers = [
        exe("demo/t64.exe"),
        exe("demo/t64-arm.exe", machine=0xAA64),
        data("demo/t32.exe", windows=PeReport(0x14C, is_dll=False)),
    ]
    assert find(one(*launchers, owner=package(tag="py3-none-any"))) == []


def test_an_extension_module_must_match_the_python_dll_that_it_needs() -> None:
    audited = one(dll("demo/_c.cp312-win_amd64.pyd", "python312.dll"), owner=package(tag="cp313-cp313-win_amd64"))
    assert brief(find(audited)) == [
        (
            "wrong-python",
            "demo/_c.cp312-win_amd64.pyd",
            "needs python312.dll, but demo-1.0-cp313-cp313-win_amd64.whl is for cp313-cp313",
        )
    ]
    stable = one(dll("demo/_c.pyd", "python3.dll"), owner=package(tag="cp39-abi3-win_amd64"))
    assert find(stable) == []


def test_dlls_and_windows_programs_are_counted_as_programs_and_libraries() -> None:
    audited = one(dll("demo/a.dll"), exe("demo/b.exe"), owner=windows_package())
    assert audit(split_environments(audited), AuditSettings()).libraries == 2
    assert msgspec.json.encode(audited.files[0].windows)
