"""``python -m trials.faults``, which ``make faults`` runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.places import ROOT

pytestmark = pytest.mark.slow


def test_an_unknown_case_name_is_reported() -> None:
    command = [sys.executable, "-m", "trials.faults", "index", "no-such"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no such case: no-such; there are build, build-first-cached, ")
    assert done.stderr.endswith("publish-at-once, index-while-read\n")
