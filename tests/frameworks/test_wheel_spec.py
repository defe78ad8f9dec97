"""Tests of `rocwheel.frameworks.wheel_spec`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.starlark import JaxWheel, jax_wheel_description
from rocwheel.frameworks.wheel_spec import (
    SpecError,
    WheelSpec,
    make_spec,
    pair_specifier,
    parse_values,
    placeholder_names,
    read_spec,
    settable_values,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_placeholders_are_found_in_keys_and_values_but_not_in_the_values_table() -> None:
    data = {"name": "a{rocm}", "texts": {"{place}/x": "{text}"}, "files": [{"from": "{file}"}], "values": {"x": "{y}"}}
    assert placeholder_names(data) == {"rocm", "place", "text", "file"}


@pytest.mark.parametrize(("kind", "names"), [("pjrt", {"init", "rocm", "version"}), ("plugin", {"rocm", "version"})])
def test_the_settable_values_of_the_shipped_descriptions_are_known(kind: JaxWheel, names: set[str]) -> None:
    assert settable_values(jax_wheel_description(kind)) == names


def test_set_options_are_parsed() -> None:
    assert parse_values(["rocm=7", "x=a=b"], {"rocm", "x"}) == {"rocm": "7", "x": "a=b"}
    with pytest.raises(InputError) as caught:
        parse_values(["rocm"], {"rocm"})
    assert str(caught.value) == "--set: is 'rocm'; expected NAME=VALUE"


@pytest.mark.parametrize(("known", "expected"), [({"rocm", "init"}, "one of init, rocm"), (set(), "no values")])
def test_an_unused_value_is_refused(known: set[str], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_values(["rocn=8"], known)
    assert str(caught.value) == f"--set: sets rocn, but the description has no such placeholder; expected {expected}"


def test_conflicting_values_are_refused() -> None:
    assert parse_values(["version=1.0"], (), {"version": "1.0"}) == {"version": "1.0"}
    with pytest.raises(InputError) as caught:
        parse_values(["version=2.0"], (), {"version": "1.0"})
    assert (
        str(caught.value) == "--set: sets version to '2.0', but version already has the value '1.0'; expected one value"
    )


SMALLEST = {"schema": 1, "name": "demo", "version": "1.0", "files": []}


def make(known: dict[str, str] | None = None, /, **fields: object) -> WheelSpec:
    return make_spec({**SMALLEST, **fields}, known or {}, source="demo.toml")


@pytest.mark.parametrize(
    ("version", "specifier"),
    [
        ("0.12.0", "==0.12.0.*"),
        ("0.12.0.post1", "==0.12.0.*"),
        ("0.12.0+rocm7.2", "==0.12.0.*"),
        ("0.12.0rc1", "==0.12.0rc1"),
        ("0.12.0.dev20261120", "==0.12.0.dev20261120"),
        ("0.12.0.dev20261120+local", "==0.12.0.dev20261120"),
        ("1!2.0", "==1!2.0.0.*"),
        ("1.0", "==1.0.0.*"),
        ("1", "==1.0.0.*"),
        ("1.2.3.4", "==1.2.3.4.*"),
    ],
)
def test_the_pair_specifier_matches_any_build_of_the_release(version: str, specifier: str) -> None:
    assert pair_specifier(version) == specifier


@pytest.mark.parametrize("published", ["0.12.0", "0.12.0.post1", "0.12.0+rocm7", "0.12.0.post6+rocm7.2"])
def test_a_post_release_or_local_version_satisfies_the_pair_specifier(published: str) -> None:
    assert Version(published) in SpecifierSet(pair_specifier("0.12.0"))


@pytest.mark.parametrize("version", ["1.0", "1.0.0"])
def test_another_micro_version_does_not_satisfy_the_pair_specifier(version: str) -> None:
    specifier = SpecifierSet(pair_specifier(version))
    assert [other for other in ("1.0", "1.0.post2", "1.0.0", "1.0.5", "1.1") if Version(other) in specifier] == [
        "1.0",
        "1.0.post2",
        "1.0.0",
    ]


@given(
    release=st.lists(st.integers(0, 99), min_size=1, max_size=4),
    suffix=st.sampled_from(["", "a1", "rc2", ".post3", ".dev4", "+local.1", "rc1.post2", ".post1.dev2"]),
)
def test_every_version_satisfies_its_own_pair_specifier(release: list[int], suffix: str) -> None:
    version = ".".join(map(str, release)) + suffix
    assert Version(version) in SpecifierSet(pair_specifier(version))


def test_placeholders_are_replaced_in_names_values_and_keys() -> None:
    spec = make(
        {"rocm": "7"},
        name="jax-rocm{rocm}-plugin",
        requires=["jax-rocm{rocm}-pjrt{pair}"],
        texts={"jax_rocm{rocm}/__init__.py": "rocm = {rocm}"},
    )
    assert spec.name == "jax-rocm7-plugin"
    assert spec.requires == ("jax-rocm7-pjrt==1.0.0.*",)
    assert spec.texts == {"jax_rocm7/__init__.py": "rocm = 7"}


def test_values_on_the_command_line_override_those_in_the_description() -> None:
    spec = make({"rocm": "8"}, name="a{rocm}{other}", values={"rocm": "7", "other": "x"})
    assert spec.name == "a8x"


def test_the_version_on_the_command_line_takes_precedence() -> None:
    assert make({"version": "2.0"}, summary="{version}").summary == "2.0"


@pytest.mark.parametrize(
    ("given", "normal"),
    [("0.12.0-rc1", "0.12.0rc1"), ("v0.12.0", "0.12.0"), ("1.0-1", "1.0.post1"), ("1+A_b", "1+a.b")],
)
def test_a_version_is_normalized_everywhere(given: str, normal: str) -> None:
    made = make({"version": given}, summary="for {version}")
    assert (made.version, made.summary) == (normal, f"for {normal}")


def test_a_placeholder_without_a_value_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        make(name="jax-rocm{rocm}")
    assert str(caught.value) == (
        "demo.toml: uses the placeholder {rocm}, which has no value; expected one of pair, version. "
        "Set the value with --set rocm=VALUE."
    )


def test_a_malformed_version_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        make(version="one")
    assert str(caught.value) == (
        "demo.toml: has the version 'one'; expected a version such as '0.12.0' (PEP 440). Add --version."
    )


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("version = 1.10", "version = 1.1"),
        ("version = 0x10", "version = 16"),
        ("version = 1e3", "version = 1000.0"),
        ("version = 3", "version = 3"),
        ("version = true", "version = True"),
        ("version = 2026-01-02", "version = 2026-01-02"),
        ('version = "1"\n[values]\nrocm = 7.10', "rocm = 7.1"),
        ('version = "1"\n[values]\nversion = 1.10', "version = 1.1"),
    ],
)
def test_an_unquoted_version_or_value_is_refused(field: str, shown: str, tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text(f'schema = 1\nname = "demo"\nfiles = []\n{field}\n')
    with pytest.raises(SpecError) as caught:
        make_spec(read_spec(path), {}, source="demo.toml")
    assert str(caught.value) == (
        f"demo.toml: has {shown}, which isn't a string; expected a string in quotes. Put the value in quotes."
    )


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(SpecError) as caught:
        make(licenses="MIT")
    assert str(caught.value) == (
        "demo.toml: doesn't describe a wheel: Object contains unknown field `licenses`. See docs/jax.md for the fields."
    )


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(ProblemsError) as caught:
        make(name="-", texts={"/etc/x": "", "a/../../b": ""}, license="MIT")
    assert str(caught.value) == (
        "demo.toml: 4 problems\n"
        "  demo.toml: '-' isn't a valid distribution name; expected letters and digits, separated by single -, _, "
        "or . characters\n"
        "  demo.toml: '/etc/x' isn't a valid path; expected a relative path in site-packages\n"
        "  demo.toml: 'a/../../b' isn't a valid path; expected a relative path in site-packages\n"
        "  demo.toml: declares the license MIT without a license text; expected license-files"
    )


def test_text_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "demo.toml"
    path.write_text("name = ")
    with pytest.raises(SpecError) as caught:
        read_spec(path)
    assert re.fullmatch(rf"{path}: isn't valid TOML: .* See docs/jax\.md for the fields\.", str(caught.value))


def test_a_missing_description_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(tmp_path / "demo.toml")
    assert str(caught.value) == f"{tmp_path / 'demo.toml'}: can't be read (No such file or directory). Check --spec."


@pytest.mark.parametrize("kind", ["pjrt", "plugin"])
def test_the_shipped_descriptions_are_complete(kind: JaxWheel) -> None:
    spec = make_spec(jax_wheel_description(kind), {"rocm": "7", "version": "0.12.0"}, source=kind)
    assert spec.name == f"jax-rocm7-{kind}"
    assert spec.version == "0.12.0"


@pytest.mark.parametrize(
    ("group", "name", "value", "problem"),
    [
        ("jax plugins", "x", "a", "group 'jax plugins'; expected words separated by dots"),
        ("g]\n[h", "x", "a", "group 'g]\\n[h'; expected words separated by dots"),
        ("g", "x = y", "a", "name 'x = y' in g; expected letters, digits, and -_."),
        ("g", "", "a", "name '' in g; expected letters, digits, and -_."),
        ("console_scripts", "a/b", "a:b", "name 'a/b' in console_scripts; expected letters, digits, and -_."),
        ("g", "x", "a b", "x = 'a b' in g; expected MODULE or MODULE:OBJECT"),
        ("g", "x", "a\ny = b", "x = 'a\\ny = b' in g; expected MODULE or MODULE:OBJECT"),
        ("console_scripts", "x", "a.b", "x = 'a.b' in console_scripts; expected MODULE:FUNCTION"),
    ],
)
def test_malformed_entry_points_are_refused(group: str, name: str, value: str, problem: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        make(**{"entry-points": {group: {name: value}}})
    (found,) = caught.value.problems
    assert str(found).partition("has the entry point ")[2] == problem


@pytest.mark.parametrize("value", ["a", "a.b", "a:b", "a.b:c.d", "a : b", "a:b [extra]"])
def test_every_form_of_entry_point_is_accepted(value: str) -> None:
    assert make(**{"entry-points": {"a.group": {"a name": value}}}).entry_points == {"a.group": {"a name": value}}


@pytest.mark.parametrize("wanted", ["", ".", "/etc/passwd"])
def test_an_input_that_is_not_a_path_suffix_is_refused(wanted: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        make(files=[{"from": wanted, "to": "a/"}])
    (problem,) = caught.value.problems
    assert str(problem) == (
        f"demo.toml: has the input {wanted!r}; expected the end of a file's path, such as pjrt/plugin.so"
    )


def test_a_malformed_requires_python_is_refused() -> None:
    with pytest.raises(ProblemsError) as caught:
        make(**{"requires-python": "3.11+"})
    (problem,) = caught.value.problems
    assert str(problem) == "demo.toml: has requires-python '3.11+'; expected specifiers such as >=3.11"


def test_values_that_are_not_a_table_are_refused() -> None:
    with pytest.raises(SpecError) as caught:
        make(values=3)
    assert str(caught.value) == "demo.toml: has 3 as [values]; expected a table of names and values"


@pytest.mark.parametrize("entry", ["lib", "/../lib", "$$ORIGIN/..", "/home/me/lib"])
def test_a_run_path_entry_that_is_always_wrong_cannot_be_allowed(entry: str) -> None:
    with pytest.raises(ProblemsError, match=r"demo.toml: system-run-paths: "):
        make(**{"system-run-paths": ["/opt/rocm/lib", entry]})
