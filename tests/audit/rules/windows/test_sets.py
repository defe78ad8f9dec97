"""DLLs as a set: names that two have, names that files don't have, and circles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.audit.rules.windows.sets import find_circles
from tests.audit.rules.windows.test_dlls import CORE, LIBRARIES
from tests.support.breaches import Breach, brief, check_breach, one
from tests.support.trees import data, dll, find, tree, windows_package

BREACHES = {
    "dll-clash": Breach(
        tree(
            (windows_package("one"), [dll("one/shared.dll")]),
            (windows_package("two"), [dll("two/Shared.dll")]),
        ),
        "one/shared.dll",
        "has the same name as two/Shared.dll in two, with different contents: a process uses the DLL that is "
        "loaded first",
    ),
    "dll-renamed": Breach(
        one(dll("demo/api7.dll", linked_as="api.dll"), owner=windows_package()),
        "demo/api7.dll",
        "was linked as api.dll: files that link with this DLL search for that name",
    ),
    "dll-circle": Breach(
        tree(
            (
                windows_package("rocm-sdk-core", requires=("rocm-sdk-libraries",)),
                [dll("_rocm_sdk_core/bin/a.dll", "b.dll")],
            ),
            (LIBRARIES, [dll("_rocm_sdk_libraries/bin/b.dll", "a.dll")]),
        ),
        "_rocm_sdk_core/bin/a.dll",
        "needs DLLs in other folders that also need it: _rocm_sdk_libraries/bin/b.dll",
    ),
    "import-library": Breach(
        one(data("demo/lib/libhipblas.dll.a"), dll("demo/libhipblas.dll"), owner=windows_package()),
        "demo/lib/libhipblas.dll.a",
        "is a MinGW import library, and hipblas.lib is missing: Visual C++ and CMake search for hipblas.lib",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_of_a_rule_is_the_only_finding(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize("name", ["a.lib", "liba.lib"])
def test_a_mingw_import_library_next_to_an_msvc_library_is_reported_as_such(name: str) -> None:
    audited = one(data("demo/lib/liba.dll.a"), data(f"demo/lib/{name}"), owner=windows_package())
    assert [finding.found for finding in find(audited)] == [
        f"is a MinGW import library, next to {name}: Visual C++ and CMake search for {name}"
    ]


def test_import_libraries_of_extension_modules_are_ignored() -> None:
    module, library = dll("demo/_c.cp312-win_amd64.pyd"), data("demo/_c.cp312-win_amd64.dll.a")
    assert find(one(module, library, owner=windows_package())) == []


def test_copies_of_a_dll_in_one_package_do_not_clash() -> None:
    assert find(one(dll("demo/a/x.dll"), dll("demo/b/x.dll"), owner=windows_package())) == []


def test_extension_modules_with_the_same_name_do_not_clash() -> None:
    audited = tree(
        (windows_package("one"), [dll("one/_c.pyd")]),
        (windows_package("two"), [dll("two/_c.pyd")]),
    )
    assert find(audited) == []


def test_extension_modules_may_have_any_internal_name() -> None:
    assert find(one(dll("demo/_rust.pyd", linked_as="cryptography_rust.dll"), owner=windows_package())) == []


def test_a_name_mangled_by_delvewheel_is_accepted() -> None:
    audited = one(dll("demo/zlib-0123456789abcdef0123456789abcdef.dll", linked_as="zlib.dll"), owner=windows_package())
    assert find(audited) == []


def test_an_import_cycle_in_one_folder_is_accepted() -> None:
    audited = one(dll("_rocm_sdk_core/bin/a.dll", "b.dll"), dll("_rocm_sdk_core/bin/b.dll", "a.dll"), owner=CORE)
    assert find(audited) == []


def test_an_import_cycle_broken_by_delay_loading_is_accepted() -> None:
    audited = tree(
        (
            windows_package("rocm-sdk-core", requires=("rocm-sdk-libraries",)),
            [dll("_rocm_sdk_core/bin/a.dll", delayed=("b.dll",))],
        ),
        (LIBRARIES, [dll("_rocm_sdk_libraries/bin/b.dll", "a.dll")]),
    )
    assert brief(find(audited)) == []


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"))))
def test_cycles_are_the_strongly_connected_components(edges: dict[str, list[str]]) -> None:
    reached = {node: _reached(edges, node) for node in "abcdefgh"}
    together = {
        tuple(sorted(o for o in reached[n] if n in reached[o] or o == n)) for n in "abcdefgh" if n in reached[n]
    }
    assert find_circles(edges) == sorted(circle for circle in together if len(circle) > 1)


def _reached(edges: dict[str, list[str]], node: str) -> set[str]:
    found: set[str] = set()
    waiting = [*edges.get(node, ())]
    while waiting:
        following = waiting.pop()
        if following not in found:
            found.add(following)
            waiting += edges.get(following, ())
    return found


def test_an_import_chain_of_any_length_is_followed() -> None:
    edges = {str(number): [str(number + 1)] for number in range(20_000)}
    assert find_circles(edges) == []
