"""What ``rocwheel build`` is made of: what the options of a plan say, or the manifest of an earlier build."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from rocwheel.build.job import PlanJob
from rocwheel.build.manifest import read_repetition
from rocwheel.cli.plan.options import read_plan_job
from rocwheel.core.errors import InputError

__all__ = ["read_build_inputs"]

_FromManifestOption = Annotated[
    Path | None,
    typer.Option(
        "--from-manifest",
        metavar="PATH",
        help="Build the same again: artifacts, recipe and options are those of this rocwheel-build.json, or folder.",
    ),
]
_OF_PLAN = inspect.signature(read_plan_job, eval_str=True).parameters
_PLACES = ("artifact_dir", "recipe")
"""Options that may be given with a manifest: where things are now."""


def read_build_inputs(*, from_manifest: Path | None, **given: Any) -> PlanJob:
    """Return what is to be built; ``given`` are the options of a plan.

    Raises `InputError` without artifacts, and for options beside a manifest, which has them all.
    """
    if from_manifest is None:
        if not given["artifact_dir"]:
            option, expected = "--artifact-dir", "the folder of artifacts"
            raise InputError(option, "is missing", expected=expected, remedy="Or give --from-manifest.")
        return read_plan_job(**given)
    for name, value in given.items():
        if name not in _PLACES and value != _OF_PLAN[name].default:
            option, found = f"--{name.replace('_', '-')}", "is given with --from-manifest, which has all options"
            raise InputError(option, found, remedy="Leave it out.")
    again = read_repetition(from_manifest)
    folders = tuple(given["artifact_dir"] or again.artifact_dirs())
    return PlanJob(folders[0], given["recipe"] or again.recipe(), again.options, folders[1:], again)


def _signature() -> inspect.Signature:
    """Return the options of a plan, of which none is required, and the one for a manifest."""
    first, *others = _OF_PLAN.values()
    option = get_args(first.annotation)[1]
    optional = first.replace(default=None, annotation=Annotated[list[Path] | None, option])
    more = first.replace(name="from_manifest", default=None, annotation=_FromManifestOption)
    found = (parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (optional, *others, more))
    return inspect.Signature(list(found))


# Typer reads a function's signature.
read_build_inputs.__signature__ = _signature()  # type: ignore[attr-defined]
