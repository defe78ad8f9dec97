"""The checks that ``make corpus`` does, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from trials.corpora.acceptance import ask_tools
from trials.corpora.auditing import audit_wheels
from trials.corpora.chains import edit_in_chains
from trials.corpora.loading import compare_loaders
from trials.corpora.misses import find_misses
from trials.corpora.reading import compare_readers
from trials.corpora.row import Row
from trials.corpora.run_paths import change_run_paths

__all__ = ["CHECKS", "Check"]


class Check(msgspec.Struct, frozen=True):
    """A check over many files."""

    run: Callable[[], Row]
    compared: str
    """What it compares with what, for the page."""


CHECKS: Final = {
    "pe": Check(
        partial(compare_readers, "pe"),
        "headers, sections, imports, delayed imports, exports, forwarders and versions of DLLs and programs of "
        "Windows, with pefile, LIEF and llvm-readobj",
    ),
    "elf": Check(
        partial(compare_readers, "elf"),
        "headers, segments, sections, dynamic entries, symbols and their versions of ELF files, "
        "with pyelftools, readelf and llvm-readobj",
    ),
    "run-paths": Check(
        change_run_paths,
        "what the loader says of each library of the wheels, before its run path gets a folder of 170 bytes, after "
        "that, and after the old one is put back",
    ),
    "loader": Check(
        compare_loaders,
        "which libraries the loader finds for each program and library of the wheels, and which symbols it finds "
        "undefined, with what the model of it says",
    ),
    "audit": Check(
        audit_wheels,
        "errors and warnings of `rocwheel audit` on each wheel by itself; errors were looked at one "
        "by one, warnings by kind",
    ),
    "misses": Check(
        find_misses,
        "libraries that are absent when the loader opens those of the wheels, with what the audit says of each wheel",
    ),
    "chains": Check(
        edit_in_chains,
        "libraries with device code before and after each edit of a chain (prune, compress, trim, retarget, split and "
        "join), in an order and at levels of zstd that its name settles: the code of each unit, what the loader says",
    ),
    "own-wheels": Check(
        ask_tools,
        "packages of the sample SDK, its libraries split by target and a repaired wheel, with pip, uv, `installer`, "
        "`wheel unpack`, `check-wheel-contents`, `twine check` and `auditwheel show`",
    ),
}
