"""The manifest of a build, of what it was made of and what it made."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import rocwheel
from rocwheel.artifacts.summary import ArtifactDigest
from rocwheel.core.compression import codec_samples, codec_tools, library_version
from rocwheel.core.remote_placeholders import shown
from rocwheel.distributions.build_manifest.values import BuildManifest, ManifestInput, ManifestOutput, ManifestRecipe
from rocwheel.distributions.formats.sdist import sdist_name
from rocwheel.packages.planning.options import PlanOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.packages.building.build import BuiltDistribution
    from rocwheel.packages.plan import Plan

__all__ = ["Ingredients", "UsedArtifact", "make_manifest", "used_tools"]

_FOR_MESSAGES = ("targets_source", "platform_tag_source")
"""Options that do not show in the bytes."""
_LIBRARIES = ("cyclonedx-python-lib", "msgspec", "packaging")


class UsedArtifact(msgspec.Struct, frozen=True):
    """An artifact that was read, and the folder or archive that it was read from."""

    digest: ArtifactDigest
    location: str


class Ingredients(msgspec.Struct, frozen=True):
    """What a build is made of, and how."""

    artifacts: tuple[UsedArtifact, ...]
    recipe: Path | None
    """None for the one that ships with rocwheel."""
    recipe_sha256: str
    options: PlanOptions


def make_manifest(
    ingredients: Ingredients,
    plan: Plan,
    built: Sequence[BuiltDistribution],
    folder: Path | None,
    level: int,
    epoch: int,
) -> BuildManifest:
    """Return the manifest that stands in ``folder``, none for a store; ``built`` is in the order of the plan.

    ``level`` is libdeflate's, and ``epoch`` dates the members of archives.
    """
    outputs = [ManifestOutput(path, one.size, one.sha256) for path, one in zip(_output_paths(plan), built, strict=True)]
    options = {name: value for name, value in _spelled(ingredients.options) if name not in _FOR_MESSAGES}
    return BuildManifest(
        rocwheel=rocwheel.__version__,
        source_date_epoch=epoch,
        options=options | {"level": level},
        recipe=_recipe(ingredients, folder),
        inputs=tuple(_input(used, folder) for used in ingredients.artifacts),
        outputs=tuple(sorted(outputs, key=lambda output: output.path)),
        tools=used_tools(),
        codecs=codec_samples(),
    )


def _spelled(options: PlanOptions) -> Iterator[tuple[str, Any]]:
    spelled: dict[str, Any] = msgspec.to_builtins(options)
    yield from spelled.items()


def used_tools() -> dict[str, str]:
    """Return the versions of Python and of the libraries whose work shows in the bytes."""
    versions = {name: library_version(name) for name in _LIBRARIES} | codec_tools()
    return {"Python": platform.python_version()} | dict(sorted(versions.items()))


def _output_paths(plan: Plan) -> Iterator[str]:
    """Yield where each distribution of a plan goes, relative to the destination."""
    for wheel in plan.wheels:
        yield _path(wheel.folder, wheel.name.file_name)
    for sdist in plan.sdists:
        yield _path(sdist.folder, sdist_name(sdist.distribution, sdist.version))


def _path(folder: str, name: str) -> str:
    return f"dist/{folder}/{name}" if folder else f"dist/{name}"


def _input(used: UsedArtifact, folder: Path | None) -> ManifestInput:
    digest = used.digest
    return ManifestInput(digest.name, digest.files, digest.size, digest.sha256, _place(used.location, folder))


def _recipe(ingredients: Ingredients, folder: Path | None) -> ManifestRecipe:
    path, sha256 = ingredients.recipe, ingredients.recipe_sha256
    return ManifestRecipe(path.name, sha256, _place(str(path), folder)) if path else ManifestRecipe("rocm.toml", sha256)


def _place(location: str, folder: Path | None) -> str:
    """Return where something was, without the path of anybody's home: a whole tree can move, and be compared."""
    if (url := shown(location)) != location:
        return url
    path = Path(location)
    if folder is None:
        return path.name
    return os.path.relpath(path.parent.resolve() / path.name, folder.resolve())
