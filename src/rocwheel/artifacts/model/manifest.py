"""``artifact_manifest.txt``: the stage folders of one artifact, one relative path per line."""

from __future__ import annotations

import re

from rocwheel.artifacts.model.paths import path_fault
from rocwheel.core.errors import InputError, ProblemsError

__all__ = ["MANIFEST_NAME", "MAX_MANIFEST_SIZE", "format_manifest", "parse_manifest"]

_LINE_ENDS = re.compile(r"[\r\n]+")
"""Not those of `str.splitlines`, some of which names of folders may have in them."""

MANIFEST_NAME = "artifact_manifest.txt"

MAX_MANIFEST_SIZE = 1 << 20
"""Bytes; a manifest has a few lines."""


def parse_manifest(data: bytes, source: str) -> tuple[str, ...]:
    """Return the stage folders that a manifest lists, in its order, each once.

    Blank lines, a leading ``./`` and a trailing ``/`` mean nothing. A manifest without a line is that of an empty
    artifact. Raises `ProblemsError` for every line that is not a path inside the artifact.
    """
    try:
        lines = _LINE_ENDS.split(data.decode())
    except UnicodeDecodeError as e:
        found = f"is not valid UTF-8 text (byte {e.start})"
        raise InputError(source, found, expected="one stage folder per line") from e
    stages = tuple(dict.fromkeys(_stage(line) for line in lines if line.strip()))
    problems = [
        InputError(source, f"the stage folder {stage!r} {fault}", expected="a relative path inside the artifact")
        for stage in stages
        if (fault := path_fault(stage) or _blank_fault(stage))
    ]
    if problems:
        raise ProblemsError(source, problems)
    return stages


def _blank_fault(stage: str) -> str:
    """Return what is wrong with a name of blanks: written, its line would mean nothing."""
    return "" if stage.strip() else "is blank"


def _stage(line: str) -> str:
    path = line.removeprefix("./")
    return path.rstrip("/") or path


def format_manifest(stages: tuple[str, ...]) -> bytes:
    """Return the manifest that lists ``stages``, as TheRock writes it."""
    return ("\n".join(stages) + "\n").encode()
