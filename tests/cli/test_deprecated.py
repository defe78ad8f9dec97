"""Deprecated commands run as what replaces them, and say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.cli.deprecated import COMMANDS, OPTIONS, replace_deprecated
from tests.support.commands import COMMANDS as CURRENT

if TYPE_CHECKING:
    from tests.support.command_line import Run


@pytest.mark.parametrize(
    ("old", "now", "notice"),
    [
        ("version", "--version", "rocwheel: 'version' is deprecated; use '--version'."),
        ("version --json -q", "--version --json", "rocwheel: 'version' is deprecated; use '--version'."),
        ("version --bogus", "--version --bogus", "rocwheel: 'version' is deprecated; use '--version'."),
        ("help targets list", "targets list --help", "rocwheel: 'help' is deprecated; use '--help'."),
        ("plan a --json", "build --dry-run a --json", "rocwheel: 'plan' is deprecated; use 'build --dry-run'."),
        ("index unyank a", "index yank --undo a", "rocwheel: 'index unyank' is deprecated; use 'index yank --undo'."),
        ("cache verify", "cache info --verify", "rocwheel: 'cache verify' is deprecated; use 'cache info --verify'."),
        (
            "artifacts from-deb a.deb",
            "artifacts import a.deb",
            "rocwheel: 'artifacts from-deb' is deprecated; use 'artifacts import'.",
        ),
        (
            "artifacts from-prefix a",
            "artifacts import a",
            "rocwheel: 'artifacts from-prefix' is deprecated; use 'artifacts import'.",
        ),
        (
            "targets expand gfx906 --to families",
            "targets list --format targets gfx906 --format families",
            "rocwheel: 'targets expand' is deprecated; use 'targets list --format targets'.",
        ),
        (
            "targets check --json",
            "targets detect --check --json",
            "rocwheel: 'targets check' is deprecated; use 'targets detect --check'.",
        ),
    ],
)
def test_a_deprecated_command_is_replaced(old: str, now: str, notice: str) -> None:
    assert replace_deprecated(old.split()) == (now.split(), [notice])


@pytest.mark.parametrize(
    ("old", "now", "notices"),
    [
        ("repair a --dest-dir b", "repair a --output b", ["'--dest-dir' is deprecated; use '--output'."]),
        ("repair a --dest-dir=b", "repair a --output=b", ["'--dest-dir' is deprecated; use '--output'."]),
        ("device split a -d b", "device split a -o b", ["'-d' is deprecated; use '-o'."]),
        ("device split a -db -t gfx906", "device split a -ob -t gfx906", ["'-d' is deprecated; use '-o'."]),
        ("device split a -qd b", "device split a -qo b", ["'-d' is deprecated; use '-o'."]),
        ("device prune a --keep b", "device prune a --targets b", ["'--keep' is deprecated; use '--targets'."]),
        ("build a -d b --compression 3", "build a -d b --level 3", ["'--compression' is deprecated; use '--level'."]),
        ("index a --yank b", "index a --yank b", ["'--yank' is deprecated; use 'rocwheel index yank'."]),
        ("repair -- --dest-dir", "repair -- --dest-dir", []),
        (
            "promote a --to 1 --dest-dir b",
            "promote a --to 1 --output b",
            ["'--dest-dir' is deprecated; use '--output'."],
        ),
        ("selector merge a -d b", "selector merge a -o b", ["'-d' is deprecated; use '-o'."]),
        ("build a --dest-dir b", "build a --dest-dir b", []),
        ("device split a --device-name -d -o b", "device split a --device-name -d -o b", []),
        ("device split a -o -d", "device split a -o -d", []),
        (
            "device split a --device-name -d -d b",
            "device split a --device-name -d -o b",
            ["'-d' is deprecated; use '-o'."],
        ),
        ("runpath set x a -vqd b", "runpath set x a -vqo b", ["'-d' is deprecated; use '-o'."]),
        ("repair a --with --dest-dir -o b", "repair a --with --dest-dir -o b", []),
        (
            "targets list --kind x",
            "targets list --filter kind=x",
            ["'--kind' is deprecated; use '--filter kind=VALUE'."],
        ),
        (
            "targets list --kind=x --official 7",
            "targets list --filter kind=x --rocm 7",
            [
                "'--kind' is deprecated; use '--filter kind=VALUE'.",
                "'--official' is deprecated; use '--rocm'.",
            ],
        ),
        ("targets flags --for cmake a", "targets flags --tool cmake a", ["'--for' is deprecated; use '--tool'."]),
        (
            "targets coherent --require a b",
            "targets coherent --targets a b",
            ["'--require' is deprecated; use '--targets'."],
        ),
        ("repair a --runpath", "repair a --no-rpath", ["'--runpath' is deprecated; use '--no-rpath'."]),
        (
            "artifacts merge a --hard-links",
            "artifacts merge a --files hardlink",
            ["'--hard-links' is deprecated; use '--files hardlink'."],
        ),
        ("publish a b --files=c", "publish a b --dist=c", ["'--files' is deprecated; use '--dist'."]),
        (
            "audit a --expect-tag rpath",
            "audit a --expect tag=rpath",
            ["'--expect-tag' is deprecated; use '--expect tag=VALUE'."],
        ),
        ("diff a b --all", "diff a b --verbose", ["'--all' is deprecated; use '--verbose'."]),
        ("wheel --python 3.12", "wheel --python-version 3.12", ["'--python' is deprecated; use '--python-version'."]),
    ],
)
def test_a_deprecated_option_is_replaced(old: str, now: str, notices: list[str]) -> None:
    assert replace_deprecated(old.split()) == (now.split(), [f"rocwheel: {text}" for text in notices])


def test_each_replacement_option_exists_in_its_command() -> None:
    for command, options in OPTIONS.items():
        names = {name for one in CURRENT[command].params for name in (*one.opts, *one.secondary_opts)}
        assert {now.split()[0] for now in options.values() if now} <= names


def test_no_deprecated_command_is_still_a_command() -> None:
    assert COMMANDS.keys() & CURRENT.keys() == set()


def test_the_notice_goes_to_standard_error(run: Run) -> None:
    done = run("targets", "expand", "gfx906")
    notice = "rocwheel: 'targets expand' is deprecated; use 'targets list --format targets'.\n"
    assert done == (0, "gfx906\n", notice)


def test_a_quiet_command_prints_no_notice(run: Run) -> None:
    assert run("targets", "check", "--root", "absent", "-q").stderr.count("deprecated") == 0
