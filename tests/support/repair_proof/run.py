"""Repairs one wheel by the command line, and takes the proof and the audit of the result."""

from __future__ import annotations

import json
import posixpath
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.support.command_line import rocwheel
from tests.support.repair_proof.chroot import SITE
from tests.support.repair_proof.proof import prove
from tests.support.repair_proof.report import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.repair_proof.stubs import Stubs

__all__ = ["Trial", "errors_of"]


_MISSING = {"unresolved-library", "unreachable-library"}
_NEEDS = re.compile(r"\bneeds? ")
_LIBRARY = re.compile(r"[\w.+-]+\.so(?:\.\w+)*")


class Trial(msgspec.Struct, frozen=True):
    """A wheel, the packages that it is installed with, and the options that it is repaired with."""

    wheel: Path
    beside: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()

    def run(self, scratch: Path, stubs: Stubs) -> Row:
        """Repair the wheel, ask the loader and the audit before and after, and leave nothing in ``scratch``."""
        name, version = self.wheel.name.split("-")[:2]
        shown = (*self.options, *(f"--with {path.name.split('-')[0]}" for path in self.beside))
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            done = rocwheel("repair", self.wheel, "--output", f"{folder}/out", "--json", *self.options, *self._with)
            repaired = list(Path(folder, "out").glob("*.whl"))
            if not repaired:
                return Row(f"{name} {version}", shown, done.stderr.strip())
            proof = prove(self.wheel, repaired[0], Path(folder), stubs, self.beside)
            errors = self._errors(repaired[0]) - self._errors(self.wheel) - self._errors_beside
        [plan] = json.loads(done.stdout)["wheels"]
        given_up = frozenset(
            posixpath.normpath(posixpath.join(SITE, place)) for places in plan["given_up"].values() for place in places
        )
        return Row(f"{name} {version}", shown, proof=proof, errors=tuple(sorted(errors)), given_up=given_up)

    @property
    def _with(self) -> list[str]:
        return [part for path in self.beside for part in ("--with", str(path))]

    @property
    def _errors_beside(self) -> frozenset[str]:
        """What the packages beside the wheel lack by themselves: it comes to light where the wheel finds them now."""
        return frozenset(error for path in self.beside for error in errors_of(path))

    def _errors(self, wheel: Path) -> frozenset[str]:
        return errors_of(wheel, self._with)


def errors_of(wheel: Path, options: Sequence[str] = ()) -> frozenset[str]:
    """Return the audit's errors of a wheel: each rule with the file that breaks it, or the libraries that are missing.

    Which files miss a library is for the loader to say. The audit tells it for each file, or once for a package, under
    one rule or another: a library of torch is out of reach, and once torch is required, torch is to be given.
    """
    document = json.loads(rocwheel("audit", wheel, "--json", *options).stdout)
    found = (finding for finding in document["findings"] if finding["severity"] == "error")
    return frozenset(f"{_kind(finding)}: {subject}" for finding in found for subject in _subjects(finding))


def _kind(finding: dict[str, str]) -> str:
    return "missing" if finding["rule"] in _MISSING else finding["rule"]


def _subjects(finding: dict[str, str]) -> list[str]:
    # "loads a/libb.so, which needs libc.so, but ...": what is missing comes behind the verb, other names around it.
    missing = _NEEDS.split(finding["found"], maxsplit=1)[-1].partition(", but ")[0]
    libraries = _LIBRARY.findall(missing) if finding["rule"] in _MISSING else []
    return libraries or [finding["path"]]
