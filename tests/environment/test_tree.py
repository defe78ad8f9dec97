"""Tests of `rocwheel.environment.tree`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rocwheel.environment.tree import Distribution, Tree, split_environments
from tests.support.trees import data, find, library, package, program, tree

X86, ARM = "manylinux_2_17_x86_64", "manylinux_2_17_aarch64"
MUSL = "musllinux_1_2_x86_64"


def wheel(name: str, tag: str, **fields: Any) -> Distribution:
    return package(name, tag=tag, **fields)


def of_version(owner: Distribution, version: str) -> Distribution:
    return msgspec.structs.replace(owner, version=version, source=owner.source.replace("-1.0-", f"-{version}-"))


def environments(*owners: Distribution) -> list[list[str]]:
    """Return the names of each environment's wheels, without their folder, suffix and glibc."""
    parts = split_environments(Tree(owners, ())).each
    return [
        [owner.label.removesuffix(".whl").replace("manylinux_2_17_", "") for owner in p.distributions] for p in parts
    ]


CP311, CP312 = f"cp311-cp311-{X86}", f"cp312-cp312-{X86}"
PLUGIN, LATER = wheel("plugin", CP311), wheel("plugin", CP312)

CASES: dict[str, tuple[list[Distribution], list[list[str]]]] = {
    "one of each": (
        [PLUGIN, wheel("pjrt", f"py3-none-{X86}"), wheel("pure", "py3-none-any")],
        [["plugin-1.0-cp311-cp311-x86_64", "pjrt-1.0-py3-none-x86_64", "pure-1.0-py3-none-any"]],
    ),
    "several Pythons": (
        [PLUGIN, LATER, wheel("pjrt", f"py3-none-{X86}")],
        [
            ["plugin-1.0-cp311-cp311-x86_64", "pjrt-1.0-py3-none-x86_64"],
            ["plugin-1.0-cp312-cp312-x86_64", "pjrt-1.0-py3-none-x86_64"],
        ],
    ),
    "several Pythons of two": (
        [PLUGIN, LATER, wheel("other", CP312), wheel("other", CP311)],
        [
            ["plugin-1.0-cp311-cp311-x86_64", "other-1.0-cp311-cp311-x86_64"],
            ["plugin-1.0-cp312-cp312-x86_64", "other-1.0-cp312-cp312-x86_64"],
        ],
    ),
    "the stable ABI serves where its Python has no wheel": (
        [PLUGIN, LATER, wheel("other", CP312), wheel("other", f"cp310-abi3-{X86}")],
        [
            ["plugin-1.0-cp311-cp311-x86_64", "other-1.0-cp310-abi3-x86_64"],
            ["plugin-1.0-cp312-cp312-x86_64", "other-1.0-cp312-cp312-x86_64"],
        ],
    ),
    "several machines": (
        [wheel("one", f"py3-none-{X86}"), wheel("one", f"py3-none-{ARM}"), wheel("two", f"py3-none-{ARM}")],
        [["one-1.0-py3-none-x86_64"], ["one-1.0-py3-none-aarch64", "two-1.0-py3-none-aarch64"]],
    ),
    "glibc and musl": (
        [wheel("one", f"py3-none-{X86}"), wheel("one", f"py3-none-{MUSL}"), wheel("two", f"py3-none-{X86}")],
        [["one-1.0-py3-none-x86_64", "two-1.0-py3-none-x86_64"], [f"one-1.0-py3-none-{MUSL}"]],
    ),
    "several versions": (
        [PLUGIN, of_version(PLUGIN, "2.0"), wheel("pjrt", CP311), of_version(wheel("pjrt", CP311), "2.0")],
        [
            ["plugin-1.0-cp311-cp311-x86_64", "pjrt-1.0-cp311-cp311-x86_64"],
            ["plugin-2.0-cp311-cp311-x86_64", "pjrt-2.0-cp311-cp311-x86_64"],
        ],
    ),
    "other projects for other machines": (
        [wheel("one", f"py3-none-{X86}"), wheel("two", f"py3-none-{ARM}"), wheel("pure", "py3-none-any")],
        [
            ["one-1.0-py3-none-x86_64", "pure-1.0-py3-none-any"],
            ["two-1.0-py3-none-aarch64", "pure-1.0-py3-none-any"],
        ],
    ),
    "context alone": (
        [wheel("plugin", CP311, is_context=True), wheel("plugin", CP312, is_context=True)],
        [["plugin-1.0-cp311-cp311-x86_64"]],
    ),
    "context of the same name": (
        [PLUGIN, wheel("plugin", CP312, is_context=True), wheel("pjrt", CP312)],
        [["plugin-1.0-cp311-cp311-x86_64", "pjrt-1.0-cp312-cp312-x86_64"]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_environment_has_at_most_one_wheel_of_each_name(name: str) -> None:
    owners, expected = CASES[name]
    assert environments(*owners) == expected


def test_wheels_for_different_pythons_do_not_collide_or_serve_each_other() -> None:
    shared = data("plugin/__init__.py")
    good = library("plugin/a.so", "libb.so", runpath="$ORIGIN")
    audited = tree(
        (PLUGIN, [shared, good, library("plugin/libb.so")]), (LATER, [shared, library("plugin/a.so", "libb.so")])
    )
    assert [(finding.rule, finding.file.partition("!")[0]) for finding in find(audited)] == [
        ("unresolved-library", LATER.source)
    ]


def test_a_finding_in_a_file_shared_by_several_environments_is_reported_once() -> None:
    tool = program("pjrt/tool", mode=0o100644)
    audited = tree((PLUGIN, []), (LATER, []), (wheel("pjrt", f"py3-none-{X86}"), [tool]))
    assert [finding.rule for finding in find(audited)] == ["wrong-mode"]
