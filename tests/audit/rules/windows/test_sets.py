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
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize("name", ["a.lib", "liba.lib"])
def test_an_import_library_beside_the_right_one_is_told_so(name: str) -> None:
    audited = one(data("demo/lib/liba.dll.a"), data(f"demo/lib/{name}"), owner=windows_package())
    assert [finding.found for finding in find(audited)] == [
        f"is a MinGW import library, next to {name}: Visual C++ and CMake search for {name}"
    ]


def test_import_libraries_of_extension_modules_are_of_no_use_to_anybody() -> None:
    module, library = dll("demo/_c.cp312-win_amd64.pyd"), data("demo/_c.cp312-win_amd64.dll.a")
    assert find(one(module, library, owner=windows_package())) == []


def test_copies_in_one_package_do_not_clash() -> None:
    assert find(one(dll("demo/a/x.dll"), dll("demo/b/x.dll"), owner=windows_package())) == []


def test_extension_modules_of_one_name_do_not_clash() -> None:
    audited = tree(
        (windows_package("one"), [dll("one/_c.pyd")]),
        (windows_package("two"), [dll("two/_c.pyd")]),
    )
    assert find(audited) == []


def test_extension_modules_may_be_linked_as_anything() -> None:
    assert find(one(dll("demo/_rust.pyd", linked_as="cryptography_rust.dll"), owner=windows_package())) == []


def test_a_name_that_delvewheel_made_is_no_other_name() -> None:
    audited = one(dll("demo/zlib-0123456789abcdef0123456789abcdef.dll", linked_as="zlib.dll"), owner=windows_package())
    assert find(audited) == []


def test_a_circle_in_one_folder_is_no_matter() -> None:
    audited = one(dll("_rocm_sdk_core/bin/a.dll", "b.dll"), dll("_rocm_sdk_core/bin/b.dll", "a.dll"), owner=CORE)
    assert find(audited) == []


def test_a_circle_that_delay_loading_opens_is_none() -> None:
    audited = tree(
        (
            windows_package("rocm-sdk-core", requires=("rocm-sdk-libraries",)),
            [dll("_rocm_sdk_core/bin/a.dll", delayed=("b.dll",))],
        ),
        (LIBRARIES, [dll("_rocm_sdk_libraries/bin/b.dll", "a.dll")]),
    )
    assert brief(find(audited)) == []


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"))))
def test_circles_are_the_strongly_connected_components(edges: dict[str, list[str]]) -> None:
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


def test_a_chain_of_any_length_is_followed() -> None:
    edges = {str(number): [str(number + 1)] for number in range(20_000)}
    assert find_circles(edges) == []
