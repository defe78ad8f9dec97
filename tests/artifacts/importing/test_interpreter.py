"""The first lines of scripts."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.importing.interpreter import script_interpreter


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"#!/bin/sh\nexec true\n", "/bin/sh"),
        (b"#! /usr/bin/perl -w\n", "/usr/bin/perl"),
        (b"#!\t/usr/bin/python3\t-u\n", "/usr/bin/python3"),
        (b"#!/usr/bin/env python3\n", "python3"),
        (b"#!/bin/env -S python3 -u\n", "python3"),
        (b"#!/usr/bin/env -Spython3 -u\n", "python3"),
        (b"#!/usr/bin/env -iS LANG=C python3\n", "python3"),
        (b"#!/usr/bin/env --split-string=perl -w\n", "perl"),
        (b"#!/usr/bin/env\n", "/usr/bin/env"),
        (b"#!" + b"/x" * 200, "/x" * 127),
        (b"#!\n/bin/sh", None),
        (b"\x7fELF", None),
        (b"", None),
    ],
)
def test_the_program_that_runs_a_script(head: bytes, expected: str | None) -> None:
    assert script_interpreter(head) == expected
