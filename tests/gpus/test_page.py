"""The page of what runtimes did with files on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trials.gpus.forms import EXTENDED_FORMS, ORIGINAL_FORM
from trials.gpus.page import SHARED_FORM, Cost, add_run
from trials.gpus.table import Cell

if TYPE_CHECKING:
    from pathlib import Path


COST = Cost(12, 3, 500)


def cell(gpu: str, taken: str, said: str, *, runtime: str = "HIP 1", form: str = "a file", machine: str = "") -> Cell:
    return Cell(runtime, gpu, form, 0 if taken else 209, "", taken, said, "the reason", machine)


def test_the_page_lists_the_gpus_that_load_a_file_and_the_disagreements(tmp_path: Path) -> None:
    cells = [
        cell("gfx90a:xnack+", "gfx90a", "gfx90a"),
        cell("gfx90a:xnack-", "gfx90a", "gfx90a"),
        cell("gfx908:xnack+", "gfx908", "gfx908"),
        cell("gfx908:xnack-", "", "gfx908"),
    ]
    add_run(cells, COST, runs=tmp_path / "runs.json", page=tmp_path / "gpus.md")
    text = (tmp_path / "gpus.md").read_text()
    assert text.partition("| runtime")[2].splitlines() == [
        " | GPUs | machines | files | cells | agree | time |",
        "|---|---|---|---|---|---|---|",
        "| HIP 1 | 4 | 0 | 1 | 4 | 75.0 % | 12 s |",
        "",
        "* HIP 1: 12 s (3 s of a processor), at most 500 MiB in a process",
        "",
        "## HIP 1",
        "",
        "| file | loads on |",
        "|---|---|",
        "| a file | gfx90a, gfx908:xnack+ |",
        "",
        "Disagreements:",
        "",
        "* a file: the runtime refuses it (status 209); runs-on says gfx908 (the reason). On gfx908:xnack-.",
    ]


def test_a_run_replaces_only_the_previous_run_of_its_runtime(tmp_path: Path) -> None:
    places = {"runs": tmp_path / "runs.json", "page": tmp_path / "gpus.md"}
    add_run([cell("gfx906", "", "")], COST, **places)
    add_run([cell("gfx906", "", "", runtime="HIP 2")], COST, **places)
    add_run([cell("gfx1030", "gfx1030", "gfx1030")], COST, **places)
    text = (tmp_path / "gpus.md").read_text()
    assert [line for line in text.splitlines() if line.startswith(("##", "| a file"))] == [
        "## HIP 1",
        "| a file | gfx1030 |",
        "## HIP 2",
        "| a file | none |",
    ]


def test_the_page_names_the_gpus_of_a_machine_that_load_a_library(tmp_path: Path) -> None:
    machines = ("gfx1030 gfx1031", "gfx1031 gfx1030", "gfx1030 gfx1030")
    taken = ("gfx1030", "", "", "", "gfx1030", "gfx1030")
    gpus = [(machine, gpu) for machine in machines for gpu in machine.split()]
    cells = [
        cell(gpu, code, code, form=SHARED_FORM, machine=machine)
        for (machine, gpu), code in zip(gpus, taken, strict=True)
    ]
    add_run([cell("gfx906", "", ""), *cells], COST, runs=tmp_path / "runs.json", page=tmp_path / "gpus.md")
    text = (tmp_path / "gpus.md").read_text()
    assert text.partition("| machine |")[2].splitlines() == [
        " HIP 1 |",
        "|---|---|",
        "| gfx1030 gfx1031 | gfx1030 |",
        "| gfx1031 gfx1030 | none |",
        "| gfx1030 gfx1030 | all |",
    ]


def test_the_page_names_the_gpus_that_load_retargeted_code_with_the_evidence(tmp_path: Path) -> None:
    gpus = {"gfx1030": "gfx1030", "gfx1031": "", "gfx1103": ""}
    cells = [cell(gpu, code, code, form=ORIGINAL_FORM) for gpu, code in gpus.items()]
    cells += [cell(gpu, "" if gpu == "gfx1103" else gpu, "", form=form) for gpu in gpus for form in EXTENDED_FORMS]
    add_run(cells, COST, runs=tmp_path / "runs.json", page=tmp_path / "gpus.md")
    text = (tmp_path / "gpus.md").read_text()
    evidence = (
        "bitsandbytes for ROCm 7.14: 2 of 2 bundles equal; jax-rocm7-plugin 0.10.2: 4 of 4; "
        "a HIP program by clang 22; equal features"
    )
    assert text.partition("| GPU | ")[2].splitlines() == [
        "HIP 1, plain | HIP 1, compressed version 2 | HIP 1, compressed version 3 | evidence |",
        "|---|---|---|---|---|",
        f"| gfx1031 | yes | yes | yes | gfx1030: {evidence} |",
        "| gfx1103 | none | none | none | no rule |",
    ]
