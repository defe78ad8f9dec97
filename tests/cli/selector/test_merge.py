"""``rocwheel selector merge`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.demo import SAMPLE_SDK
from tests.build.merging.selectors import facts_of, windows, write_plan, write_selector
from tests.support.loopback import served

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


def test_it_says_what_there_is_for_which_platform(run: Run, tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942", "gfx1100")
    win = write_selector(tmp_path / "win", "gfx1100", "gfx1151", change=windows)
    finished = run("selector", "merge", win, linux, "--dest-dir", tmp_path / "dist")
    assert finished.status == 0
    assert finished.stdout.splitlines() == [
        "gfx942: linux",
        "gfx1100: linux, win32",
        "gfx1151: win32",
        f"made {tmp_path}/dist/rocm-7.0.0.tar.gz of 2",
    ]


def test_its_document_names_what_was_merged(run: Run, tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942")
    win = write_selector(tmp_path / "win", "gfx1151", change=windows)
    finished = run("selector", "merge", win, linux, "--dest-dir", tmp_path / "dist", "--json")
    document = json.loads(finished.stdout)
    size = (tmp_path / "dist/rocm-7.0.0.tar.gz").stat().st_size
    assert document == {
        "schema": "rocwheel.selector-merge/1",
        "path": f"{tmp_path}/dist/rocm-7.0.0.tar.gz",
        "size": size,
        "version": "7.0.0",
        "families": {"gfx942": ["linux"], "gfx1151": ["win32"]},
        "merged": [str(linux), str(win)],
    }


def test_a_default_may_be_a_product(run: Run, tmp_path: Path) -> None:
    one, two = write_selector(tmp_path / "one", "gfx942"), write_selector(tmp_path / "two", "gfx1100")
    run("selector", "merge", one, two, "-d", tmp_path / "dist", "--default-family", "MI300X")
    assert facts_of(tmp_path / "dist/rocm-7.0.0.tar.gz")["DEFAULT_FAMILY"] == "gfx942"


def test_versions_that_differ_end_it_before_anything_is_written(run: Run, tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx950", options=PlanOptions(version="7.0.1"))
    finished = run("selector", "merge", one, two, "--dest-dir", tmp_path / "dist")
    assert (finished.status, finished.stderr) == (
        2,
        f"error: {two}: is rocm 7.0.1; expected rocm 7.0.0, as {one} is. Merge the selectors of one version.\n",
    )
    assert not (tmp_path / "dist").exists()


def test_plans_as_they_are_printed_give_the_same_as_what_was_built(run: Run, tmp_path: Path) -> None:
    plan = run("plan", "--artifact-dir", SAMPLE_SDK, "--json", "--quiet")
    (tmp_path / "plan.json").write_text(plan.stdout, encoding="utf-8")
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "built").run()
    for given, dest in ((tmp_path / "plan.json", "one"), (tmp_path / "built", "two")):
        assert run("selector", "merge", given, "--dest-dir", tmp_path / dest).status == 0
    one, two = ((tmp_path / dest / "rocm-7.0.0.tar.gz").read_bytes() for dest in ("one", "two"))
    assert one == two


def test_sdists_plans_and_folders_may_be_at_urls(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    sdist = write_selector(tmp_path / "www/one", "gfx942")
    folder = write_selector(tmp_path / "www/two/dist/family", "gfx90a").parents[2]
    plan = write_plan(tmp_path / "www/plan.json", "gfx1100")
    run("selector", "merge", sdist, folder, plan, "--dest-dir", tmp_path / "local")
    with served(tmp_path / "www") as address:
        urls = [f"{address}/one/rocm-7.0.0.tar.gz", f"{address}/two", f"{address}/plan.json"]
        finished = run("selector", "merge", *urls, "--dest-dir", tmp_path / "remote", "--json")
        files = [f"file://{path}" for path in (sdist, folder, plan)]
        assert run("selector", "merge", *files, "--dest-dir", tmp_path / "files").status == 0
    document = json.loads(finished.stdout)
    assert (list(document["families"]), urls[0] in document["merged"], urls[2] in document["merged"]) == (
        ["gfx90a", "gfx942", "gfx1100"],
        True,
        True,
    )
    results = [(tmp_path / place / "rocm-7.0.0.tar.gz").read_bytes() for place in ("local", "remote", "files")]
    assert results == results[:1] * 3
