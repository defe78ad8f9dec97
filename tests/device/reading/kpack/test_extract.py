"""Tests of taking code out of kpack archives and split libraries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.device.reading.extract import extract_code
from rocwheel.device.reading.extraction import MatchRule
from tests.support.kpack_files import by_hand, make_kpack, split_two, toc
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from rocwheel.device.reading.extraction import ExtractedCode

CODE = (FIXTURES / "elf/gfx906.co").read_bytes()


def extract(source: Path, dest_dir: Path, *targets: str, **options: object) -> tuple[ExtractedCode, ...]:
    return extract_code(source, dest_dir, [parse_target_id(target) for target in targets], **options)  # type: ignore[arg-type]


def names(codes: tuple[ExtractedCode, ...]) -> list[str]:
    return [Path(code.path).name for code in codes]


def archive(folder: Path, scheme: Scheme = Scheme.ZSTD) -> Path:
    path = folder / "x.kpack"
    path.write_bytes(
        make_kpack({("a", 0, "gfx906|gfx906:xnack-"): CODE, ("b", 0, "gfx906"): CODE + b"b"}, scheme=scheme)
    )
    return path


@pytest.mark.parametrize("scheme", Scheme)
def test_every_code_object_of_an_archive_is_written_once(tmp_path: Path, scheme: Scheme) -> None:
    codes = extract(archive(tmp_path, scheme), tmp_path / "out")
    assert names(codes) == ["x.kpack.0.gfx906.co", "x.kpack.1.gfx906.co"]
    assert [Path(code.path).read_bytes() for code in codes] == [CODE, CODE + b"b"]


def test_code_for_a_target_is_the_one_of_that_spelling(tmp_path: Path) -> None:
    codes = extract(archive(tmp_path), tmp_path / "out", "gfx906:xnack-", allow_missing=True)
    assert [(code.target, code.bundle, code.size) for code in codes] == [("gfx906:xnack-", 0, len(CODE))]


def test_code_is_chosen_as_runtimes_do(tmp_path: Path) -> None:
    codes = extract(archive(tmp_path), tmp_path / "out", "gfx906:xnack-", rule=MatchRule.STOCK)
    assert [(code.target, code.bundle) for code in codes] == [("gfx906:xnack-", 0), ("gfx906", 1)]


def test_units_without_such_code_are_reported_together(tmp_path: Path) -> None:
    path = archive(tmp_path)
    with pytest.raises(RocwheelError) as caught:
        extract(path, tmp_path / "out", "gfx908")
    assert str(caught.value).splitlines()[1:] == [
        (
            f"  {path}: offset 0x0: has no code for gfx908 under a#0 by the rule 'exact'; expected one of its targets "
            "gfx906:xnack-, gfx906"
        ),
        (
            f"  {path}: offset 0x0: has no code for gfx908 under b#0 by the rule 'exact'; expected one of its targets "
            "gfx906"
        ),
    ]
    assert not (tmp_path / "out").exists()


def test_nothing_is_left_of_an_archive_with_a_damaged_frame(tmp_path: Path) -> None:
    path = archive(tmp_path)
    data = bytearray(path.read_bytes())
    second = data.index(b"\x28\xb5\x2f\xfd", 80)
    data[second + 10 : second + 20] = bytes(10)
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: offset {second:#x}: a damaged zstd frame"):
        extract(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_code_beyond_the_limit_is_not_written(tmp_path: Path) -> None:
    path = archive(tmp_path)
    message = (
        f"{path}: offset 0x48: a#0 for gfx906 has {len(CODE)} bytes; expected at most 100. Allow more with --limit."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        extract(path, tmp_path / "out", limit=100)


def test_target_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(by_hand(toc(gfx_arches=["a b"], toc={"a#0": {"a b": {"ordinal": 0, "original_size": 8}}})))
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: 'a#0': 'a b' is not a target id"):
        extract(path, tmp_path / "out")


@needs_compiler
def test_code_of_a_split_library_is_that_of_the_original(tmp_path: Path) -> None:
    split = extract(split_two(tmp_path), tmp_path / "split")
    original = extract(FIXTURES / "v22/libtwo.plain.so", tmp_path / "original")
    taken = {(code.bundle, code.target): Path(code.path).read_bytes() for code in split}
    assert taken == {(code.bundle, code.target): Path(code.path).read_bytes() for code in original}
    assert {code.found_in for code in split} == {
        str(tmp_path / f".kpack/two_{target}.kpack") for target in ("gfx1030", "gfx906", "gfx90a")
    }


@needs_compiler
def test_library_whose_archives_are_missing_is_refused(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    for path in (tmp_path / ".kpack").iterdir():
        path.unlink()
    message = (
        f"{library}: its code is in kpack archives that are not there: ../.kpack/two_@GFXARCH@.kpack. "
        "Install the device package for the GPU beside it."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        extract(library, tmp_path / "out")


@needs_compiler
def test_library_with_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    (tmp_path / ".kpack/two_gfx906.kpack").write_bytes(b"KPAK")
    with pytest.raises(InputError, match=r"two_gfx906.kpack: offset 0x0: a kpack archive of 4 bytes"):
        extract(library, tmp_path / "out")
