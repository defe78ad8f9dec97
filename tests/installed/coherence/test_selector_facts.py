"""What the sdist that chooses packages says, read from literals that anybody may have written."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.environment.package_targets import parse_literals, read_selector_facts
from tests.support.damage import unless_refused
from tests.support.example_counts import examples

if TYPE_CHECKING:
    from rocwheel.environment.coherence import WheelFacts

BUILD_INFO = """\
VERSION = '7.0.0'
LAYOUT = 'neutral'
FAMILIES = {'gfx906': {}, 'gfx90a': {}}
PACKAGES = {'meta': {'dist': 'rocm'}, 'core': {'dist': 'rocm-sdk-core'}}
REQUIRES = ['rocm-sdk-core==7.0.0']
EXTRAS = {'libraries': [('rocm-sdk-libraries==7.0.0', '')], 'win': [('a==1', "sys_platform == 'win32'")]}
SELECTED = {'device': 'rocm-sdk-device-{family}==7.0.0'}
"""


def make_sdist(folder: Path, text: bytes) -> Path:
    path = folder / "rocm-7.0.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("rocm-7.0.0/src/rocm_sdk/_build_info.py")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return path


def read(text: str | bytes) -> WheelFacts:
    with TemporaryDirectory() as folder:
        return read_selector_facts(make_sdist(Path(folder), text if isinstance(text, bytes) else text.encode()))


def test_requirements_are_those_of_all_extras_and_of_each_gpu() -> None:
    facts = read(BUILD_INFO)
    assert (facts.name, facts.version, facts.alternatives) == ("rocm", "7.0.0", frozenset())
    assert facts.requirements == (
        "rocm-sdk-core==7.0.0",
        "rocm-sdk-libraries==7.0.0; extra == 'libraries'",
        "a==1; (sys_platform == 'win32') and extra == 'win'",
        "rocm-sdk-device-gfx906==7.0.0; extra == 'device'",
        "rocm-sdk-device-gfx90a==7.0.0; extra == 'device'",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'rocm-sdk-device-{family}==7.0.0'", "'{family.x}'"),
        ("'rocm-sdk-device-{family}==7.0.0'", "'{0}'"),
        ("'rocm-sdk-device-{family}==7.0.0'", "'{'"),
        ("'rocm-sdk-device-{family}==7.0.0'", "'{family:99999999999}'"),
        ("'rocm-sdk-device-{family}==7.0.0'", "7"),
        ("'gfx906': {}", "7: {}"),
        ("'dist': 'rocm'", "'name': 'rocm'"),
        ("'meta'", "'core'"),
        ("'rocm'", "''"),
        ("'7.0.0'\n", "__import__('os').getcwd()\n"),
        ("'neutral'", "'" + "(" * 100_000),
        ("'neutral'", "(" * 100_000),
        ("'neutral'", "-" * 100_000 + "1"),
        ("'neutral'", "1" * 100_000),
        ("['rocm-sdk-core==7.0.0']", "['rocm-sdk-core==7.0.0; ' + " + "'(' * 9]"),
        ("['rocm-sdk-core==7.0.0']", "['" + "a[" * 50_000 + "']"),
        ("sys_platform == 'win32'", "(" * 50_000),
        ("'rocm-sdk-device-{family}==7.0.0'", "'a; ' + '('"),
        ("'rocm-sdk-device-{family}==7.0.0'", "'a; " + "(" * 5000 + "'"),
    ],
    ids=range(19),
)
def test_hostile_literals_are_refused_by_name(old: str, new: str) -> None:
    assert old in BUILD_INFO
    with pytest.raises(InputError, match=r"rocm-7\.0\.0\.tar\.gz"):
        read(BUILD_INFO.replace(old, new, 1))


PIECES = st.sampled_from(
    [*"(){}[]'\",:=\n\\#", "{family}", "{0}", "gfx906", "extra == 'x'", "; ", "==", "\0", "é", "None", "f''"]
)


@given(st.integers(0, len(BUILD_INFO)), st.integers(0, 12), st.lists(PIECES, max_size=4).map("".join))
@settings(max_examples=examples(100))
def test_changed_literals_are_read_or_refused(place: int, length: int, piece: str) -> None:
    changed = BUILD_INFO[:place] + piece + BUILD_INFO[place + length :]
    facts = unless_refused(lambda: read(changed), "rocm-7.0.0.tar.gz")
    assert facts is None or facts.name


@given(st.binary(max_size=60))
def test_any_bytes_are_literals_or_refused(data: bytes) -> None:
    try:
        found = parse_literals(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    assert all(name.isidentifier() for name in found)


@pytest.mark.parametrize("text", [b"FAMILIES = {{}}", b"FAMILIES = {[]: 1}"])
def test_what_python_could_not_make_is_no_literal(text: bytes) -> None:
    with pytest.raises(ValueError, match="unhashable"):
        parse_literals(text)
