"""Results as JSON documents, each led by its schema."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import typer

from rocwheel.core.remote_placeholders import shown

__all__ = ["begin_documents", "is_document_printed", "print_json", "print_text"]

_printed: list[str] = []
"""The kinds of the JSON documents that this run has printed."""


def begin_documents() -> None:
    """Forget the documents of a run before this one."""
    _printed.clear()


def is_document_printed() -> bool:
    """Return whether this run has printed a document."""
    return bool(_printed)


def print_json(kind: str, version: int, value: Any) -> None:
    """Print ``value`` as one JSON object that begins with its ``schema`` (such as ``rocwheel.plan/1``).

    It is UTF-8, as JSON always is (:rfc:`8259`). If a file name is not text, it is ASCII only, and the name's bytes
    are escapes as in Python's ``surrogateescape``.
    """
    document = {"schema": f"rocwheel.{kind}/{version}", **msgspec.to_builtins(value)}
    _printed.append(kind)
    try:
        data = msgspec.json.format(msgspec.json.encode(document))
    except UnicodeEncodeError:
        data = json.dumps(document, indent=2).encode()
    sys.stdout.flush()
    sys.stdout.buffer.write(shown(data.decode()).encode() + b"\n")


def print_text(kind: str, text: str, *, json: bool) -> None:
    """Print a text as it is, or as the only field of a JSON document."""
    if json:
        print_json(kind, 1, {"text": text})
    else:
        typer.echo(text, nl=False)
