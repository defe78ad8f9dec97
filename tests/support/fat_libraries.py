"""Fat libraries with any bundles, linked by the system's compiler; and what GPUs get of them once they are split."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import FEATURES, TargetId, parse_target_id
from rocwheel.core.reading import join_data
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import choose, settings_of
from tests.support.kpack_reader import ARCH_NOT_FOUND, ARCHIVE_NOT_FOUND, load_unit, units_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["build_fat_library", "code_of", "lay_over", "make_bundle", "require_same_code", "two_units"]

_ENTRY = "hipv4-amdgcn-amd-amdhsa--"
_HIPF = 0x48495046
_PAGE = 4096


def code_of(unit: int, target: str) -> bytes:
    """Return what stands for the code of a unit for a target; no two are the same."""
    return f"code of unit {unit} for {target}".encode() * 100


def make_bundle(unit: int, targets: str, *, host: str = "host-x86_64-unknown-linux--") -> bytes:
    """Return the bundle of a unit with code for ``targets``, with blanks between them, in this order."""
    parts = [BundlePart(_ENTRY + target, (memoryview(code_of(unit, target)),)) for target in targets.split()]
    return join_data(write_offload_bundle([BundlePart(host), *parts]))


def build_fat_library(
    path: Path, bundles: Sequence[bytes], wrappers: Sequence[int] | None = None, *, options: Sequence[str] = ()
) -> Path:
    """Link a library with ``bundles``; ``wrappers`` says which of them each wrapper points to, by default one each.

    ``options`` are further words for the compiler, such as those for C code that uses ``__hip_wrappers``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    section = b"".join(bundle.ljust(-(-len(bundle) // _PAGE) * _PAGE, b"\0") for bundle in bundles)
    starts = [sum(-(-len(bundle) // _PAGE) * _PAGE for bundle in bundles[:number]) for number in range(len(bundles))]
    content = path.with_name(f"{path.name}.section")
    content.write_bytes(section)
    chosen = range(len(bundles)) if wrappers is None else wrappers
    source = [
        '.section .hipFatBinSegment,"aw"\n.globl __hip_wrappers\n.hidden __hip_wrappers\n__hip_wrappers:',
        *(f".long {_HIPF}, 1\n.quad fatbin + {starts[bundle]}\n.quad 0" for bundle in chosen),
        f'.section .hip_fatbin,"a"\n.balign {_PAGE}\nfatbin: .incbin "{content}"',
        '.section .note.GNU-stack,"",@progbits\n',
    ]
    command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-", "-o", str(path), *options]
    subprocess.run(command, input="\n".join(source).encode(), check=True)
    content.unlink()
    return path


def lay_over(output: Path, made: Path, *, targets: Sequence[str] = ()) -> Path:
    """Return the folder ``made``: the host folder of ``output`` with those of ``targets``, or of all, over it."""
    folders = [output / target for target in targets] or [path for path in output.iterdir() if path.name != "host"]
    for folder in (output / "host", *folders):
        shutil.copytree(folder, made, symlinks=True, dirs_exist_ok=True)
    return made


def require_same_code(library: Path, bundles: Iterable[dict[str, bytes]]) -> int:
    """Check that each GPU gets for each wrapper what it got of its bundle; return how many code objects were found.

    ``bundles`` are the code by target for each wrapper. GPUs without code for a unit are skipped, as before.
    """
    found = 0
    for unit, bundle in zip(units_of(library), bundles, strict=True):
        targets = [parse_target_id(text) for text in bundle]
        for gpu in _gpus(targets):
            choice = choose(targets, gpu)
            asked = [str(gpu), *(str(TargetId(name, **gpu.features)) for name in _generics(gpu))]
            for old in (True, False):
                code = load_unit(library, unit, asked, old=old)
                if choice is None:
                    assert code in {ARCHIVE_NOT_FOUND, ARCH_NOT_FOUND}, (unit, gpu, code)
                else:
                    assert code == bundle[str(choice.code)], (unit, gpu, choice.code)
                    found += 1
    return found


def _generics(gpu: TargetId) -> tuple[str, ...]:
    return load_catalog().generics_of(gpu.processor)


def _gpus(targets: Sequence[TargetId]) -> list[TargetId]:
    """Return the GPUs that may run some of the code, with all settings of their features, and one that runs none."""
    catalog = load_catalog()
    names = {target.processor for target in targets if not target.is_generic} | {"gfx803", "gfx90a", "gfx1100"}
    names |= {row.name for row in catalog.targets if any(t.processor in catalog.generics_of(row.name) for t in targets)}
    return [gpu for name in sorted(names) for gpu in settings_of(TargetId(name), FEATURES)]


def two_units() -> list[dict[str, bytes]]:
    """Return two units of clang's, saxpy and vadd, with their code by target."""
    data = memoryview((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    fat = read_fat_binary(data, name="libtwo")
    assert fat is not None
    view = fat.view(data)
    return [
        {
            str(entry.target): bytes(view[bundle.start + entry.offset : bundle.start + entry.stop])
            for entry in bundle.plain.device_entries
        }
        for bundle in fat.iter_bundles(data)
    ]
