"""How ELF files were linked: writable code, executable stacks, text relocations, build ids."""

from __future__ import annotations

import pytest

from tests.support.breaches import Breach, check_breach, one
from tests.support.trees import library

BREACHES = {
    "executable-stack": Breach(
        one(library("demo/a.so", executable_stack=True)),
        "demo/a.so",
        "asks for an executable stack: newer systems refuse to dlopen it",
    ),
    "text-relocations": Breach(
        one(library("demo/a.so", text_relocations=True)),
        "demo/a.so",
        "has text relocations: its code is changed when it is loaded",
    ),
    "writable-code": Breach(
        one(library("demo/a.so", writable_code=True)),
        "demo/a.so",
        "has a segment that is both writable and executable",
    ),
    "missing-build-id": Breach(
        one(library("demo/a.so", build_id=None)),
        "demo/a.so",
        "has no build id: its debug information can't be found by it",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    check_breach(rule, BREACHES[rule])
