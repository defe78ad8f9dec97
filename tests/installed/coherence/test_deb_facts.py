"""What a Debian package says and holds about GPU targets, from damaged packages too."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError
from rocwheel.environment.coherence import read_deb_facts
from rocwheel.targets.spelling import debian_field
from rocwheel.targets.target_set import parse_target_set
from tests.support.bundles import bundle_of
from tests.support.damage import damaged, unless_refused
from tests.support.debs import write_deb
from tests.support.example_counts import examples

TREE = {"./usr/lib/a.hipfb": bundle_of("gfx906", "gfx1100"), "./usr/share/doc/a/copyright": b"text"}
FIELD = "X-ROCm-GPU-Architecture: {}\n"


def _make(folder: Path, declared: str = "gfx906 gfx1100") -> Path:
    return write_deb(folder, "a", TREE, fields=f"Depends: b (>= 1), c | d\n{FIELD.format(declared)}")


with TemporaryDirectory() as made:
    DEB = _make(Path(made)).read_bytes()


def test_targets_and_relations_are_those_of_the_package(tmp_path: Path) -> None:
    facts = read_deb_facts(_make(tmp_path))
    assert (facts.name, facts.version, facts.architecture) == ("a", "6.4.3-1", "amd64")
    assert [str(choice) for choice in facts.depends] == ["b (>= 1)", "c | d"]
    assert facts.targets == (TargetId("gfx906"), TargetId("gfx1100"))


def test_the_field_that_targets_are_written_to_is_read_from_a_package(tmp_path: Path) -> None:
    field = debian_field(parse_target_set("gfx90a:xnack+ gfx1100"))
    assert field == "X-ROCm-GPU-Architecture: gfx90a:xnack+ gfx1100\n"
    facts = read_deb_facts(write_deb(tmp_path, "a", {}, fields=field))
    assert list(map(str, facts.targets)) == ["gfx90a:xnack+", "gfx1100"]


@pytest.mark.parametrize("declared", ["gfx906", "gfx906 gfx1100 gfx1030", "gfx906 radeon", "x" * 9999])
def test_a_declaration_that_is_wrong_is_named_with_its_package(declared: str, tmp_path: Path) -> None:
    found = str(read_deb_facts(_make(tmp_path, declared)).misdeclared)
    assert found.startswith(f"a declares {declared[:6]}")
    assert len(found) < 1500


def test_a_declaration_of_malformed_features_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.deb") as error:
        read_deb_facts(_make(tmp_path, "gfx906:wild+"))
    assert len(str(error.value)) < 1500


def test_a_package_with_code_for_another_machine_is_refused(tmp_path: Path) -> None:
    library = b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\xb7\0" + bytes(44)
    path = write_deb(tmp_path, "a", {**TREE, "./usr/lib/liba.so": library})
    with pytest.raises(InputError) as error:
        read_deb_facts(path)
    assert (
        str(error.value) == f"{path}: is a package for amd64, but holds code for arm64: usr/lib/liba.so. Get it again."
    )


@given(damaged([DEB]))
@settings(max_examples=examples(150))
def test_a_damaged_package_is_read_or_refused_by_name(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.deb"
        path.write_bytes(data)
        facts = unless_refused(lambda: read_deb_facts(path), "a.deb")
        assert facts is None or facts.architecture


@given(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=40))
def test_any_declaration_is_read_or_refused_by_name(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = write_deb(Path(folder), "a", {}, fields=FIELD.format(text))
        unless_refused(lambda: read_deb_facts(path), "a.deb")
