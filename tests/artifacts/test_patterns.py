"""Path patterns in the manner of Ant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.patterns import PathPatterns
from rocwheel.core.errors import ProblemsError


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("lib/libx.so", "lib/libx.so", True),
        ("lib/libx.so", "lib/libxaso", False),
        ("*.so", "libx.so", True),
        ("*.so", "lib/libx.so", False),
        ("lib/*/x", "lib/a/x", True),
        ("lib/*/x", "lib/a/b/x", False),
        ("lib*", "lib", True),
        ("**/*.so", "libx.so", True),
        ("**/*.so", "a/b/libx.so", True),
        ("**/*.so.*", "lib/libx.so", False),
        ("**/cmake/**", "lib/cmake/hip/hip-config.cmake", True),
        ("**/cmake/**", "cmake", True),
        ("**/cmake/**", "lib/cmakefiles/x", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/xb", False),
        ("share/**", "share", True),
        ("share/**", "share/a/b", True),
        ("share/**", "shared/a", False),
        ("**", "a/b", True),
        ("**/**", "a", True),
        ("a/**/**", "a", True),
        ("**/**/b", "b", True),
        ("x**y", "x1y", True),
        ("x**y", "x/y", False),
        ("**x", "a/x", False),
        ("lib?", "lib64", False),
        ("lib?", "lib6", True),
        ("lib?", "lib", False),
        ("a?b", "a/b", False),
        ("[ab].(c)+", "[ab].(c)+", True),
        ("[ab]", "a", False),
        ("LIB", "lib", False),
        ("a*b", "a\nb", True),
    ],
)
def test_a_pattern_matches_the_same_paths_as_in_ant(pattern: str, path: str, matches: bool) -> None:
    assert PathPatterns([pattern]).matches(path) is matches


def test_without_include_patterns_every_path_is_included() -> None:
    assert PathPatterns().matches("any/path")


def test_exclude_patterns_win_over_include_patterns() -> None:
    patterns = PathPatterns(["lib/**"], ["**/*.a"])
    assert patterns.matches("lib/libx.so")
    assert not patterns.matches("lib/libx.a")
    assert not patterns.matches("bin/x")


def test_a_path_needs_to_match_only_one_of_several_patterns() -> None:
    patterns = PathPatterns(["bin/*", "lib/*"])
    assert [path for path in ("bin/a", "lib/b", "etc/c") if patterns.matches(path)] == ["bin/a", "lib/b"]


@pytest.mark.parametrize("pattern", ["", "/lib", "lib/", "lib//x", "../x", "./x"])
def test_a_pattern_that_cannot_match_any_path_is_refused(pattern: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        PathPatterns(["fine/*"], [pattern])
    assert str(caught.value) == (
        f"path patterns: 1 problem\n  {pattern!r}: can't match any path; expected segments separated by single slashes"
    )


segments = st.text(st.sampled_from("ab"), min_size=1, max_size=3)
pattern_segments = st.one_of(st.just("**"), st.text(st.sampled_from("ab*?"), min_size=1, max_size=3))


def _matches_segment(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return _matches_segment(pattern[1:], text) or (text != "" and _matches_segment(pattern, text[1:]))
    return text != "" and pattern[0] in ("?", text[0]) and _matches_segment(pattern[1:], text[1:])


def _matches(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return _matches(pattern[1:], path) or (path != [] and _matches(pattern, path[1:]))
    return path != [] and _matches_segment(pattern[0], path[0]) and _matches(pattern[1:], path[1:])


@given(st.lists(pattern_segments, min_size=1, max_size=4), st.lists(segments, min_size=1, max_size=4))
def test_patterns_agree_with_a_segment_by_segment_definition(pattern: list[str], path: list[str]) -> None:
    assert PathPatterns(["/".join(pattern)]).matches("/".join(path)) is _matches(pattern, path)
