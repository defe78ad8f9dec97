"""Tests of what make runs."""

from __future__ import annotations

import re

from tests.support.places import ROOT


def test_every_script_that_fetches_what_tests_need_is_run_by_make_corpus() -> None:
    recipe = re.search(r"^corpus:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    scripts = {path.name for path in (ROOT / "scripts").glob("fetch_*.sh")}
    assert scripts == set(re.findall(r"scripts/(fetch_\w+\.sh)", recipe[1]))
    assert "fetch_device_code_corpus.sh" in scripts
