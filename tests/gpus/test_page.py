"""The page of what runtimes did with files on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trials.gpus.page import add_run
from trials.gpus.table import Cell

if TYPE_CHECKING:
    from pathlib import Path


def cell(gpu: str, taken: str, said: str, *, runtime: str = "HIP 1") -> Cell:
    return Cell(runtime, gpu, "a file", 0 if taken else 209, "", taken, said, "the reason")


def test_the_page_names_the_gpus_that_load_a_file_and_the_disagreements(tmp_path: Path) -> None:
    cells = [
        cell("gfx90a:xnack+", "gfx90a", "gfx90a"),
        cell("gfx90a:xnack-", "gfx90a", "gfx90a"),
        cell("gfx908:xnack+", "gfx908", "gfx908"),
        cell("gfx908:xnack-", "", "gfx908"),
    ]
    add_run(cells, 12.3, runs=tmp_path / "runs.json", page=tmp_path / "gpus.md")
    text = (tmp_path / "gpus.md").read_text()
    assert text.partition("| runtime")[2].splitlines() == [
        " | GPUs | files | cells | agree | time |",
        "|---|---|---|---|---|---|",
        "| HIP 1 | 4 | 1 | 4 | 75.0 % | 12 s |",
        "",
        "## HIP 1",
        "",
        "| file | loads on |",
        "|---|---|",
        "| a file | gfx90a, gfx908:xnack+ |",
        "",
        "Disagreements:",
        "",
        "* gfx908:xnack-, a file: the runtime refuses it (status 209); runs-on says gfx908 (the reason)",
    ]


def test_a_run_replaces_the_last_one_of_its_runtime_only(tmp_path: Path) -> None:
    places = {"runs": tmp_path / "runs.json", "page": tmp_path / "gpus.md"}
    add_run([cell("gfx906", "", "")], 1, **places)
    add_run([cell("gfx906", "", "", runtime="HIP 2")], 1, **places)
    add_run([cell("gfx1030", "gfx1030", "gfx1030")], 1, **places)
    text = (tmp_path / "gpus.md").read_text()
    assert [line for line in text.splitlines() if line.startswith(("##", "| a file"))] == [
        "## HIP 1",
        "| a file | gfx1030 |",
        "## HIP 2",
        "| a file | none |",
    ]
