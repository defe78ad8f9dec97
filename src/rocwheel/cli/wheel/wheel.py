"""``rocwheel wheel``: make a framework's wheel from a description and build outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import shared, takes
from rocwheel.cli.wheel.options import Assembly, Sources, VersionOption, read_assembly, read_sources
from rocwheel.frameworks.wheel_spec import read_spec

__all__ = ["wheel"]


@app.command()
@takes(sources=read_sources, assembly=read_assembly)
def wheel(
    spec: Annotated[Path, shared("--spec")],
    sources: Sources,
    version: VersionOption = "",
    *,
    assembly: Assembly,
) -> None:
    """Assemble a wheel from build outputs by a description, and check that its files find their libraries.

    Example: rocwheel wheel --spec plugin.toml --src bazel-bin --with packages/dist --dest-dir dist
    """
    assembly.run(str(spec), read_spec(spec), sources, {"version": version} if version else {})
