"""Bundles made of code objects: what LLVM and comgr read of them, and what is refused."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from rocwheel.binary.bundles.plain import HOST_ENTRY
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import bundle_parts
from rocwheel.device.extract import extract_code
from rocwheel.device.make_bundle import MadeBundle, make_bundle
from tests.support.comgr import load_later_comgr
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.tools import RunTool

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
TARGETS = ("gfx1030", "gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942")
E_TYPE, OS_ABI, BYTE_ORDER, ABI_VERSION, E_FLAGS = 16, 7, 5, 8, 0x30


@pytest.fixture
def code(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a code object for a target, with some bytes changed."""

    def write(target: str, name: str = "", *, of: str = "v22/saxpy.hipfb", **changes: int) -> Path:
        extracted = extract_code(FIXTURES / of, tmp_path / "extracted", (parse_target_id(target),))
        data = bytearray(Path(extracted[0].path).read_bytes())
        for field, value in changes.items():
            data[globals()[field.upper()]] = value
        path = tmp_path / (name or f"{target}.co")
        path.write_bytes(data)
        return path

    return write


def parts_of(path: Path) -> dict[str, bytes]:
    data = memoryview(path.read_bytes())
    [bundle] = iter_bundles(data, name=str(path))
    return {part.spelling: join_data(part.payload) for part in bundle_parts(data, bundle)}


def test_code_objects_are_sorted_after_the_host_entry_and_page_aligned(
    code: Callable[..., Path], tmp_path: Path
) -> None:
    paths = [code(target) for target in reversed(TARGETS)]
    made = make_bundle(paths, tmp_path / "x.hipfb", Storage())
    assert made == MadeBundle(
        path=str(tmp_path / "x.hipfb"), targets=TARGETS, code_object_version=6, version=0, size=37432, raw_size=37432
    )
    expected = {HOST_ENTRY: b""} | {PREFIX + target: code(target).read_bytes() for target in TARGETS}
    assert list(parts_of(tmp_path / "x.hipfb").items()) == list(expected.items())
    data = memoryview((tmp_path / "x.hipfb").read_bytes())
    [bundle] = iter_bundles(data, name="x")
    assert [entry.offset % 4096 for entry in bundle.plain.device_entries] == [0] * 6
    assert bundle.find_problems() == ()


def test_the_bundle_matches_the_compiler_except_for_the_host_entry(code: Callable[..., Path], tmp_path: Path) -> None:
    make_bundle([code(target) for target in TARGETS], tmp_path / "x.hipfb", Storage())
    assert (tmp_path / "x.hipfb").read_bytes()[4096:] == (FIXTURES / "v22/saxpy.hipfb").read_bytes()[4096:]


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(
    ("llvm", "version"), [("15", 0), ("16", 0), ("19", 0), ("22", 0), ("19", 2), ("22", 2), ("22", 3)]
)
def test_llvm_lists_and_unbundles_the_bundle(
    code: Callable[..., Path], run_tool: RunTool, tmp_path: Path, *, llvm: str, version: int
) -> None:
    result = tmp_path / "x.hipfb"
    made = make_bundle(
        [code(target) for target in TARGETS], result, Storage(compress=version > 0, version=version or None)
    )
    assert made.version == version
    bundler = [f"clang-offload-bundler-{llvm}", "--type=o", f"--input={result}"]
    assert sorted(run_tool([*bundler, "--list"]).split()) == sorted(
        [HOST_ENTRY, *(PREFIX + target for target in TARGETS)]
    )
    outputs = [f"--output={tmp_path / 'out'}.{target}" for target in TARGETS]
    run_tool([*bundler, "--unbundle", f"--targets={','.join(PREFIX + target for target in TARGETS)}", *outputs])
    for target in TARGETS:
        assert Path(f"{tmp_path / 'out'}.{target}").read_bytes() == code(target).read_bytes()


@pytest.mark.parametrize("compress", [False, True])
def test_comgr_finds_the_code_in_the_bundle(code: Callable[..., Path], tmp_path: Path, *, compress: bool) -> None:
    result = tmp_path / "x.hipfb"
    make_bundle([code(target) for target in TARGETS], result, Storage(compress=compress))
    comgr = load_later_comgr()
    data = result.read_bytes()
    isas = [f"amdgcn-amd-amdhsa--{target}" for target in TARGETS]
    if compress:
        found = comgr.unbundle(data, isas)
    else:
        found = [data[offset : offset + size] for offset, size in (comgr.look_up(data, isa) for isa in isas)]
    assert found == [code(target).read_bytes() for target in TARGETS]


