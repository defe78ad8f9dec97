"""The options of ``rocwheel index mirror`` about what is copied, and how."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.index.variants_options import parse_machine
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import TransfersOption, shared
from rocwheel.core.errors import InputError
from rocwheel.core.workers import raise_all
from rocwheel.index.mirror import MirrorOptions
from rocwheel.index.mirror_choice import LATEST, Choice, Machines, normalised_pattern, split_extras

__all__ = ["read_choice", "read_machines", "read_mirror_options"]


def read_machines(
    platform: Annotated[
        list[str] | None,
        typer.Option(
            "--platform", metavar="TAG", help="Copy wheels for this, e.g. linux_x86_64, win_amd64.", show_default="all"
        ),
    ] = None,
    python_version: Annotated[
        list[str] | None,
        typer.Option("--python-version", metavar="X.Y", help="Copy wheels for this Python.", show_default="all"),
    ] = None,
) -> Machines:
    """Return the machines that the mirror is for."""
    return Machines(tuple(platform or ()), tuple(python_version or ()))


_ProjectOption = Annotated[
    list[str], typer.Option("--project", metavar="PATTERN", help="Copy these projects, e.g. rocm or 'rocm*'.")
]
_VersionOption = Annotated[
    str, shared("--version", f"Copy these versions, e.g. '==7.2.*', or '{LATEST}'.", show_default="all")
]
_DevelOption = Annotated[bool, typer.Option("--devel", show_default=False, help="Copy packages for development, too.")]
_RequirementsOption = Annotated[
    bool,
    typer.Option("--requirements", show_default=False, help="Copy what these require of the same indexes, too."),
]
_VariantsOption = Annotated[
    bool, typer.Option("--variants", show_default=False, help="Copy wheel variants (a draft, PEP 825), too.")
]
_PoolOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        metavar="PROJECT",
        help="Take the versions of this project in all indexes.",
        show_default="each project is that of the first index that has it",
    ),
]


def read_choice(
    project: _ProjectOption,
    version: _VersionOption = "",
    devel: _DevelOption = False,
    requirements: _RequirementsOption = False,
    variants: _VariantsOption = False,
    pool: _PoolOption = None,
) -> Choice:
    """Return which projects and versions are copied; raise `InputError` for extras whose requirements are not."""
    named = [split_extras(text) if requirements else (text, None) for text in project]
    lone = [text for text in project if not requirements and split_extras(text)[1] is not None and "," in text]
    remedy = "Give --requirements as well, or leave the extras out."
    raise_all("--project", [InputError("--project", f"{text} names extras", remedy=remedy) for text in lone])
    extras = {normalised_pattern(name): asked for name, asked in named if asked is not None}
    return Choice(
        projects=tuple(name for name, _ in named),
        version=version,
        devel=devel,
        extras=extras,
        requirements=requirements,
        variants=variants,
        pooled=frozenset(map(normalised_pattern, pool or ())),
    )


def read_mirror_options(
    jobs: TransfersOption = 4,
    exact: Annotated[
        bool,
        typer.Option("--exact", show_default=False, help="Remove from the mirror what is not among these any more."),
    ] = False,
    variants_for: Annotated[
        str | None,
        typer.Option(
            "--variants-for",
            metavar="TARGETS",
            autocompletion=complete_targets,
            help="List the variants for machines with these GPUs, the preferred first.",
            show_default="as in the last run, else each machine is asked",
        ),
    ] = None,
) -> MirrorOptions:
    """Return how the mirror is made; raise `InputError` for what no variant can be for."""
    return MirrorOptions(jobs, exact, parse_machine(variants_for) if variants_for is not None else None)
