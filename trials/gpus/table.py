"""Compares what a HIP runtime does with files on each GPU with what ``rocwheel targets runs-on`` says of them."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import FEATURES, TargetId, parse_target_id
from rocwheel.core.errors import RocwheelError
from rocwheel.device.runs_on import judge_files
from rocwheel.targets.catalog import load_catalog, why_unknown
from rocwheel.targets.compatibility import Runtime as Rules
from rocwheel.targets.compatibility import settings_of
from trials.gpus.forms import code_hashes, make_form
from trials.gpus.machines import OLDEST_MAJOR, write_machine
from trials.gpus.runtimes import NO_BINARY, NO_KERNEL, Answer, Runtime, ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

LAST_GPU = "gfx1201"
"""The newest GPU that people own. No observed runtime knows later ones."""

FEW_GPUS = tuple(
    TargetId(processor, **features)
    for processor, features in (
        ("gfx900", {"xnack": False}),
        ("gfx906", {"sramecc": True, "xnack": False}),
        ("gfx90a", {"sramecc": True, "xnack": True}),
        ("gfx1030", {}),
        ("gfx1031", {}),
        ("gfx1100", {}),
    )
)

_MACHINES = """
gfx1030 gfx1030
gfx1030 gfx1031
gfx1031 gfx1030
gfx1036 gfx1030
gfx1030 gfx1036
gfx1100 gfx1103
gfx1100 gfx1201
gfx900:xnack- gfx1100
gfx906:sramecc+:xnack- gfx1030
gfx90a:sramecc+:xnack- gfx90a:sramecc+:xnack-
gfx90a:sramecc+:xnack+ gfx942:sramecc+:xnack+
gfx906:sramecc+:xnack- gfx90a:sramecc+:xnack- gfx1030
"""
MACHINES = tuple(tuple(map(parse_target_id, line.split())) for line in _MACHINES.strip().splitlines())
"""Machines with several GPUs: equal, similar, and different ones, and cards beside the GPU of a processor."""

_NO_RESULT = ("no answer", "no GPU", "no kernel", "status")


class Cell(msgspec.Struct, frozen=True):
    """What a runtime did with a file on a GPU, and what the rules say."""

    runtime: str
    gpu: str
    form: str
    status: int | None
    """The first error that HIP returned, or 0, or `None` if the process ended."""
    how: str
    taken: str
    """The target of the code object that the runtime loaded, or an empty string if it loaded none.

    If several bundles of a library differ, their targets are joined.
    """
    said: str
    """The target of the code that the rules select, or an empty string if they select none."""
    why: str
    """The reason of the rules."""
    machine: str = ""
    """The machine's GPUs, if it has several."""

    @property
    def agrees(self) -> bool:
        """Whether the runtime took the code that the rules select, or refused the file if they select none."""
        return self.fault == ""

    @property
    def fault(self) -> str:
        """How the runtime and the rules differ, or an empty string if they agree."""
        if self.how.startswith(_NO_RESULT):
            return f"no result: {self.how}"
        if self.taken == self.said:
            return ""
        did = f"takes {self.taken}" if self.taken else f"refuses it ({self.how or f'status {self.status}'})"
        return f"the runtime {did}; runs-on says {self.said or 'that nothing runs'} ({self.why})"


def all_gpus() -> tuple[TargetId, ...]:
    """Return every GPU that the stand-in presents up to `LAST_GPU`, with each setting of its features."""
    rows = [row for row in load_catalog().targets if row.version[0] >= OLDEST_MAJOR]
    last = next(number for number, row in enumerate(rows) if row.name == LAST_GPU)
    return tuple(gpu for row in rows[: last + 1] for gpu in settings_of(TargetId(row.name), FEATURES))


