"""What the installed SDK reads of its own installation: RECORD, where its packages came from, its scripts."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
from contextlib import suppress
from importlib.metadata import PathDistribution
from pathlib import Path
from unittest.mock import patch

import trials.fuzz.build_info  # noqa: F401 (before what reads it)
from rocwheel.artifacts.importer import HEAD, script_interpreter
from rocwheel.sdk.rocm_sdk import _distributions, _doctor_files, _record
from rocwheel.sdk.rocm_sdk._record import RECORD_ERRORS, read_inside, read_outside
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import folder_on_disk, on_disk


def _distribution(name: str, data: bytes) -> PathDistribution:
    """Return a distribution with an input as the only file of its metadata."""
    folder = folder_on_disk("installed") / "rocm-1.0.dist-info"
    folder.mkdir()
    (folder / name).write_bytes(data)
    return PathDistribution(folder)


def _rows_of(data: bytes) -> None:
    """Read an input as the doctor reads RECORD, and require what csv reads, in one of its two lists."""
    with patch.object(_record, "find_distribution", lambda _: _distribution("RECORD", data)):
        inside, outside = read_inside("rocm"), read_outside("rocm")
    site = on_disk(b"", "mark").parent / "installed"
    rows = [[*row, "", ""][:3] for row in csv.reader(io.StringIO(data.decode(), newline="")) if row]
    expected = [(name, site / name, digest, size) for name, digest, size in rows if not name.startswith(("../", "/"))]
    require(
        [*map(tuple, inside)] == [row for row in expected if not row[0].endswith(".pyc")], "other rows than csv has"
    )
    others = [
        (name, Path(os.path.normpath(site / name)), digest, size)
        for name, digest, size in rows
        if name.startswith(("../", "/"))
    ]
    require([*map(tuple, outside)] == others, "other places outside")


def _origin_of(data: bytes) -> None:
    """Take an input as direct_url.json: what it leads to is the folder of the file whose plain address json reads."""
    folder = os.fsdecode(on_disk(b"", "mark").parent)
    given = data.replace(b"FOLDER", os.fsencode(folder))
    with patch.object(_distributions, "find_distribution", lambda _: _distribution("direct_url.json", given)):
        found = _distributions.name_origin()
    document = _plain_document(given)
    url = document.get("url")
    if not isinstance(url, str) or _OTHER_SCHEME.match(url) or "archive_info" not in document:
        require(not document or found == "", f"{found} of {document}")
    elif re.fullmatch(f"file://{re.escape(folder)}/[A-Za-z0-9_.-]+", url):
        require(shlex.split(found) == ["--find-links", folder], f"{found} of {url}")
    require(not found or shlex.split(found)[1].startswith("/"), f"{found} depends on the working directory")


def _plain_document(text: bytes) -> dict[str, object]:
    with suppress(ValueError, RecursionError):
        document = json.loads(text.decode())
        return document if isinstance(document, dict) else {}
    return {}


def _script(data: bytes) -> None:
    """Take an input as a script: the doctor and imports read the same interpreter, that of a plain first line."""
    found = _doctor_files._interpreter(on_disk(data, "script"))  # noqa: SLF001
    require(not found or found.startswith("/"), f"{found!r} depends on the working directory")
    imported = script_interpreter(data[:HEAD])
    if plain := _PLAIN_LINE.match(data):
        path = os.fsdecode(plain[1])
        # Of a line that the kernel would cut, nothing is said, nor of the second line that a shell reads.
        is_program = "env" not in path and not _doctor_files.LONG_LINE.match(data)
        require(not is_program or (found, imported) == (path, path), f"{found!r} and {imported!r}, not {path!r}")
    if looked_for := _BY_ENV.match(data):
        require(imported == looked_for[1].decode(), f"{imported!r}, not {looked_for[1]!r}")
    if quoted := _QUOTED.match(data):
        path = os.fsdecode(quoted[1] or quoted[2])
        require(found == path, f"{found!r}, not {path!r}")


_PLAIN_LINE = re.compile(rb"#![ \t]?(/[!-~]{1,100})(?: [!-~]{1,100})?\n")
_BY_ENV = re.compile(
    rb"#!/usr/bin/env (?:-i )?(?:-S ?|--split-string=)?(?:[A-Z]{1,9}=[a-z0-9]{0,9} )*"
    rb"([a-z][a-z0-9.]{0,99})(?: [!-~]{1,50})?\n"
)
_QUOTED = re.compile(
    rb"#!/bin/sh\n'''exec' (?:\"(/[A-Za-z0-9_./ -]{1,1000})\"|'(/[A-Za-z0-9_./ -]{1,1000})') \"[$]0\" \"[$]@\"\n"
)
_OTHER_SCHEME = re.compile(r"(?!file:)[a-z]+:", re.IGNORECASE)
_ROWS = b'rocm_sdk/__init__.py,sha256=x,0\nrocm_sdk/a.pyc,,\n"a,b",sha256=abc,9\n../bin/x,,\n'
_LINES = [
    b"#!/opt/v/bin/python3 -E\n",
    b"#! /a/perl\n",
    b"#!\t/a\n",
    b"#!/" + b"d" * 90 + b"\n",
    *(b"#!/usr/bin/env %s\n" % words for words in (b"a", b"-S A=1 b", b"-i c", b"-Sd e", b"--split-string=f -g")),
]
_LONG = b"#!/bin/sh\n'''exec' \"/opt/a b/bin/python\" \"$0\" \"$@\"\n' '''\n"
_DIRECT = b'{"url":"file://FOLDER/rocm-1.0-py3-none-any.whl","archive_info":{}}'
_OTHERS = [
    b'{"url":"file://FOLDER","dir_info":{}}',
    b'{"url":"https://host/FOLDER/x.whl","archive_info":{}}',
    b'{"url":"file:FOLDER/x.whl","archive_info":{}}',
    b'{"url":"file:x/x.whl","archive_info":{}}',
]

HARNESSES = (
    Harness("doctor.record", _rows_of, lambda: [_ROWS], RECORD_ERRORS, (b'"', b"\r\n", b"\xc2\x85")),
    Harness(
        "doctor.origin",
        _origin_of,
        lambda: [_DIRECT, *_OTHERS, b"[" * 60000],
        tokens=(b'"url":', b"file:", b"%2f", b"\\u0000", b"FOLDER"),
    ),
    Harness(
        "doctor.script",
        _script,
        lambda: [
            *_LINES,
            _LONG,
            _LONG.replace(b"/opt/a b", b"/" + b"c" * 900),
            _LONG.replace(b'"/opt/a b/bin/python"', b"'/a b'"),
        ],
        tokens=(b"#!/bin/sh\n'''exec' ", b' "$0" "$@"\n', b"/usr/bin/env ", b"--split-string=", b"\\ "),
        largest=1 << 13,
    ),
)
"""See `trials.fuzz.harness.Harness`."""
