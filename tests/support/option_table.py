"""The meaning of each option that several commands have.

The meaning is the same in all commands, which a test checks.
"""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """The meaning of an option, and its syntax."""

    text: str
    metavars: tuple[str, ...] = ()
    """Placeholders for its value. If empty, the option is a flag.

    ``<>`` stands for choices, which differ between commands.
    """
    repeatable: bool = False
    single_in: tuple[str, ...] = ()
    """Commands in which a repeatable option can't be repeated, or vice versa."""


_CHOICES = "<>"

MEANINGS = {
    "--allow-missing": Meaning("continue without what is missing"),
    "--at": Meaning("the place in site-packages that a run path is for", ("PLACE",)),
    "--check": Meaning("report what is wrong, and fail if anything is"),
    "--components": Meaning("components of artifacts that are selected", ("COMPONENTS",)),
    "--compress": Meaning("write compressed bundles"),
    "--config": Meaning("the file with the settings of the audit", ("FILE",)),
    "--dest-dir": Meaning("the folder of a build or a demo, with the packages in dist", ("DIR",)),
    "--dlopen": Meaning("a library that is opened at run time", ("LIBRARY",), repeatable=True),
    "--dry-run": Meaning("write nothing, and print what would be done"),
    "--files": Meaning("how files get into the result", (_CHOICES,)),
    "--find-links": Meaning("a further place of packages", ("PLACE",), repeatable=True),
    "--force": Meaning("do what is otherwise refused"),
    "--format": Meaning("the format of the result", (_CHOICES,)),
    "--front-page": Meaning("write a page for people with the index"),
    "--ignore": Meaning("rules that are left out", ("PATTERN",), repeatable=True),
    "--index-url": Meaning("the index that packages come from", ("URL",)),
    "--jax-rules": Meaning("use JAX's own rules"),
    "--jobs": Meaning("the number of workers or of transfers", ("N",)),
    "--json": Meaning("print the result as a JSON document"),
    "--level": Meaning("a compression level", ("N",)),
    "--limit": Meaning("the largest size that is decompressed", ("GIB",)),
    "--mismatch": Meaning("what happens at run time for another version of ROCm", (_CHOICES,)),
    "--output": Meaning("exactly the file or folder that is written", ("FILE", "DIR", "PATH", "OUTPUT", "PREFIX")),
    "--pin": Meaning("how closely the version of ROCm is required", (_CHOICES,)),
    "--platform": Meaning("the operating system of the packages", (_CHOICES,)),
    "--platform-tag": Meaning("a wheel platform tag", ("TAG",), single_in=("index mirror",)),
    "--python-version": Meaning("the Python that the result is for", ("X.Y",), single_in=("index mirror",)),
    "--quiet": Meaning("print only errors"),
    "--repair": Meaning("repair run paths"),
    "--rocm": Meaning("the ROCm release that the result is for", ("VERSION",)),
    "--rpath": Meaning("make run paths RPATHs"),
    "--scheduler": Meaning("the Dask scheduler whose workers do the work", ("ADDRESS",)),
    "--set": Meaning("the value of a placeholder", ("NAME=VALUE",), repeatable=True),
    "--settings": Meaning("the file with the settings of a build of JAX", ("FILE",)),
    "--spec": Meaning("the description of a wheel", ("FILE",)),
    "--src": Meaning("build outputs", ("PATH",), repeatable=True),
    "--targets": Meaning("GPU targets or families that are selected", ("TARGETS",), repeatable=True),
    "--tool": Meaning("the tool that the result is for", ("TOOL",), single_in=("runpath for",)),
    "--trim": Meaning("remove the freed space from files"),
    "--upload-time": Meaning("the date of new files in an index", ("TIME",)),
    "--url": Meaning("the address of an index", ("URL",)),
    "--variants": Meaning("take part in wheel variants"),
    "--verbose": Meaning("print more"),
    "--verify": Meaning("check what is read or written"),
    "--version": Meaning("the version of packages", ("VERSION",)),
    "--with": Meaning(
        "packages that are installed as well", ("PACKAGE",), repeatable=True, single_in=("jax commands",)
    ),
    "--with-requirements": Meaning("fetch or copy the requirements, too"),
}
"""The options of several commands, keyed by name."""
