"""Compares what a HIP runtime does with files on each GPU with what ``rocwheel targets runs-on`` says of them."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import FEATURES, TargetId
from rocwheel.core.errors import RocwheelError
from rocwheel.device.runs_on import judge_files
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import Runtime as Rules
from rocwheel.targets.compatibility import settings_of
from trials.gpus.forms import code_hashes, make_form
from trials.gpus.machines import OLDEST_MAJOR, write_machine
from trials.gpus.runtimes import Answer, Runtime, ask

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


class Cell(msgspec.Struct, frozen=True):
    """What a runtime did with a file on a GPU, and what the rules say."""

    runtime: str
    gpu: str
    form: str
    status: int | None
    """What hipModuleLoadData returned, or `None` if the process ended."""
    how: str
    taken: str
    """The target of the code object that the runtime loaded, or an empty string if it loaded none."""
    said: str
    """The target of the code that the rules select, or an empty string if they select none."""
    why: str
    """The reason of the rules."""

    @property
    def agrees(self) -> bool:
        """Whether the runtime took the code that the rules select, or refused the file if they select none."""
        return self.fault == ""

    @property
    def fault(self) -> str:
        """How the runtime and the rules differ, or an empty string if they agree."""
        if self.status is None and self.how.startswith(("no answer", "no GPU", "status")):
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
    files = {make_form(name, folder / "files" / _file_name(name)).name: name for name in forms}
    for gpu in gpus:
        machine = folder / "machines" / str(gpu).replace(":", "_")
        shutil.rmtree(machine, ignore_errors=True)
        write_machine(machine, [gpu])
        for answer in ask(runtime, folder, machine, [folder / "files" / file for file in files]):
            yield _cell(runtime, gpu, files[answer.file.name], answer)


def _cell(runtime: Runtime, gpu: TargetId, form: str, answer: Answer) -> Cell:
    said, why = _verdict(runtime, gpu, answer.file)
    taken = ""
    if answer.is_loaded:
        found = [_hashes(answer.file).get(one.sha256, "") for one in answer.loaded]
        taken = next((target for target in found if target), "code that isn't in the file")
    if taken and not said and runtime.known_as and runtime.known_as in why:
        # Rules of AMD's build; their reason names these packages as an exception.
        said = taken
    return Cell(runtime.name, str(gpu), form, answer.status, answer.how, taken, said, why)


def _verdict(runtime: Runtime, gpu: TargetId, file: Path) -> tuple[str, str]:
    """Return the target that the rules select, and their reason."""
    try:
        verdicts = judge_files([file], [gpu], rocm=runtime.rocm)
    except RocwheelError as e:
        return "", str(e)
    [stock] = [verdict for verdict in verdicts if verdict.runtime is Rules.STOCK]
    [use] = stock.uses
    return str(use.code) if use.code else "", use.reason


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
        lines.append(f"{name}: {good:,} of {len(own):,} cells agree ({gpus} GPUs, {forms} files)")
        groups = Counter((cell.form, cell.fault) for cell in own if not cell.agrees)
        for (form, fault), count in groups.items():
            which = ", ".join(cell.gpu for cell in own if (cell.form, cell.fault) == (form, fault))
            lines.append(f"  {form}: {fault} [{count}: {which}]")
    return lines
