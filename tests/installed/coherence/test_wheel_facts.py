"""What a wheel says and holds about GPU targets, from damaged wheels too."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.environment.package_targets import read_wheel_facts
from rocwheel.targets.declaration import encode_declaration
from tests.support.bundles import bundle_of
from tests.support.damage import damaged, unless_refused
from tests.support.example_counts import examples
from tests.support.kpack_files import make_kpack
from tests.support.wheels import make_wheel

FILES = {
    "demo/kernels.hipfb": bundle_of("gfx906", "gfx1100"),
    "demo/.kpack/blas_lib_gfx90a.kpack": make_kpack({("lib/libx.so", 0, "gfx90a"): b"code"}),
    "demo/__init__.py": b"",
}


def _make(folder: Path) -> Path:
    return make_wheel(folder, "demo", FILES, tag="py3-none-any", requires=("blas==1.0; extra == 'a'",))


with TemporaryDirectory() as made:
    WHEEL = _make(Path(made)).read_bytes()


def test_targets_are_those_of_binaries_and_archives(tmp_path: Path) -> None:
    facts = read_wheel_facts(_make(tmp_path))
    assert (facts.name, facts.version, facts.roots) == ("demo", "1.0", frozenset({"demo"}))
    assert facts.requirements == ("blas==1.0; extra == 'a'",)
    assert facts.targets == (TargetId("gfx906"), TargetId("gfx90a"), TargetId("gfx1100"))


def test_the_declaration_is_found_whatever_the_package_is_called(tmp_path: Path) -> None:
    declared = {"METADATA-1.0.dist-info/rocm_targets.json": encode_declaration([TargetId("gfx942")])}
    path = make_wheel(tmp_path, "METADATA", FILES | declared, tag="py3-none-any")
    with pytest.raises(InputError, match="declares gfx942, but its binaries carry gfx906"):
        read_wheel_facts(path)


@given(damaged([WHEEL]))
@settings(max_examples=examples(150))
def test_a_damaged_wheel_is_read_or_refused_by_name(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "demo-1.0-py3-none-any.whl"
        path.write_bytes(data)
        facts = unless_refused(lambda: read_wheel_facts(path), path.name)
        assert facts is None or facts.name


@given(st.text(max_size=40))
def test_any_requirement_is_read_or_refused_by_name(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = make_wheel(Path(folder), "demo", {}, requires=(text,))
        unless_refused(lambda: read_wheel_facts(path), path.name)