def fill(runtime: Runtime, folder: Path, gpus: Iterable[TargetId], forms: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of a runtime's table; ``folder`` is the one that `prepare` was called with."""
    yield from fill_machines(runtime, folder, [(gpu,) for gpu in gpus], forms)


def fill_machines(
    runtime: Runtime, folder: Path, machines: Iterable[Sequence[TargetId]], forms: Sequence[str]
) -> Iterator[Cell]:
    """Yield the cells of a runtime's table for each GPU of machines with several."""
    files = {make_form(name, folder / "files" / _file_name(name)): name for name in forms}
    for gpus in machines:
        machine = folder / "machines" / "-".join(map(str, gpus)).replace(":", "_")
        shutil.rmtree(machine, ignore_errors=True)
        write_machine(machine, gpus)
        # HIP doesn't count GPUs that its release doesn't know.
        seen = [gpu for gpu in gpus if not why_unknown(gpu.processor, runtime.rocm)]
        for device, gpu in enumerate([*seen, *(gpu for gpu in gpus if gpu not in seen)]):
            for answer in ask(runtime, folder, machine, list(files), device=device):
                yield _cell(runtime, gpus, gpus.index(gpu), files[answer.file], answer)


def _cell(runtime: Runtime, gpus: Sequence[TargetId], device: int, form: str, answer: Answer) -> Cell:
    said, why = _verdict(runtime, gpus, device, answer.file)
    how = "no kernel asks for a bundle" if any(bundle.status == NO_KERNEL for bundle in answer.bundles) else answer.how
    hashes = _hashes(answer.file)
    # HIP loads only what it found, so that an object with an error of the loader is one that was refused.
    taken = _joined(
        next((hashes.get(one.sha256, "code that isn't in the file") for one in bundle.loaded if not bundle.status), "")
        for bundle in answer.bundles
    )
    if taken and not said and runtime.known_as and runtime.known_as in why:
        # Rules of AMD's build; their reason names these packages as an exception.
        said = taken
    if answer.how == NO_BINARY and "none" in said.split(" + "):
        # The process ends although other bundles of the library have code. In no case does the library run.
        said = ""
    machine = " ".join(map(str, gpus)) if len(gpus) > 1 else ""
    return Cell(runtime.name, str(gpus[device]), form, answer.status, how, taken, said, why, machine)


def _joined(codes: Iterable[str]) -> str:
    """Return the code of a file's bundles, or an empty string if none has any."""
    found = sorted(codes)
    each = sorted({code or "none" for code in found})
    return (each[0] if len(each) == 1 else " + ".join(code or "none" for code in found)) if any(found) else ""


def _verdict(runtime: Runtime, gpus: Sequence[TargetId], device: int, file: Path) -> tuple[str, str]:
    """Return the target that the rules select, and their reason."""
    try:
        verdicts = judge_files([file], gpus, rocm=runtime.rocm, is_machine=len(gpus) > 1)
    except RocwheelError as e:
        return "", str(e)
    own = [verdict for verdict in verdicts if verdict.runtime is Rules.STOCK and verdict.gpu == gpus[device]]
    uses = [use for verdict in own[:1] for use in verdict.uses]
    said = _joined(str(use.code) if use.code else "" for use in uses for _ in range(use.bundles))
    return said, "; ".join(dict.fromkeys(use.reason for use in uses))


@cache
def _hashes(path: Path) -> dict[str, str]:
    return code_hashes(path)


def _file_name(form: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in form)


def summary(cells: Sequence[Cell]) -> list[str]:
    """Return lines that say for each runtime how many cells agree, and the disagreements."""
    lines = []
    for name in dict.fromkeys(cell.runtime for cell in cells):
        own = [cell for cell in cells if cell.runtime == name]
        good = sum(cell.agrees for cell in own)
        gpus, forms = len({cell.gpu for cell in own}), len({cell.form for cell in own})
        machines = len({cell.machine for cell in own if cell.machine})
        counts = f"{gpus} GPUs, {forms} files" + (f", {machines} machines with several GPUs" if machines else "")
        lines.append(f"{name}: {good:,} of {len(own):,} cells agree ({counts})")
        groups = Counter((cell.form, cell.fault) for cell in own if not cell.agrees)
        for (form, fault), count in groups.items():
            alike = [cell for cell in own if (cell.form, cell.fault) == (form, fault)]
            which = ", ".join(f"{cell.gpu} in {cell.machine}" if cell.machine else cell.gpu for cell in alike)
            lines.append(f"  {form}: {fault} [{count}: {which}]")
    return lines
