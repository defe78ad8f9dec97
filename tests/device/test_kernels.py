"""The kernels of code objects, compared with what LLVM's tools print of them."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings

from rocwheel.binary.code_objects import is_code_object
from rocwheel.core.errors import InputError
from rocwheel.device.extract import extract_code
from rocwheel.device.kernels import CodeKernels, KernelFacts, list_kernels
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.kpack_files import make_kpack, split_two
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.tools import RunClang, RunTool

LLVM_NAMES = {
    ".name": "name",
    ".symbol": "symbol",
    ".vgpr_count": "vgprs",
    ".agpr_count": "agprs",
    ".sgpr_count": "sgprs",
    ".vgpr_spill_count": "vgpr_spills",
    ".sgpr_spill_count": "sgpr_spills",
    ".group_segment_fixed_size": "lds",
    ".private_segment_fixed_size": "scratch",
    ".uses_dynamic_stack": "has_dynamic_stack",
    ".kernarg_segment_size": "kernarg",
    ".wavefront_size": "wavefront",
    ".max_flat_workgroup_size": "max_workgroup",
}
FILES = sorted(
    path.relative_to(FIXTURES).as_posix()
    for pattern in ("v*/*", "hip/*")
    for path in FIXTURES.glob(pattern)
    if path.suffix in {".hipfb", ".so", ".o", ""} and ".rdc.o" not in path.name
)
KERNEL = """
#define shared __attribute__((shared))
__attribute__((device)) __attribute__((noinline)) int deep(int n) { return n < 2 ? n : deep(n - 1) + deep(n - 2); }
__attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256))) void tiled(int* out) {
  shared int tile[300];
  tile[out[0]] = out[1];
  __builtin_amdgcn_s_barrier();
  out[2] = tile[out[3]];
}
__attribute__((global)) void recursive(int* out) { out[0] = deep(out[1]); }
__attribute__((global)) void large(int* out) {
  int held[500];
  for (int i = 0; i < 500; ++i) held[i] = out[i];
  for (int i = 0; i < 500; ++i) out[i] = held[out[i + 500] % 500];
}
"""


def by_llvm(notes: str) -> list[KernelFacts]:
    """Return the kernels in what ``llvm-readobj --notes`` prints: YAML, of which the rows with one value count."""
    kernels: list[dict[str, str]] = []
    for head, name, value in re.findall(r"^  (- |  )(\.\w+): *(\S*)$", notes, re.MULTILINE):
        kernels += [{}] if head == "- " else []
        kernels[-1][name] = value
    return [
        msgspec.convert(
            {LLVM_NAMES[key]: _value(text) for key, text in kernel.items() if key in LLVM_NAMES}, KernelFacts
        )
        for kernel in kernels
    ]


def _value(text: str) -> int | bool | str:
    return int(text) if text.isdigit() else {"true": True, "false": False}.get(text, text.strip("'"))


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_kernels_match_those_that_llvm_prints(run_tool: RunTool, tmp_path: Path, name: str) -> None:
    listed = list_kernels(FIXTURES / name)
    extracted = extract_code(FIXTURES / name, tmp_path, ())
    expected = {}
    for code in extracted:
        if not is_code_object(memoryview(Path(code.path).read_bytes())):
            continue
        notes = run_tool(["llvm-readobj-22", "--notes", code.path])
        expected[code.bundle, code.target] = by_llvm(notes)
    found = {(code.bundle or 0, code.target): list(code.kernels) for code in listed.codes if code.version > 2}
    assert found == {key: kernels for key, kernels in expected.items() if key in found}
    assert len(listed.codes) == len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx906", "gfx90a", "gfx942", "gfx1100"])
def test_memory_and_limits_match_those_that_llvm_prints(
    run_clang: RunClang, run_tool: RunTool, tmp_path: Path, target: str
) -> None:
    text, made = tmp_path / "code.s", tmp_path / "code.co"
    done = run_clang([f"--offload-arch={target}", "-O1", "-S", "-o", text], KERNEL)
    assert done.returncode == 0, done.stderr
    run_tool(["llvm-mc-22", "--triple=amdgcn-amd-amdhsa", f"--mcpu={target}", "--filetype=obj", text, "-o", made])
    listed = list_kernels(made)
    [code] = listed.codes
    assert list(code.kernels) == by_llvm(run_tool(["llvm-readobj-22", "--notes", made]))
    kernels = {kernel.name.lstrip("_Z0123456789").rstrip("Pi"): kernel for kernel in code.kernels}
    assert (kernels["tiled"].lds, kernels["tiled"].max_workgroup) == (1200, 256)
    assert kernels["recursive"].has_dynamic_stack
    assert (kernels["large"].scratch or 0) >= 2000
    assert listed.problems == ()


def test_kernels_of_a_bundle_are_listed_by_target() -> None:
    listed = list_kernels(FIXTURES / "v22/libtwo.rdcccob.so")
    assert [(code.bundle, code.target, [kernel.name for kernel in code.kernels]) for code in listed.codes] == [
        (0, "gfx1030", ["vadd", "saxpy"]),
        (0, "gfx906", ["vadd", "saxpy"]),
        (0, "gfx90a:xnack+", ["vadd", "saxpy"]),
    ]
    assert listed.codes[0].kernels[0] == KernelFacts(
        name="vadd",
        symbol="vadd.kd",
        vgprs=6,
        agprs=None,
        sgprs=9,
        vgpr_spills=0,
        sgpr_spills=0,
        lds=0,
        scratch=0,
        kernarg=24,
        wavefront=32,
        max_workgroup=1024,
    )


def test_kernels_of_version_2_are_listed_by_name_and_their_other_facts_reported_as_unknown() -> None:
    path = FIXTURES / "v16/vadd.cov2.hipfb"
    listed = list_kernels(path)
    assert listed.codes == (
        CodeKernels(
            file=str(path),
            bundle=0,
            target="gfx906",
            version=2,
            kernels=(KernelFacts(name="vadd", symbol="vadd"),),
        ),
    )
    [problem] = listed.problems
    assert problem == (
        f"{path}: bundle 0 at offset 0x0: the code for gfx906: code object version 2 describes kernels in YAML, "
        "which isn't supported; the kernel names are from the symbols"
    )


def test_kernels_of_a_wheel_are_listed_by_member_and_a_damaged_member_is_reported(tmp_path: Path) -> None:
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    bundle = (FIXTURES / "v22/saxpy.hipfb").read_bytes()
    files = {"demo/a.so": library[:9000], "demo/b.so": library, "demo/c.hipfb": bundle}
    wheel = make_wheel(tmp_path, "demo", files)
    listed = list_kernels(wheel)
    assert {code.file for code in listed.codes} == {f"{wheel}!demo/b.so", f"{wheel}!demo/c.hipfb"}
    assert len(listed.problems) == 1
    assert listed.problems[0].startswith(f"{wheel}!demo/a.so: ")


@pytest.mark.parametrize("content", [b"text", b"\x7fELF", b""])
def test_a_file_without_device_code_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError):
        list_kernels(tmp_path / "x")


def test_a_note_with_wrong_types_is_reported_and_other_kernels_are_listed(tmp_path: Path) -> None:
    data = (FIXTURES / "v22/saxpy.hipfb").read_bytes()
    # The wavefront size, an integer, becomes a text in the first code object.
    changed = data.replace(b"\xaf.wavefront_size\x20", b"\xaf.wavefront_size\xa0", 1)
    assert changed != data
    (tmp_path / "x.hipfb").write_bytes(changed)
    listed = list_kernels(tmp_path / "x.hipfb")
    assert [code.target for code in listed.codes] == ["gfx1100", "gfx906", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942"]
    [problem] = listed.problems
    assert (
        "the code for gfx1030: a metadata note that isn't valid MessagePack for a code object (Expected `int" in problem
    )


@given(damaged([(FIXTURES / name).read_bytes() for name in ("v22/saxpy.hipfb", "v22/libtwo.rdcccob.so")]))
@settings(max_examples=examples(200))
def test_damage_is_refused_or_reported(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged-kernels"
    path.write_bytes(data)
    with suppress(InputError):
        list_kernels(path, limit=1 << 24)


@needs_compiler
def test_kernels_of_a_split_library_match_those_of_the_original(tmp_path: Path) -> None:
    def kernels(path: Path) -> set[tuple[int | None, str, tuple[KernelFacts, ...]]]:
        return {(code.bundle, code.target, code.kernels) for code in list_kernels(path).codes}

    assert kernels(split_two(tmp_path)) == kernels(FIXTURES / "v22/libtwo.plain.so") != set()


def test_kernels_of_an_archive_are_listed_once_when_several_targets_share_the_code(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    code = (FIXTURES / "elf/gfx906.co").read_bytes()
    path.write_bytes(make_kpack({("a", 0, "gfx906|gfx906:xnack-"): code}))
    [listed] = list_kernels(path).codes
    assert (listed.file, listed.bundle, listed.target, len(listed.kernels)) == (str(path), 0, "gfx906", 1)
