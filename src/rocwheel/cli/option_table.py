"""What each option of several commands means: the same, whichever command takes it. A test holds them to it."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """The one meaning of an option, and how it is spelled."""

    text: str
    metavars: tuple[str, ...] = ()
    """What stands for its value; without any, it is a flag. Choices differ from command to command: they are ``<>``."""
    repeatable: bool = False
    single_in: tuple[str, ...] = ()
    """Commands in which a repeatable option is given once, or the other way round."""


_CHOICES = "<>"

MEANINGS = {
    "--allow-missing": Meaning("continue without what is missing"),
    "--check": Meaning("report what is wrong, and fail if anything is"),
    "--commit": Meaning("a commit that goes into the wheel", ("REPOSITORY=COMMIT",), repeatable=True),
    "--components": Meaning("components of artifacts that are selected", ("COMPONENTS",)),
    "--compress": Meaning("write compressed bundles"),
    "--config": Meaning("the file with the settings of the audit", ("FILE",)),
    "--cpu-level": Meaning("the processor whose glibc-hwcaps folders count", (_CHOICES,)),
    "--dest-dir": Meaning("the folder of a build, a release, or a demo", ("DIR",)),
    "--dlopen": Meaning("a library that is opened at run time", ("LIBRARY",), repeatable=True),
    "--dry-run": Meaning("write nothing, and print what would be done"),
    "--family": Meaning("a family of GPU targets", ("FAMILY",)),
    "--files": Meaning("where an index has its files", (_CHOICES, "PREFIX")),
    "--find-links": Meaning("a further place of packages", ("PLACE",), repeatable=True),
    "--force": Meaning("do what is otherwise refused"),
    "--format": Meaning("the format of the result", (_CHOICES,)),
    "--front-page": Meaning("write a page for people with the index"),
    "--header-version": Meaning("the version of the header of compressed bundles", ("N",)),
    "--ignore": Meaning("rules that are left out", ("PATTERN",), repeatable=True),
    "--index-url": Meaning("the index that packages come from", ("URL",)),
    "--jax-rules": Meaning("use JAX's own rules"),
    "--jobs": Meaning("the number of workers or of transfers", ("N",)),
    "--json": Meaning("print the result as a JSON document"),
    "--level": Meaning("a compression level", ("N",)),
    "--limit": Meaning("the largest size that is decompressed", ("GIB",)),
    "--lock": Meaning("how closely the version of the SDK is locked", (_CHOICES,)),
    "--mismatch": Meaning("what happens at run time for another version of ROCm", (_CHOICES,)),
    "--output": Meaning("exactly the file or folder that is written", ("FILE", "DIR", "PATH", "OUTPUT", "PREFIX")),
    "--platform": Meaning("the operating system of the packages", (_CHOICES,)),
    "--platform-tag": Meaning("a platform tag of wheels", ("TAG",), single_in=("index mirror",)),
    "--python": Meaning("the Python that a wheel is for", ("3.X",)),
    "--python-version": Meaning("the Python that is installed for", ("X.Y",), single_in=("index mirror",)),
    "--quiet": Meaning("print only errors"),
    "--repair": Meaning("repair run paths"),
    "--rocm": Meaning("the ROCm release that the result is for", ("VERSION",)),
    "--rpath": Meaning("set RPATH, not RUNPATH"),
    "--runfiles-manifest": Meaning("Bazel's list of build outputs", ("FILE",)),
    "--scheduler": Meaning("the Dask scheduler whose workers do the work", ("ADDRESS",)),
    "--sdk-version": Meaning("the version of the SDK's packages", ("VERSION",)),
    "--set": Meaning("the value of a placeholder", ("NAME=VALUE",), repeatable=True),
    "--settings": Meaning("the file with the settings of a build of JAX", ("FILE",)),
    "--spec": Meaning("the description of a wheel", ("FILE",)),
    "--spell": Meaning("the tool that a run path is spelled for", ("TOOL",), single_in=("runpath for",)),
    "--src": Meaning("build outputs", ("PATH",), repeatable=True),
    "--src-list": Meaning("a file that lists build outputs", ("FILE",)),
    "--system-run-path": Meaning("an absolute run path entry that is allowed", ("DIR",), repeatable=True),
    "--targets": Meaning("GPU targets or families that are selected", ("TARGETS",), repeatable=True),
    "--trim": Meaning("remove the freed space from files"),
    "--upload-time": Meaning("the date of new files in an index", ("TIME",)),
    "--url": Meaning("the address of an index", ("URL",)),
    "--variants": Meaning("take part in wheel variants"),
    "--variants-for": Meaning("the GPUs whose variants an index lists", ("TARGETS",)),
    "--verbose": Meaning("print more"),
    "--verify": Meaning("check what is read or written"),
    "--version": Meaning("the version of packages", ("VERSION",)),
    "--with": Meaning(
        "packages that are installed as well", ("PACKAGE",), repeatable=True, single_in=("jax commands",)
    ),
}
"""The options of several commands, by name."""
