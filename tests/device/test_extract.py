"""Tests of `rocwheel.device.extract`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.device.edit_bundles import bundle_parts
from rocwheel.device.extract import MatchRule, extract_code
from rocwheel.targets.target_set import parse_target_set
from tests.support.damage import damaged
from tests.support.kpack_files import by_hand, make_kpack, split_two, toc
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from rocwheel.device.extract import ExtractedCode


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
def test_each_code_object_of_an_archive_is_written_once(tmp_path: Path, scheme: Scheme) -> None:
    codes = extract(archive(tmp_path, scheme), tmp_path / "out")
    assert names(codes) == ["x.kpack.0.gfx906.co", "x.kpack.1.gfx906.co"]
    assert [Path(code.path).read_bytes() for code in codes] == [CODE, CODE + b"b"]


def test_the_exact_rule_selects_code_with_the_same_target_spelling(tmp_path: Path) -> None:
    codes = extract(archive(tmp_path), tmp_path / "out", "gfx906:xnack-", allow_missing=True)
    assert [(code.target, code.bundle, code.size) for code in codes] == [("gfx906:xnack-", 0, len(CODE))]


def test_the_stock_rule_selects_the_code_that_runtimes_use(tmp_path: Path) -> None:
    codes = extract(archive(tmp_path), tmp_path / "out", "gfx906:xnack-", rule=MatchRule.STOCK)
    assert [(code.target, code.bundle) for code in codes] == [("gfx906:xnack-", 0), ("gfx906", 1)]


def test_units_without_matching_code_are_reported_together(tmp_path: Path) -> None:
    path = archive(tmp_path)
    with pytest.raises(RocwheelError) as caught:
        extract(path, tmp_path / "out", "gfx908")
    assert str(caught.value).splitlines()[1:] == [
        (
            f"  {path}: offset 0x0: has no code for gfx908 under a#0 according to the rule 'exact'; expected "
            f"one of its targets "
            "gfx906, gfx906:xnack-"
        ),
        (
            f"  {path}: offset 0x0: has no code for gfx908 under b#0 according to the rule 'exact'; expected "
            f"one of its targets "
            "gfx906"
        ),
    ]
    assert not (tmp_path / "out").exists()


def test_an_archive_with_a_damaged_frame_leaves_no_output(tmp_path: Path) -> None:
    path = archive(tmp_path)
    data = bytearray(path.read_bytes())
    second = data.index(b"\x28\xb5\x2f\xfd", 80)
    data[second + 10 : second + 20] = bytes(10)
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: offset {second:#x}: a damaged zstd frame"):
        extract(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_code_above_the_limit_is_not_written(tmp_path: Path) -> None:
    path = archive(tmp_path)
    message = (
        f"{path}: offset 0x48: a#0 for gfx906 has {len(CODE)} bytes; expected at most 100. Set a higher limit "
        "with --limit."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        extract(path, tmp_path / "out", limit=100)


def test_an_invalid_target_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(by_hand(toc(gfx_arches=["a b"], toc={"a#0": {"a b": {"ordinal": 0, "original_size": 8}}})))
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: 'a#0': 'a b' isn't a target ID"):
        extract(path, tmp_path / "out")


@needs_compiler
def test_the_code_of_a_split_library_equals_the_original(tmp_path: Path) -> None:
    split = extract(split_two(tmp_path), tmp_path / "split")
    original = extract(FIXTURES / "v22/libtwo.plain.so", tmp_path / "original")
    taken = {(code.bundle, code.target): Path(code.path).read_bytes() for code in split}
    assert taken == {(code.bundle, code.target): Path(code.path).read_bytes() for code in original}
    assert {code.found_in for code in split} == {
        str(tmp_path / f".kpack/two_{target}.kpack") for target in ("gfx1030", "gfx906", "gfx90a")
    }


@needs_compiler
def test_a_library_with_missing_archives_is_refused(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    for path in (tmp_path / ".kpack").iterdir():
        path.unlink()
    message = (
        f"{library}: the code is in kpack archives that don't exist: ../.kpack/two_@GFXARCH@.kpack. "
        "Install the device package for the GPU in the same environment."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        extract(library, tmp_path / "out")


@needs_compiler
def test_a_library_with_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    (tmp_path / ".kpack/two_gfx906.kpack").write_bytes(b"KPAK")
    with pytest.raises(InputError, match=r"two_gfx906.kpack: offset 0x0: a kpack archive of 4 bytes"):
        extract(library, tmp_path / "out")


Require = Callable[[str, str], None]


def extract_of_extract(source: Path, dest_dir: Path, *targets: str) -> list[str]:
    return [Path(code.path).name for code in extract_code(source, dest_dir, parse_target_set(";".join(targets)).ids)]


def extract_all(source: Path, dest_dir: Path) -> list[str]:
    return [Path(code.path).name for code in extract_code(source, dest_dir, ())]


@pytest.mark.parametrize("llvm", ["19", "22"])
def test_the_bundler_finds_the_same_images_in_object_files_of_the_old_driver(
    tmp_path: Path, require_tool: Require, llvm: str
) -> None:
    bundler, source = f"clang-offload-bundler-{llvm}", FIXTURES / "v19/saxpy.rdc.o"
    require_tool(bundler, f"clang-tools-{llvm}")
    assert extract_of_extract(source, tmp_path, "gfx906") == ["saxpy.rdc.o.0.gfx906.bc"]
    target, stock = "--targets=hip-amdgcn-amd-amdhsa--gfx906", tmp_path / "stock.bc"
    subprocess.run([bundler, "--type=o", "--unbundle", f"--input={source}", target, f"--output={stock}"], check=True)
    assert (tmp_path / "saxpy.rdc.o.0.gfx906.bc").read_bytes() == stock.read_bytes()


def test_the_packager_finds_the_same_images_in_object_files_of_the_new_driver(
    tmp_path: Path, require_tool: Require
) -> None:
    require_tool("clang-22", "clang-22")
    require_tool("clang-offload-packager-22", "clang-tools-22")
    source = tmp_path / "k.hip"
    source.write_text('extern "C" __attribute__((device)) void f() {}')
    options = ["-nogpulib", "-nogpuinc", "--offload-new-driver", "-fgpu-rdc", "--offload-arch=gfx90a:xnack+"]
    subprocess.run(["clang-22", "-x", "hip", *options, "-c", source, "-o", tmp_path / "k.o"], check=True)
    assert extract_all(tmp_path / "k.o", tmp_path) == ["k.o.0.gfx90a-xnack+.bc"]
    image = f"--image=file={tmp_path / 'stock.bc'},arch=gfx90a:xnack+"
    subprocess.run(["clang-offload-packager-22", tmp_path / "k.o", image], check=True)
    assert (tmp_path / "k.o.0.gfx90a-xnack+.bc").read_bytes() == (tmp_path / "stock.bc").read_bytes()


def test_bundles_and_images_of_a_library_are_numbered_consecutively(tmp_path: Path, require_tool: Require) -> None:
    require_tool("ar", "binutils")
    archive = tmp_path / "libx.a"
    members = [FIXTURES / name for name in ("v19/vadd.plain.o", "elf/library.o", "v23/saxpy.rdc.o")]
    subprocess.run(["ar", "rcs", archive, *members], check=True)
    extracted = extract_code(archive, tmp_path / "code", parse_target_set("gfx906").ids)
    assert [(Path(code.path).name, code.bundle, code.found_in) for code in extracted] == [
        ("libx.a.0.gfx906.co", 0, f"{archive}(vadd.plain.o)"),
        ("libx.a.1.gfx906.bc", 1, f"{archive}(saxpy.rdc.o)"),
    ]


def test_a_code_object_is_extracted_as_itself(tmp_path: Path) -> None:
    source = FIXTURES / "elf/gfx906.co"
    assert extract_all(source, tmp_path) == ["gfx906.co.0.gfx906.co"]
    assert (tmp_path / "gfx906.co.0.gfx906.co").read_bytes() == source.read_bytes()
    found = f"{source}: offset 0x0: has no code for gfx90a according to the rule 'exact'; expected one of its targets "
    found += "gfx906"
    with pytest.raises(InputError, match=re.escape(found)):
        extract_of_extract(source, tmp_path, "gfx90a")


def test_all_entries_for_the_same_target_are_kept(tmp_path: Path) -> None:
    source = FIXTURES / "edge/dup.hipfb"
    names = ["dup.hipfb.0.gfx1030.co", "dup.hipfb.0.gfx1030.2.co"]
    assert extract_all(source, tmp_path) == names
    data = memoryview(source.read_bytes())
    parts = [part for part in bundle_parts(data, next(iter_bundles(data, name="x"))) if part.size]
    assert [(tmp_path / name).read_bytes() for name in names] == [bytes(part.payload[0]) for part in parts]


def test_an_entry_that_matches_two_targets_is_written_once(tmp_path: Path) -> None:
    source, targets = FIXTURES / "v22/libtwo.plain.so", parse_target_set("gfx1030;gfx1031").ids
    extracted = extract_code(source, tmp_path, targets, rule=MatchRule.EXTENDED)
    names = ["libtwo.plain.so.0.gfx1030.co", "libtwo.plain.so.1.gfx1030.co"]
    assert [Path(code.path).name for code in extracted] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_damaged_later_bundle_leaves_no_files(tmp_path: Path) -> None:
    source, output = tmp_path / "x.fatbin", tmp_path / "code"
    second = (FIXTURES / "edge/zlib.v3.badhash.ccob").read_bytes()
    source.write_bytes((FIXTURES / "v22/saxpy.hipfb").read_bytes().ljust(40960, b"\0") + second)
    with pytest.raises(InputError, match="bundle 1 at offset 0xa000: its header has the hash"):
        extract_all(source, output)
    assert not output.exists()


def test_a_folder_in_place_of_an_output_file_leaves_no_files(tmp_path: Path) -> None:
    taken = tmp_path / "libtwo.plain.so.1.gfx906.co"
    taken.mkdir()
    message = f"{taken}: isn't a regular file, so it can't be replaced. Specify another folder."
    with pytest.raises(WorkError, match=f"^{re.escape(message)}$"):
        extract_of_extract(FIXTURES / "v22/libtwo.plain.so", tmp_path, "gfx906")
    assert list(tmp_path.iterdir()) == [taken]


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = f"{tmp_path}/file/code: can't be written (Not a directory). Choose another output, or remove the file"
    with pytest.raises(WorkError, match=re.escape(message)):
        extract_all(FIXTURES / "elf/gfx906.co", tmp_path / "file/code")


def test_a_code_object_with_an_invalid_processor_is_reported(tmp_path: Path) -> None:
    source = tmp_path / "x.co"
    data = bytearray((FIXTURES / "elf/gfx906.co").read_bytes())
    data[0x30:0x34] = (0xFF).to_bytes(4, "little")
    source.write_bytes(data)
    message = (
        f"{source}: a code object whose flags 0xff don't identify a processor; expected a code "
        f"object for a known processor"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        extract_all(source, tmp_path)


def test_a_bundle_with_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    source = FIXTURES / "edge/zlib.v3.badhash.ccob"
    message = (
        "its header has the hash 0000000000000000, but its content has ceddc72cae1760d9. The device code may be damaged"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        extract_all(source, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_with_a_wrong_hash_is_accepted_with_a_warning_on_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    source = FIXTURES / "edge/zlib.v3.badhash.ccob"
    extracted = extract_code(source, tmp_path, parse_target_set("gfx906").ids, accept_wrong_hash=True)
    assert [Path(code.path).name for code in extracted] == ["zlib.v3.badhash.ccob.0.gfx906.co"]
    assert caplog.messages == [
        (
            f"{source}: bundle 0 at offset 0x0: its header has the hash 0000000000000000, but its content has "
            "ceddc72cae1760d9"
        )
    ]


@pytest.mark.parametrize("name", ["elf/libplain.so", "mach/flags.22"], ids=["host code", "text"])
def test_a_file_without_device_code_is_refused(tmp_path: Path, name: str) -> None:
    kinds = "a fat binary, a bundle file, a kpack archive, a code object, an object file, or a static library"
    message = f"{FIXTURES / name}: no device code for AMD GPUs; expected {kinds}"
    with pytest.raises(InputError, match=re.escape(message)):
        extract_all(FIXTURES / name, tmp_path)


def test_every_bundle_without_code_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        extract_of_extract(FIXTURES / "edge/two.plain.fatbin", tmp_path, "gfx942", "gfx906")
    assert [str(problem).partition(": has")[0].rpartition(": ")[2] for problem in caught.value.problems] == [
        "bundle 0 at offset 0x0",
        "bundle 1 at offset 0x5000",
    ]


DAMAGED = [
    (FIXTURES / name).read_bytes()
    for name in ("v22/libtwo.plain.so", "v22/saxpy.ccob.hipfb", "v19/saxpy.rdc.o", "v23/saxpy.rdc.o")
]


@given(damaged(DAMAGED))
def test_code_of_a_damaged_file_is_written_completely_or_not_at_all(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        source, taken = Path(folder) / "libx.so", Path(folder) / "taken"
        source.write_bytes(content)
        try:
            codes = extract_code(source, taken, (), limit=1 << 24)
        except RocwheelError as e:
            found = str(e)
        else:
            found = ""
            assert all(Path(code.path).stat().st_size for code in codes)
        assert not found or found.startswith(str(source))
        assert not list(taken.iterdir() if found and taken.exists() else ())
        assert not list(Path(folder).rglob(".*"))


def test_allow_missing_still_fails_if_no_bundle_has_the_code(tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    with pytest.raises(InputError) as caught:
        extract(source, tmp_path / "out", "gfx1100", allow_missing=True)
    assert str(caught.value) == (
        f"{source}: nothing to extract: no bundle has code for gfx1100 according to the rule 'exact'. "
        "To print the available targets, use rocwheel device list."
    )
    assert not (tmp_path / "out").exists()
