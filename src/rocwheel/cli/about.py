"""``rocwheel about``: describes this installation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.cli.app import app
from rocwheel.cli.options import Output
from rocwheel.cli.output import print_json, print_text
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.environment.about import About


@app.command()
def about(
    *,
    out: Output,
) -> None:
    """Print information for a bug report.

    The command prints versions, the platform, codecs, and the ROCm installations and GPUs on this machine.

    Example: rocwheel about
    """
    from rocwheel.environment.about import read_about  # slow to load

    found = read_about(os.environ)
    if out.json:
        print_json("about", 1, found)
    else:
        print_text("\n".join(text_lines(found)))


def text_lines(found: About) -> Iterator[str]:
    """Yield the facts as labeled lines for users."""
    yield f"rocwheel     {found.rocwheel} in {found.folder}"
    yield f"Python       {found.python}, {found.executable}"
    yield f"platform     {found.system}; {found.libc}; {count(found.cpus, 'core')}"
    yield f"codecs       {_named(found.codecs)}"
    yield f"packages     {_named(found.packages)}"
    for prefix in found.prefixes:
        state = (prefix.version or "a folder without .info/version") if prefix.exists else "not found"
        yield f"ROCm         {prefix.named_by}: {prefix.path}: {state}"
    yield f"ROCm wheels  {_named(found.rocm_packages) or 'none installed'}"
    yield f"GPUs         {', '.join(found.gpus) or 'none found'}"
    for problem in found.problems:
        yield f"             {problem}"
    for name, value in found.environment.items():
        yield f"variable     {name}={value}"


def _named(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
