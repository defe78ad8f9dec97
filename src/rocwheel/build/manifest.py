"""Records a build's inputs and outputs in a manifest, and checks that a repeated build is byte-identical."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import rocwheel
from rocwheel.artifacts.summary import ArtifactDigest
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.compression import codec_samples, codec_tools, library_version
from rocwheel.core.decoding import convert_value
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import count, first_of, shortened
from rocwheel.core.workers import raise_all
from rocwheel.stores.urls import is_url
from rocwheel.wheels.build_manifest import (
    BuildManifest,
    ManifestInput,
    ManifestOutput,
    ManifestRecipe,
    find_manifest,
    read_manifest,
)
from rocwheel.wheels.sdist import sdist_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.build.building import BuiltDistribution
    from rocwheel.build.plan import Plan


_FOR_MESSAGES = ("platform_tag_source",)
"""Options that have no effect on the bytes."""
_LIBRARIES = ("cyclonedx-python-lib", "msgspec", "packaging")


class BuildInputs(msgspec.Struct, frozen=True):
    """The inputs of a build."""

    artifacts: tuple[tuple[ArtifactDigest, str], ...]
    """The artifacts that were read, each with the path of its folder or archive."""
    recipe: Path | None
    """The path of the recipe, or `None` for the built-in recipe."""
    recipe_sha256: str
    options: PlanOptions


def make_manifest(
    inputs: BuildInputs,
    plan: Plan,
    built: Sequence[BuiltDistribution],
    folder: Path | None,
    level: int,
    epoch: int,
) -> BuildManifest:
    """Return the manifest for ``folder``, or for a store if ``folder`` is `None`.

    ``built`` is in the order of the plan, ``level`` is the libdeflate level, and ``epoch`` is the date of archive
    members.
    """
    planned = [(wheel.folder, wheel.name.file_name) for wheel in plan.wheels]
    planned += [(sdist.folder, sdist_name(sdist.distribution, sdist.version)) for sdist in plan.sdists]
    paths = ("/".join(filter(None, ("dist", *place))) for place in planned)
    outputs = [ManifestOutput(path, one.size, one.sha256) for path, one in zip(paths, built, strict=True)]
    spelled: dict[str, Any] = msgspec.to_builtins(inputs.options)
    options = {name: value for name, value in spelled.items() if name not in _FOR_MESSAGES}
    recipe = ManifestRecipe("rocm.toml", inputs.recipe_sha256)
    if path := inputs.recipe:
        recipe = ManifestRecipe(path.name, inputs.recipe_sha256, _place(str(path), folder))
    return BuildManifest(
        rocwheel=rocwheel.__version__,
        source_date_epoch=epoch,
        options=options | {"level": level},
        recipe=recipe,
        inputs=tuple(
            ManifestInput(one.name, one.files, one.size, one.sha256, _place(location, folder))
            for one, location in inputs.artifacts
        ),
        outputs=tuple(sorted(outputs, key=lambda output: output.path)),
        tools=used_tools(),
        codecs=codec_samples(),
    )


def used_tools() -> dict[str, str]:
    """Return the versions of Python and of the libraries that affect the bytes."""
    versions = {name: library_version(name) for name in _LIBRARIES} | codec_tools()
    return {"Python": platform.python_version()} | dict(sorted(versions.items()))


def _place(location: str, folder: Path | None) -> str:
    """Return a location relative to ``folder``, so that the manifest stays valid if the entire tree is moved.

    Without a folder, return only the file name. Neither form reveals the user's home folder.
    """
    path = Path(location)
    if folder is None:
        return path.name
    return os.path.relpath(path.parent.resolve() / path.name, folder.resolve())


_DAMAGED = "a build manifest"
_SAY_WHERE = "Set their current location with --artifact-dir."
_SAY_WHERE_IT_IS = "Set its current location with --artifact-dir."
_MOST = 20
"""The maximum number of artifacts that a message lists."""
_SAME_TOOLS = "Install the same versions, for example with 'uv pip install NAME==VERSION'."
_REMEDIES = {
    "machine": "Build on a machine of that type.",
    "Python": "Install that version, for example with 'uv python install {version}', and run rocwheel with it.",
}
"""The remedies for tools that are not libraries. All other tools are libraries that users can install."""


class Rebuild(msgspec.Struct, frozen=True):
    """A build to repeat."""

    source: Path
    """The path of the build's manifest."""
    manifest: BuildManifest
    options: PlanOptions
    level: int

    def artifact_dirs(self) -> tuple[Path, ...]:
        """Return the folders of the artifacts.

        Raises `InputError` if the artifacts came from a URL or their folder no longer exists, or `ProblemsError` if
        several folders no longer exist.
        """
        places = [used.place for used in self.manifest.inputs]
        if urls := [place for place in places if is_url(place)]:
            raise InputError(self.source, f"was made from artifacts at {urls[0]}", remedy=_SAY_WHERE)
        if not places:
            raise InputError(self.source, "doesn't list any artifacts", expected=_DAMAGED)
        folders = tuple(dict.fromkeys((self.source.parent / place).parent for place in places))
        problems = []
        for folder in (one for one in folders if not one.is_dir()):
            names = [one.name for one in self.manifest.inputs if (self.source.parent / one.place).parent == folder]
            found = f"was made from {count(len(names), 'artifact')} that can't be found: {first_of(names, _MOST)}"
            expected = f"the folder {folder} with these artifacts"
            problems.append(InputError(self.source, found, expected=expected, remedy=_SAY_WHERE))
        raise_all(str(self.source), problems)
        return folders

    def recipe(self) -> Path | None:
        """Return the path of the recipe, or `None` for the built-in recipe."""
        place = self.manifest.recipe.place
        return self.source.parent / place if place else None

    def check_inputs(self, digests: Mapping[str, ArtifactDigest], recipe_sha256: str) -> None:
        """Raise `InputError` if an artifact or the recipe has changed, or `ProblemsError` for several changes."""
        raise_all(str(self.source), list(self._input_problems(digests, recipe_sha256)))

    def _input_problems(self, digests: Mapping[str, ArtifactDigest], recipe_sha256: str) -> Iterator[InputError]:
        before = {used.name: used for used in self.manifest.inputs}
        for name, used in before.items():
            if name not in digests:
                expected = f"the artifact with the SHA-256 {used.sha256}"
                yield InputError(name, "is missing", expected=expected, remedy=_SAY_WHERE_IT_IS)
            elif (found := digests[name].sha256) != used.sha256:
                yield InputError(name, f"is a different artifact, with the SHA-256 {found}", expected=used.sha256)
        for name in sorted(digests.keys() - before.keys()):
            yield InputError(name, "was not an input to that build", expected="only the inputs to that build")
        recipe = self.manifest.recipe
        if recipe_sha256 != recipe.sha256:
            found = f"is a different recipe, with the SHA-256 {recipe_sha256}"
            yield InputError(recipe.name, found, expected=recipe.sha256)

    def check_outputs(self, outputs: tuple[ManifestOutput, ...]) -> None:
        """Raise `WorkError` if an output has changed, or `ProblemsError` for several changes."""
        raise_all(str(self.source), list(self._output_problems({one.path: one for one in outputs})))

    def _output_problems(self, made: Mapping[str, ManifestOutput]) -> Iterator[WorkError]:
        before = {one.path: one for one in self.manifest.outputs}
        for path in sorted(before.keys() | made.keys()):
            if path not in made:
                yield WorkError(path, "was not built again", expected=before[path].sha256)
            elif path not in before:
                yield WorkError(path, "was built, but is not in the manifest")
            elif made[path].sha256 != before[path].sha256:
                yield WorkError(path, f"has the SHA-256 {made[path].sha256}", expected=before[path].sha256)


