"""Tests of `rocwheel.environment.package_targets`."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.environment.package_targets import parse_literals, read_deb_facts, read_selector_facts, read_wheel_facts
from rocwheel.targets.declaration import encode_declaration
from rocwheel.targets.spelling import debian_field
from rocwheel.targets.target_set import parse_target_set
from tests.support.bundles import bundle_of
from tests.support.damage import damaged, unless_refused
from tests.support.debs import write_deb
from tests.support.example_counts import examples
from tests.support.kpack_files import make_kpack
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from rocwheel.environment.coherence import WheelFacts


FILES = {
    "demo/kernels.hipfb": bundle_of("gfx906", "gfx1100"),
    "demo/.kpack/blas_lib_gfx90a.kpack": make_kpack({("lib/libx.so", 0, "gfx90a"): b"code"}),
    "demo/__init__.py": b"",
}


def _make(folder: Path) -> Path:
    return make_wheel(folder, "demo", FILES, tag="py3-none-any", requires=("blas==1.0; extra == 'a'",))


with TemporaryDirectory() as made:
    WHEEL = _make(Path(made)).read_bytes()


def test_targets_come_from_binaries_and_archives(tmp_path: Path) -> None:
    facts = read_wheel_facts(_make(tmp_path))
    assert (facts.name, facts.version, facts.roots) == ("demo", "1.0", frozenset({"demo"}))
    assert facts.requirements == ("blas==1.0; extra == 'a'",)
    assert facts.targets == (TargetId("gfx906"), TargetId("gfx90a"), TargetId("gfx1100"))


def test_the_declaration_is_found_regardless_of_the_package_name(tmp_path: Path) -> None:
    declared = {"METADATA-1.0.dist-info/rocm_targets.json": encode_declaration([TargetId("gfx942")])}
    path = make_wheel(tmp_path, "METADATA", FILES | declared, tag="py3-none-any")
    with pytest.raises(InputError, match="declares gfx942, but its binaries have code for gfx906"):
        read_wheel_facts(path)


@given(damaged([WHEEL]))
@settings(max_examples=examples(150))
def test_a_damaged_wheel_is_read_or_refused_with_its_name(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "demo-1.0-py3-none-any.whl"
        path.write_bytes(data)
        facts = unless_refused(lambda: read_wheel_facts(path), path.name)
        assert facts is None or facts.name


@given(st.text(max_size=40))
def test_any_requirement_is_read_or_refused_with_the_name_of_the_wheel(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = make_wheel(Path(folder), "demo", {}, requires=(text,))
        unless_refused(lambda: read_wheel_facts(path), path.name)


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


def test_the_selector_requires_the_packages_of_all_extras_and_gpus() -> None:
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
def test_hostile_literals_are_refused_with_the_name_of_the_file(old: str, new: str) -> None:
    assert old in BUILD_INFO
    with pytest.raises(InputError, match=r"rocm-7\.0\.0\.tar\.gz"):
        read(BUILD_INFO.replace(old, new, 1))


PIECES = st.sampled_from(
    [*"(){}[]'\",:=\n\\#", "{family}", "{0}", "gfx906", "extra == 'x'", "; ", "==", "\0", "é", "None", "f''"]
)


@given(st.integers(0, len(BUILD_INFO)), st.integers(0, 12), st.lists(PIECES, max_size=4).map("".join))
@settings(max_examples=examples(100))
def test_modified_literals_are_read_or_refused(place: int, length: int, piece: str) -> None:
    changed = BUILD_INFO[:place] + piece + BUILD_INFO[place + length :]
    facts = unless_refused(lambda: read(changed), "rocm-7.0.0.tar.gz")
    assert facts is None or facts.name


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_as_literals_or_refused(data: bytes) -> None:
    try:
        found = parse_literals(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    assert all(name.isidentifier() for name in found)


@pytest.mark.parametrize("text", [b"FAMILIES = {{}}", b"FAMILIES = {[]: 1}"])
def test_unhashable_literals_are_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="unhashable"):
        parse_literals(text)


TREE = {"./usr/lib/a.hipfb": bundle_of("gfx906", "gfx1100"), "./usr/share/doc/a/copyright": b"text"}
FIELD = "X-ROCm-GPU-Architecture: {}\n"


def _make_deb(folder: Path, declared: str = "gfx906 gfx1100") -> Path:
    return write_deb(folder, "a", TREE, fields=f"Depends: b (>= 1), c | d\n{FIELD.format(declared)}")


with TemporaryDirectory() as made:
    DEB = _make_deb(Path(made)).read_bytes()


def test_targets_and_relations_are_read_from_the_package(tmp_path: Path) -> None:
    facts = read_deb_facts(_make_deb(tmp_path))
    assert (facts.name, facts.version, facts.architecture) == ("a", "6.4.3-1", "amd64")
    assert [str(choice) for choice in facts.depends] == ["b (>= 1)", "c | d"]
    assert facts.targets == (TargetId("gfx906"), TargetId("gfx1100"))


def test_the_debian_field_written_for_targets_can_be_read_back(tmp_path: Path) -> None:
    field = debian_field(parse_target_set("gfx90a:xnack+ gfx1100"))
    assert field == "X-ROCm-GPU-Architecture: gfx90a:xnack+ gfx1100\n"
    facts = read_deb_facts(write_deb(tmp_path, "a", {}, fields=field))
    assert list(map(str, facts.targets)) == ["gfx90a:xnack+", "gfx1100"]


@pytest.mark.parametrize("declared", ["gfx906", "gfx906 gfx1100 gfx1030", "gfx906 radeon", "x" * 9999])
def test_a_wrong_declaration_is_reported_with_its_package(declared: str, tmp_path: Path) -> None:
    found = str(read_deb_facts(_make_deb(tmp_path, declared)).misdeclared)
    assert found.startswith(f"a declares {declared[:6]}")
    assert len(found) < 1500


def test_a_declaration_with_malformed_features_is_refused_with_the_name_of_the_package(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.deb") as error:
        read_deb_facts(_make_deb(tmp_path, "gfx906:wild+"))
    assert len(str(error.value)) < 1500


def test_a_package_with_code_for_another_machine_is_refused(tmp_path: Path) -> None:
    library = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\xb7\0" + bytes(44)
    path = write_deb(tmp_path, "a", {**TREE, "./usr/lib/liba.so": library})
    with pytest.raises(InputError) as error:
        read_deb_facts(path)
    assert (
        str(error.value)
        == f"{path}: is a package for amd64, but contains code for arm64: usr/lib/liba.so. Download the package again."
    )


@given(damaged([DEB]))
@settings(max_examples=examples(150))
def test_a_damaged_package_is_read_or_refused_with_its_name(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.deb"
        path.write_bytes(data)
        facts = unless_refused(lambda: read_deb_facts(path), "a.deb")
        assert facts is None or facts.architecture


@given(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=40))
def test_any_declaration_is_read_or_refused_with_the_name_of_the_package(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = write_deb(Path(folder), "a", {}, fields=FIELD.format(text))
        unless_refused(lambda: read_deb_facts(path), "a.deb")
