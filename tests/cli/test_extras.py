"""A plain installation, without any extra, has every command."""

from __future__ import annotations

import subprocess
import sys

import pytest

_EXTRAS = ("distributed", "obstore", "tomli_w", "uv")
"""What only extras install: ``[project.optional-dependencies]`` of pyproject.toml."""
_LOAD = "import sys; sys.modules.update(dict.fromkeys({extras!r})); from rocwheel import cli; cli.load_commands()"


@pytest.mark.slow
def test_every_command_loads_without_the_libraries_of_the_extras() -> None:
    command = [sys.executable, "-c", _LOAD.format(extras=_EXTRAS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