def read_rebuild(path: Path) -> Rebuild:
    """Read the manifest of a build to repeat, and compare the current tools with the tools of that build.

    ``path`` has the same meaning as in `find_manifest`. Raises the same errors as `read_manifest`. Also raises
    `InputError`, or `ProblemsError` for several errors, for a different version of rocwheel or of a library that
    affects the bytes, and for unreadable options.
    """
    path = find_manifest(path)
    manifest = read_manifest(path)
    raise_all(str(path), list(_tool_problems(manifest)))
    given = dict(manifest.options)
    level = given.pop("level", None)
    if not isinstance(level, int):
        raise InputError(path, "is damaged: the options have no level", expected=_DAMAGED)
    try:
        options = convert_value(given, PlanOptions)
    except msgspec.ValidationError as e:
        raise InputError(path, f"is damaged: options: {shortened(str(e))}", expected=_DAMAGED) from e
    return Rebuild(path, manifest, options, level)


def _tool_problems(manifest: BuildManifest) -> Iterator[InputError]:
    if manifest.rocwheel != rocwheel.__version__:
        found, expected = f"is version {rocwheel.__version__}", f"{manifest.rocwheel}, the version used for that build"
        yield InputError("rocwheel", found, expected=expected, remedy="Install that version.")
        return  # another version of rocwheel may need other versions of libraries
    here = used_tools()
    for name, version in manifest.tools.items():
        if _shown(name, here.get(name, "none")) != _shown(name, version):
            remedy = _REMEDIES.get(name, _SAME_TOOLS).format(version=_shown(name, version))
            yield InputError(name, f"is {here.get(name, 'not installed')}", expected=version, remedy=remedy)
    samples = codec_samples()
    for name, sample in manifest.codecs.items():
        if samples.get(name) != sample:
            found = f"compresses a sample to different bytes on this machine ({platform.machine()})"
            yield InputError(name, found, expected="the same bytes as on the original machine")


def _shown(name: str, version: str) -> str:
    """Return the part of a version that affects the bytes. For Python, that is the first two numbers."""
    return ".".join(version.split(".")[:2]) if name == "Python" else version
