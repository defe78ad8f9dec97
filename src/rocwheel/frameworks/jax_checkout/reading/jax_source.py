"""The BUILD file of ``@jax//jaxlib/rocm``, read from a folder with JAX's source."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.frameworks.jax_checkout.editing.starlark import StarlarkFile, attribute, string_attribute
from rocwheel.frameworks.jax_checkout.reading.git import run_git
from rocwheel.frameworks.jax_checkout.reading.structure import JAX_BUILD, WORKSPACE, jax_rules, strip_level

if TYPE_CHECKING:
    from rocwheel.frameworks.jax_checkout.checkout import Checkout
    from rocwheel.frameworks.jax_checkout.reading.structure import Structure

__all__ = ["read_jax_build"]

_OPTION = "--jax"


def read_jax_build(folder: Path, checkout: Checkout, structure: Structure) -> str:
    """Return the text with the workspace's patches applied.

    ``folder`` is a clone that has the workspace's commit, or JAX as Bazel has fetched and patched it. Raises
    `InputError` for any other one, and for patches that don't fit.
    """
    file = StarlarkFile(structure.jax, checkout.text(structure.jax))
    rule = next(jax_rules(file))
    if not (folder / ".git").exists():
        return _read(folder / JAX_BUILD)
    commit = _commit(file, rule)
    done = run_git(folder, "cat-file", "blob", f"{commit}:{JAX_BUILD}")
    if done.returncode:
        found = f"has no {JAX_BUILD} at {commit}"
        remedy = f"Fetch the commit that {structure.jax} names, or give the folder external/jax of Bazel's output base."
        raise InputError(folder, found, remedy=remedy)
    return _patched(done.stdout, [checkout.text(path) for path in _patches(rule)], strip_level(file, rule), folder)


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="surrogateescape")
    except OSError as e:
        raise read_error(path, e, expected="JAX's source", remedy=f"Check {_OPTION}.") from e


def _commit(file: StarlarkFile, rule: ast.Call) -> str:
    """Return the commit that a rule fetches: a string, or a constant of its file."""
    given = string_attribute(rule, "commit")
    value = attribute(rule, "commit")
    return given or (file.constants().get(file.source(value), "") if value else "") or "HEAD"


def _patches(rule: ast.Call) -> list[str]:
    """Return the paths of the patches that a rule applies, those of the workspace."""
    value = attribute(rule, "patches")
    elements = value.elts if isinstance(value, ast.List) else []
    labels = [item.value for item in elements if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return [f"{WORKSPACE}/" + label.removeprefix("//").replace(":", "/") for label in labels if label.startswith("//")]


def _patched(data: bytes, patches: list[str], level: int, folder: Path) -> str:
    """Return a BUILD file with patches applied, as far as they are of this file."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / JAX_BUILD
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        for number, patch in enumerate(patches, 1):
            if JAX_BUILD not in patch:
                continue
            options = ("apply", f"-p{level}", "-C1", "--whitespace=nowarn", f"--include={JAX_BUILD}", "-")
            done = run_git(Path(scratch), *options, data=patch.encode(errors="surrogateescape"))
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip().splitlines()
                found = (
                    f"has a {JAX_BUILD} that patch {number} of the workspace doesn't fit ({said[0] if said else ''})"
                )
                raise InputError(folder, found, expected="JAX at the commit that the workspace fetches")
        return place.read_bytes().decode(errors="surrogateescape")
