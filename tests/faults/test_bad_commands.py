"""Commands that do what none may: a run with faults has to find each of them, and nothing about one that does well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from trials.faults.shim import build_shim, why_not

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "gcc is there")]

_COMMAND = """
import os, sys
from contextlib import suppress
from pathlib import Path
given, out = map(Path, sys.argv[1:])
hidden = out.with_name(".file.abcdefgh.rocwheel")
def work():
    data = given.read_bytes()
    out.parent.mkdir(exist_ok=True)
    hidden.write_bytes(data)
    hidden.replace(out)
def told(error):
    with suppress(OSError):
        hidden.unlink()
    return f"error: {error.filename or out}: {error.strerror}"
"""
_CAREFUL = """
try:
    work()
except OSError as e:
    sys.exit(told(e))
"""
_BAD = {
    "writes in place": ("hidden = out\n" + _CAREFUL, "file is wrong"),
    "hides an error": ("try:\n    work()\nexcept OSError:\n    pass\n", "ends well, but file is missing"),
    "catches nothing": ("work()\n", "'Traceback' is in its messages"),
    "gives no reason": (
        _CAREFUL.replace("told(e)", "f'error: {out}: failed'"),
        "doesn't give the reason, No space left on device",
    ),
    "names no path": (_CAREFUL.replace("told(e)", "f'error: {e.strerror}'"), "names no path"),
    "tells it twice": (_CAREFUL.replace("told(e)", "told(e) + '\\n' + told(e)"), "has 2 errors in its messages"),
    "leaves what it began": (
        _CAREFUL.replace("sys.exit(told(e))", "hidden.with_name('.rest.abcdefgh.rocwheel').touch(); sys.exit(told(e))"),
        "after the next run .rest.abcdefgh.rocwheel is there",
    ),
    "changes what it reads": (_CAREFUL + "given.write_bytes(b'changed')\n", "after the next run file differs"),
}

_TRIAL = """
import json, os, sys
from pathlib import Path
from trials.faults.attempt import attempt, look_at, prepare
from trials.faults.case import Case, Place
from trials.faults.choice import all_faults, read_calls, sample
from trials.faults.forked import run
from trials.faults.shim import Plan
place, site = Place(Path(sys.argv[1])), Path(sys.argv[2])
def give(place):
    place.given.mkdir(exist_ok=True)
    (place.given / "file").write_bytes(b"given" * 100)
words = lambda place: (place.given / "file", place.out / "file")
case = Case("test", words, give, give, module="bad", site=lambda _: site)
prepare(give, place)
trace = os.memfd_create("trace")
calm = look_at(case, place, lambda command: run(command, Plan(case.watched(place), trace=trace)))
faults = sample(all_faults(read_calls(os.pread(trace, os.fstat(trace).st_size, 0).decode())), 40, "seed")
found = set()
for fault in faults:
    found |= set(attempt(case, place, calm, fault).problems)
    if sys.argv[3] in found:
        break
print(json.dumps(sorted(found)))
"""


def try_out(folder: Path, command: str, until: str = "nothing") -> list[str]:
    """Have a command meet 40 faults, or fewer where one of them finds what is looked for; return what was found."""
    (folder / "site").mkdir()
    (folder / "site/bad.py").write_text(_COMMAND + command)
    environ = {**os.environ, "LD_PRELOAD": str(build_shim(folder / "shim"))}
    words = [sys.executable, "-c", _TRIAL, str(folder / "root"), str(folder / "site"), until]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def test_a_correct_command_has_no_findings(tmp_path: Path) -> None:
    assert try_out(tmp_path, _CAREFUL) == []


@pytest.mark.parametrize(("command", "found"), _BAD.values(), ids=_BAD)
def test_a_forbidden_action_of_a_command_is_found(tmp_path: Path, command: str, found: str) -> None:
    assert found in try_out(tmp_path, command, found)
