"""Properties of chains of edits: after any of them, each unit has the code that it should have, and the file loads."""

from __future__ import annotations

import random
import shutil
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.binary.bundles.compressed import compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import NoRoomError, NotTrimmableError, parse_target_id
from rocwheel.binary.elf.header import read_sections
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import Prune, bundle_parts
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.retarget import Retarget
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.joining import JoinStorage
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.example_counts import examples
from tests.support.fat_libraries import two_units
from tests.support.hip_runtime import build_runtime, registered, runtime_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.support.tools import RunTool

pytestmark = pytest.mark.slow

RUNTIME = runtime_source('printf("%x ", w->magic);', "8")
LINKERS: Final = {
    **{f"lld-{version}": [f"ld.lld-{version}"] for version in (14, 15, 16, 19, 22)},
    "lld-relr": ["ld.lld-22", "--pack-dyn-relocs=relr"],
    "lld-no-relro": ["ld.lld-16", "-z", "norelro"],
    "lld-separate": ["ld.lld-19", "-z", "separate-loadable-segments"],
    "gnu-ld": ["ld.bfd", "-z", "separate-code"],
    "gnu-ld-noseparate-code": ["ld.bfd", "-z", "noseparate-code"],
    "gnu-ld-64k-pages": ["ld.bfd", "-z", "max-page-size=65536"],
    "gold": ["ld.gold"],
}
SCRIPTS = {
    "": "",
    "behind .bss": ".hipFatBinSegment : { *(.hipFatBinSegment) } .hip_fatbin : { *(.hip_fatbin) } } INSERT AFTER .bss;",
    "before .rodata": ".hip_fatbin : { *(.hip_fatbin) } } INSERT BEFORE .rodata;",
}
"""Where device code goes: with relocatable device code, or by another compiler, into a segment of its own or last."""
UNITS = 5
LARGEST_PAGE = 65536
_HOST = "host-x86_64-unknown-linux--"
_ENTRY = "hipv4-amdgcn-amd-amdhsa--"
_LEVELS = st.sampled_from([1, 3, 9, 19])
_STEPS = st.one_of(
    st.tuples(st.just("prune"), _LEVELS),
    st.tuples(st.just("compress"), _LEVELS),
    st.tuples(st.just("trim"), _LEVELS),
    st.tuples(st.just("retarget"), _LEVELS),
    st.tuples(st.just("split and join"), _LEVELS),
    st.tuples(st.just("split and join compressed"), _LEVELS),
)
_SOURCE = """
struct wrapper {{ unsigned magic, version; const void *binary; unsigned long zero; }};
void *__hipRegisterFatBinary(const void *);
{declared}
static struct wrapper wrappers[] __attribute__((section(".hipFatBinSegment"))) = {{ {wrappers} }};
static int data[2000] = {{1}}, zeros[5000];
const char text[] = "text";
int answer(int i) {{ return data[i] + zeros[i] + text[i]; }}
__attribute__((constructor)) static void start(void) {{
    for (int i = 0; i < {count}; i++) __hipRegisterFatBinary(wrappers + i);
}}
"""


@cache
def codes() -> tuple[dict[str, bytes], ...]:
    """Return the code of each unit by its target: clang's, with bytes behind it that no compression makes smaller."""
    numbers = random.Random(7)
    units = two_units()
    return tuple(
        {target: code + numbers.randbytes(12000 * (unit + 1)) + bytes(2000) for target, code in units[unit % 2].items()}
        for unit in range(UNITS)
    )


def link(run_tool: RunTool, folder: Path, linker: str, script: str, level: int) -> Path:
    """Link a library whose bundles are plain, or with a ``level`` compressed."""
    assembly = ['.section .hip_fatbin,"a",@progbits']
    for unit, code in enumerate(codes()):
        parts = [BundlePart(_ENTRY + target, (memoryview(data),)) for target, data in code.items()]
        bundle = join_data(write_offload_bundle([BundlePart(_HOST), *parts]))
        content = compress_bundle([memoryview(bundle)], version=2, level=level) if level else bundle
        (folder / f"bundle{unit}").write_bytes(content)
        symbol = f".globl bundle{unit}\n.hidden bundle{unit}\nbundle{unit}:"
        assembly.append(f'.p2align 12\n{symbol} .incbin "{folder / f"bundle{unit}"}"')
    (folder / "bundles.s").write_text("\n".join([*assembly, '.section .note.GNU-stack,"",@progbits\n']))
    declared = "".join(
        f'extern const char bundle{unit}[] __attribute__((visibility("hidden")));' for unit in range(UNITS)
    )
    wrappers = ", ".join(f"{{0x48495046, 1, bundle{unit}, 0}}" for unit in range(UNITS))
    (folder / "units.c").write_text(_SOURCE.format(declared=declared, wrappers=wrappers, count=UNITS))
    (folder / "script.ld").write_text(f"SECTIONS {{ {SCRIPTS[script]}\n")
    objects = [str(folder / "units.o"), str(folder / "bundles.o")]
    run_tool(["gcc", "-fPIC", "-O1", "-c", "-o", objects[0], str(folder / "units.c")])
    run_tool(["gcc", "-c", "-o", objects[1], str(folder / "bundles.s")])
    options = ["-T", str(folder / "script.ld")] if script else []
    library = folder / "libunits.so"
    run_tool([*LINKERS[linker], *options, "-shared", "--build-id", "--eh-frame-hdr", "-o", str(library), *objects])
    return library


