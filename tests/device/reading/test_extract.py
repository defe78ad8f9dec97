"""Tests of taking code objects out of files, beside LLVM's own tools."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.device.editing.bundle import bundle_parts
from rocwheel.device.reading.extract import extract_code
from rocwheel.device.reading.extraction import MatchRule
from rocwheel.targets.spelling.target_set import parse_target_set
from tests.support.damage import damaged
from tests.support.places import FIXTURES

Require = Callable[[str, str], None]


def extract(source: Path, dest_dir: Path, *targets: str) -> list[str]:
    return [Path(code.path).name for code in extract_code(source, dest_dir, parse_target_set(";".join(targets)).ids)]


def extract_all(source: Path, dest_dir: Path) -> list[str]:
    return [Path(code.path).name for code in extract_code(source, dest_dir, ())]


@pytest.mark.parametrize("llvm", ["19", "22"])
def test_images_that_the_old_driver_put_into_an_object_file_are_those_the_bundler_finds(
    tmp_path: Path, require_tool: Require, llvm: str
) -> None:
    bundler, source = f"clang-offload-bundler-{llvm}", FIXTURES / "v19/saxpy.rdc.o"
    require_tool(bundler, f"clang-tools-{llvm}")
    assert extract(source, tmp_path, "gfx906") == ["saxpy.rdc.o.0.gfx906.bc"]
    target, stock = "--targets=hip-amdgcn-amd-amdhsa--gfx906", tmp_path / "stock.bc"
    subprocess.run([bundler, "--type=o", "--unbundle", f"--input={source}", target, f"--output={stock}"], check=True)
    assert (tmp_path / "saxpy.rdc.o.0.gfx906.bc").read_bytes() == stock.read_bytes()


def test_images_that_the_new_driver_put_into_an_object_file_are_those_the_packager_finds(
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


def test_bundles_and_images_of_a_static_library_are_numbered_through(tmp_path: Path, require_tool: Require) -> None:
    require_tool("ar", "binutils")
    archive = tmp_path / "libx.a"
    members = [FIXTURES / name for name in ("v19/vadd.plain.o", "elf/library.o", "v23/saxpy.rdc.o")]
    subprocess.run(["ar", "rcs", archive, *members], check=True)
    extracted = extract_code(archive, tmp_path / "code", parse_target_set("gfx906").ids)
    assert [(Path(code.path).name, code.bundle, code.found_in) for code in extracted] == [
        ("libx.a.0.gfx906.co", 0, f"{archive}(vadd.plain.o)"),
        ("libx.a.1.gfx906.bc", 1, f"{archive}(saxpy.rdc.o)"),
    ]


def test_code_object_by_itself_is_its_own_code(tmp_path: Path) -> None:
    source = FIXTURES / "elf/gfx906.co"
    assert extract_all(source, tmp_path) == ["gfx906.co.0.gfx906.co"]
    assert (tmp_path / "gfx906.co.0.gfx906.co").read_bytes() == source.read_bytes()
    found = f"{source}: offset 0x0: has no code for gfx90a by the rule 'exact'; expected one of its targets gfx906"
    with pytest.raises(InputError, match=re.escape(found)):
        extract(source, tmp_path, "gfx90a")


def test_several_entries_for_one_target_are_all_kept(tmp_path: Path) -> None:
    source = FIXTURES / "edge/dup.hipfb"
    names = ["dup.hipfb.0.gfx1030.co", "dup.hipfb.0.gfx1030.2.co"]
    assert extract_all(source, tmp_path) == names
    data = memoryview(source.read_bytes())
    parts = [part for part in bundle_parts(data, next(iter_bundles(data, name="x"))) if part.size]
    assert [(tmp_path / name).read_bytes() for name in names] == [bytes(part.payload[0]) for part in parts]


def test_entry_that_serves_two_targets_is_written_once(tmp_path: Path) -> None:
    source, targets = FIXTURES / "v22/libtwo.plain.so", parse_target_set("gfx1030;gfx1031").ids
    extracted = extract_code(source, tmp_path, targets, rule=MatchRule.EXTENDED)
    names = ["libtwo.plain.so.0.gfx1030.co", "libtwo.plain.so.1.gfx1030.co"]
    assert [Path(code.path).name for code in extracted] == names
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_no_file_is_left_when_a_later_bundle_is_damaged(tmp_path: Path) -> None:
    source, output = tmp_path / "x.fatbin", tmp_path / "code"
    second = (FIXTURES / "edge/zlib.v3.badhash.ccob").read_bytes()
    source.write_bytes((FIXTURES / "v22/saxpy.hipfb").read_bytes().ljust(40960, b"\0") + second)
    with pytest.raises(InputError, match="bundle 1 at offset 0xa000: its hash is"):
        extract_all(source, output)
    assert not output.exists()


def test_no_file_is_left_when_one_would_take_the_place_of_a_folder(tmp_path: Path) -> None:
    taken = tmp_path / "libtwo.plain.so.1.gfx906.co"
    taken.mkdir()
    message = f"{taken}: is not a regular file, so it can't be replaced. Name another folder."
    with pytest.raises(WorkError, match=f"^{re.escape(message)}$"):
        extract(FIXTURES / "v22/libtwo.plain.so", tmp_path, "gfx906")
    assert list(tmp_path.iterdir()) == [taken]


def test_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = f"{tmp_path}/file/code: can't be written (Not a directory). Name another output, or remove the file"
    with pytest.raises(WorkError, match=re.escape(message)):
        extract_all(FIXTURES / "elf/gfx906.co", tmp_path / "file/code")


def test_code_object_for_no_processor_is_reported_as_such(tmp_path: Path) -> None:
    source = tmp_path / "x.co"
    data = bytearray((FIXTURES / "elf/gfx906.co").read_bytes())
    data[0x30:0x34] = (0xFF).to_bytes(4, "little")
    source.write_bytes(data)
    message = f"{source}: a code object whose flags 0xff name no processor; expected one for a processor that is known"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        extract_all(source, tmp_path)


def test_bundle_whose_hash_is_wrong_is_refused(tmp_path: Path) -> None:
    source = FIXTURES / "edge/zlib.v3.badhash.ccob"
    message = "its hash is 0000000000000000, that of its content ceddc72cae1760d9. The device code may be damaged"
    with pytest.raises(InputError, match=re.escape(message)):
        extract_all(source, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_bundle_whose_hash_is_wrong_is_taken_with_a_warning_on_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    source = FIXTURES / "edge/zlib.v3.badhash.ccob"
    extracted = extract_code(source, tmp_path, parse_target_set("gfx906").ids, accept_wrong_hash=True)
    assert [Path(code.path).name for code in extracted] == ["zlib.v3.badhash.ccob.0.gfx906.co"]
    assert caplog.messages == [
        f"{source}: bundle 0 at offset 0x0: its hash is 0000000000000000, that of its content ceddc72cae1760d9"
    ]


@pytest.mark.parametrize("name", ["elf/libplain.so", "mach/flags.22"], ids=["host code", "text"])
def test_file_without_device_code_is_refused(tmp_path: Path, name: str) -> None:
    kinds = "a fat binary, a file of bundles, a kpack archive, a code object, an object file or a static library"
    message = f"{FIXTURES / name}: no device code for AMD GPUs; expected {kinds}"
    with pytest.raises(InputError, match=re.escape(message)):
        extract_all(FIXTURES / name, tmp_path)


def test_every_bundle_without_code_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        extract(FIXTURES / "edge/two.plain.fatbin", tmp_path, "gfx942", "gfx906")
    assert [str(problem).partition(": has")[0].rpartition(": ")[2] for problem in caught.value.problems] == [
        "bundle 0 at offset 0x0",
        "bundle 1 at offset 0x5000",
    ]


DAMAGED = [
    (FIXTURES / name).read_bytes()
    for name in ("v22/libtwo.plain.so", "v22/saxpy.ccob.hipfb", "v19/saxpy.rdc.o", "v23/saxpy.rdc.o")
]


@given(damaged(DAMAGED))
def test_code_of_a_damaged_file_is_written_whole_or_not_at_all(content: bytes) -> None:
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
