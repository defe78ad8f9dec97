"""Licence expressions: what is one, and what holds for several parts together."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.metadata.license_expression import expression_fault, join_expressions


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["MIT"], "MIT"),
        (["NCSA", "MIT", "MIT"], "MIT AND NCSA"),
        (["Apache-2.0 WITH LLVM-exception AND NCSA", "NCSA"], "Apache-2.0 WITH LLVM-exception AND NCSA"),
        (["MIT", "LGPL-3.0-or-later OR GPL-2.0-or-later"], "(LGPL-3.0-or-later OR GPL-2.0-or-later) AND MIT"),
        (["(0BSD OR MIT) AND Zlib", "MIT"], "(0BSD OR MIT) AND Zlib AND MIT"),
        (["MIT AND (0BSD OR Zlib)", "MIT"], "(MIT AND (0BSD OR Zlib)) AND MIT"),
    ],
)
def test_the_licence_of_a_whole_names_those_of_its_parts_once(parts: list[str], whole: str) -> None:
    assert join_expressions(parts) == whole


@pytest.mark.parametrize("parts", [[], ["MIT", None], [None]])
def test_a_part_of_unknown_licence_leaves_that_of_the_whole_unknown(parts: list[str | None]) -> None:
    assert join_expressions(parts) is None


@pytest.mark.parametrize("text", ["MIT", "apache-2.0 with LLVM-exception", "(MIT OR 0BSD) AND NCSA", "LicenseRef-Own"])
def test_an_expression_has_no_fault(text: str) -> None:
    assert not expression_fault(text)


@pytest.mark.parametrize("text", ["", "Banana", "MIT AND", "MIT OR (NCSA", "<b>MIT</b>", "MIT\nAND NCSA \0"])
def test_what_is_no_expression_has_one(text: str) -> None:
    assert expression_fault(text)