def code_in(library: Path) -> list[dict[str, bytes]]:
    """Return the code by target that each wrapper leads to."""
    data = memoryview(library.read_bytes())
    fat = read_fat_binary(data, name=str(library))
    assert fat is not None
    view = fat.view(data)
    by_start = {
        bundle.start: {str(part.target): join_data(part.payload) for part in bundle_parts(view, bundle) if part.target}
        for bundle in fat.iter_bundles(data)
    }
    return [by_start[fat.start_of(wrapper)] for wrapper in fat.wrappers]


def code_size(library: Path) -> int:
    [section] = [one for one in read_sections(library.read_bytes(), name="x") if one.name == ".hip_fatbin"]
    return section.size


def loaded(runtime: Path, library: Path) -> list[str]:
    """Return the magic of each wrapper that the loaded library hands over."""
    return [line.split()[0] for line in registered(runtime, library).splitlines()]


def do(step: str, level: int, source: Path, folder: Path, runtime: Path) -> Path:
    """Do one step, and return the new library."""
    output = folder / source.name
    storage = Storage(compress=step in {"compress", "trim"}, level=level)
    match step:
        case "prune":
            kept = (parse_target_id("gfx1030"), parse_target_id("gfx90a"))
            rewrite_device_code(source, output, Prune(kept), storage)
        case "compress":
            rewrite_device_code(source, output, None, storage)
        case "trim" | "retarget":
            edit = Retarget(parse_pairs("gfx1030=gfx1031")) if step == "retarget" else None
            try:
                rewrite_device_code(source, output, edit, storage, trim=step == "trim")
            except (NoRoomError, NotTrimmableError):
                assert not output.exists()
                return source
        case _:
            split_tree(source, folder / "split", SplitOrder(choice=SplitChoice()))
            host = folder / "split/host" / source.name
            assert loaded(runtime, host) == ["4b504948"] * UNITS
            assert host.stat().st_size < source.stat().st_size - code_size(source) + 3 * LARGEST_PAGE
            devices = [path for path in (folder / "split").iterdir() if path.name != "host"]
            how = JoinStorage(compress="compressed" in step, level=level)
            join_tree(folder / "split/host", devices, folder / "fat", how)
            return folder / "fat" / source.name
    return output


def expected(
    step: str, before: Sequence[dict[str, bytes]], after: Sequence[dict[str, bytes]]
) -> list[dict[str, bytes]]:
    """Return the code that each unit should have after a step; of a relabeled copy, only its size."""
    if step == "prune":
        gone = {"gfx906"} | ({"gfx1031"} if "gfx1031" in before[0] else set())
        return [{target: code for target, code in unit.items() if target not in gone} for unit in before]
    if step == "retarget":
        added = [{target: code for target, code in unit.items() if target == "gfx1031"} for unit in after]
        assert {len(code) for new in added for code in new.values()} <= {len(unit["gfx1030"]) for unit in before}
        return [unit | new for unit, new in zip(before, added, strict=True)]
    return list(before)


@pytest.fixture(scope="module")
def runtime(run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_runtime(run_tool, tmp_path_factory.mktemp("runtime"), RUNTIME)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda text: text or "where the linker puts it")
@pytest.mark.parametrize("linker", LINKERS)
def test_chains_of_edits_preserve_the_code_and_produce_loadable_files(
    run_tool: RunTool, runtime: Path, tmp_path_factory: pytest.TempPathFactory, linker: str, script: str
) -> None:
    if shutil.which(LINKERS[linker][0]) is None or (linker == "gold" and script):
        pytest.skip(f"no {linker}, or one without such a script")
    libraries = {
        level: link(run_tool, tmp_path_factory.mktemp("linked"), linker, script, level) for level in (0, 3, 19)
    }

    @settings(max_examples=examples(4), suppress_health_check=list(HealthCheck))
    @given(level=st.sampled_from([0, 3, 19]), steps=st.lists(_STEPS, min_size=1, max_size=5))
    def check(level: int, steps: list[tuple[str, int]]) -> None:
        library, before = libraries[level], list(codes())
        folder = tmp_path_factory.mktemp("chain")
        for number, (step, strength) in enumerate(steps):
            place = folder / str(number)
            place.mkdir()
            library = do(step, strength, library, place, runtime)
            after = code_in(library)
            before = expected(step, before, after)
            assert after == before, (step, strength)
            assert loaded(runtime, library) == ["48495046"] * UNITS
        shutil.rmtree(folder)

    check()