@pytest.mark.parametrize("version", [2, 3])
def test_code_objects_that_do_not_record_unset_features_are_refused(
    code: Callable[..., Path], tmp_path: Path, version: int
) -> None:
    path = code("gfx906", of=f"v16/vadd.cov{version}.hipfb")
    message = (
        f"{path}: a code object with version {version}, which doesn't record which features aren't set; "
        "expected version 4 or later"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        make_bundle([path], tmp_path / "x.hipfb", Storage())


def test_all_problems_with_the_input_files_are_reported_at_once(code: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    paths = [
        code("gfx906"),
        tmp_path / "notes.txt",
        FIXTURES / "v22/saxpy.hipfb",
        FIXTURES / "elf/program-pie",
        code("gfx906", "mesa.co", os_abi=66),
        code("gfx906", "big.co", byte_order=2),
        code("gfx906", "object.co", e_type=1),
        code("gfx906", "unknown.co", e_flags=0),
        code("gfx906", "later.co", abi_version=9),
    ]
    with pytest.raises(ProblemsError) as caught:
        make_bundle(paths, tmp_path / "x.hipfb", Storage())
    found = [str(problem).partition("; expected")[0].removeprefix(f"{tmp_path}/") for problem in caught.value.problems]
    assert found == [
        "notes.txt: starts with b'notes'",
        f"{FIXTURES}/v22/saxpy.hipfb: already a bundle",
        f"{FIXTURES}/elf/program-pie: an ELF file for machine 62",
        "mesa.co: an ELF file for machine 224 and OS ABI 66",
        "big.co: offset 0x0: a big-endian ELF file",
        "object.co: device code that isn't linked yet",
        "unknown.co: a code object whose flags 0x500 don't identify a processor",
        "later.co: offset 0x0: a code object with ABI version 9",
    ]
    assert not (tmp_path / "x.hipfb").exists()


def test_two_code_objects_for_one_target_are_refused(code: Callable[..., Path], tmp_path: Path) -> None:
    first, second = code("gfx906"), code("gfx906", "again.co")
    with pytest.raises(InputError, match=re.escape(f"{second}: a code object for gfx906, like {first}; expected one")):
        make_bundle([first, second], tmp_path / "x.hipfb", Storage())


def test_different_code_object_versions_are_refused(code: Callable[..., Path], tmp_path: Path) -> None:
    first, second = code("gfx906"), code("gfx1030", abi_version=3)
    message = (
        f"{second}: a code object with version 5, but {first} has version 6; expected the same "
        f"version throughout the bundle"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        make_bundle([first, second], tmp_path / "x.hipfb", Storage())


def test_targets_that_runtimes_cannot_distinguish_are_refused(code: Callable[..., Path], tmp_path: Path) -> None:
    # xnack is named in one, and left open in the other: bits 8 and 9 of e_flags are 1.
    first, second = code("gfx90a:xnack+"), code("gfx90a:xnack-", "any.co")
    data = bytearray(second.read_bytes())
    data[E_FLAGS + 1] = data[E_FLAGS + 1] & 0xFC | 1
    second.write_bytes(data)
    message = f"{second}: for gfx90a, but {first} is for gfx90a:xnack+: one sets features that the other doesn't"
    with pytest.raises(InputError, match=re.escape(message)):
        make_bundle([first, second], tmp_path / "x.hipfb", Storage())


def test_a_bundle_version_that_the_runtime_cannot_read_is_refused(code: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape("compressed bundles of version 2, which ROCm 6.1 doesn't read")):
        make_bundle([code("gfx906")], tmp_path / "x.hipfb", Storage(compress=True, rocm="6.1"))
    assert not (tmp_path / "x.hipfb").exists()


def test_a_truncated_code_object_is_refused(code: Callable[..., Path], tmp_path: Path) -> None:
    path = code("gfx906")
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(InputError, match=re.escape(str(path))):
        make_bundle([path], tmp_path / "x.hipfb", Storage())


CODE = [(FIXTURES / "v22/saxpy.hipfb").read_bytes()[4096 : 4096 + 3696]]


@given(damaged(CODE))
@settings(max_examples=examples(200))
def test_a_damaged_code_object_is_refused_or_bundled_unchanged(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path, result = folder / "damaged.co", folder / "damaged.hipfb"
    path.write_bytes(data)
    result.unlink(missing_ok=True)
    with suppress(RocwheelError):
        make_bundle([path], result, Storage())
        assert list(parts_of(result).values()) == [b"", data]


@pytest.mark.slow
def test_a_killed_run_leaves_no_bundle(code: Callable[..., Path], tmp_path: Path) -> None:
    path, result = code("gfx906"), tmp_path / "out" / "x.hipfb"
    script = f"""
import os, signal
from pathlib import Path
from rocwheel.binary.bundles.storage import Storage
from rocwheel.device.make_bundle import make_bundle
from rocwheel.core.writing import AtomicFile
AtomicFile.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
make_bundle([Path({str(path)!r})], Path({str(result)!r}), Storage())
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert (done.returncode, result.exists()) == (-signal.SIGKILL, False)
    make_bundle([path], result, Storage())
    assert list(parts_of(result)) == [HOST_ENTRY, f"{PREFIX}gfx906"]
