"""Command lines that can't be read: where, what was found, what is expected; never in the words of a library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Run

VALUES = "Remove the argument, or add the option that it belongs to. Quote values with spaces."
TOOLS = (
    "cmake, hip, bazel, torch, jax, spack, nix, gentoo, gentoo-desc, ebuild, debian, debian-build, rpm, target-lst, "
    "file-name"
)

DEST_DIR = "Write the packages to the dist subfolder of this folder. Both are created if needed"
PROMOTE = "See rocwheel promote --help."
BUILD_HELP = "See rocwheel build --help."
IGNORED = "Ignore rules with these names. Patterns are accepted; --rules lists the names"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("hlep", "rocwheel: has no command 'hlep'. See rocwheel --help."),
        ("targets flag", "rocwheel targets: has no command 'flag'. Did you mean 'flags'?"),
        ("index mirrr", "mirrr: is neither a command nor an existing path. Did you mean 'index mirror'?"),
        (
            "index dist",
            (
                "dist: can't be listed (No such file or directory). "
                "Specify the folder that contains the wheels and sdists."
            ),
        ),
        ("qqq", "rocwheel: has no command 'qqq'. See rocwheel --help."),
        (
            "--quiet build",
            "rocwheel: has no option --quiet. A command's options come after its name: rocwheel COMMAND --quiet",
        ),
        (
            "jax -q wheel",
            "rocwheel jax: has no option -q. A command's options come after its name: rocwheel jax COMMAND -q",
        ),
        (
            "--verbose build",
            (
                "--verbose: comes before the command; expected the option after the command's name, or together with "
                "--version"
            ),
        ),
        ("build --artifact-dri x", "rocwheel build: has no option --artifact-dri. Did you mean --artifact-dir?"),
        ("build --zzz", "rocwheel build: has no option --zzz. See rocwheel build --help."),
        (
            "build --dest-dir",
            f"--dest-dir: has no value; expected DIR: {DEST_DIR}. {BUILD_HELP}",
        ),
        (
            "audit --ignore",
            f"--ignore: has no value; expected PATTERN: {IGNORED}. See rocwheel audit --help.",
        ),
        ("about --json=3", "--json: takes no value"),
        (
            "build",
            (
                "rocwheel build: the argument ARTIFACTS and the option --dest-dir are missing. To repeat a build, use "
                "--from-manifest. See rocwheel build --help."
            ),
        ),
        (
            "promote",
            f"rocwheel promote: the argument DIST and the option --output are missing. {PROMOTE}",
        ),
        ("inspect", "rocwheel inspect: the argument PATH is missing. See rocwheel inspect --help."),
        ("about x", f"rocwheel about: takes no arguments, but got 'x'. {VALUES} See rocwheel about --help."),
        (
            "diff old new more",
            f"rocwheel diff: takes no arguments except OLD NEW, but got 'more'. {VALUES} See rocwheel diff --help.",
        ),
        ("targets flags --tool make gfx906", f"--tool: is 'make'; expected one of {TOOLS}"),
        ("build --jobs two", "--jobs: is 'two'; expected a whole number, at least 0"),
        ("build --jobs -1", "--jobs: is '-1'; expected a whole number, at least 0"),
        ("device compress f -o g --level 99", "--level: is '99'; expected a whole number from 1 to 22"),
    ],
    ids=lambda value: value if len(value) < 40 else "",
)
def test_an_invalid_command_line_gives_one_plain_message(run: Run, words: str, message: str) -> None:
    assert run(*words.split()) == (2, "", f"error: {message}\n")
