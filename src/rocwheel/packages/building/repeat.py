"""Repeating a build to the byte: whether inputs and versions, and then the outputs, are those of a manifest."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import rocwheel
from rocwheel.core.compression import codec_samples
from rocwheel.core.decoding import convert_value
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.messages import count, first_of, shortened
from rocwheel.core.workers import raise_all
from rocwheel.distributions.build_manifest.read import find_manifest, read_manifest
from rocwheel.distributions.build_manifest.values import BuildManifest, ManifestOutput
from rocwheel.packages.building.make_manifest import used_tools
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.stores.urls import is_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.artifacts.summary import ArtifactDigest

__all__ = ["Repetition", "read_repetition"]

_DAMAGED = "the manifest of a build"
_SAY_WHERE = "Say where they are now with --artifact-dir."
_SAY_WHERE_IT_IS = "Say where it is now with --artifact-dir."
_MOST = 20
"""Artifacts that are named one by one."""
_SAME_TOOLS = "Install the same versions, such as with uv pip install NAME==VERSION."
_REMEDIES = {
    "machine": "Build on a machine of that kind.",
    "Python": "Install that version, such as with uv python install {version}, and run rocwheel with it.",
}
"""What to do about what is no library; all else can be installed."""


class Repetition(msgspec.Struct, frozen=True):
    """A build that is to be made again."""

    source: Path
    """The manifest's path."""
    manifest: BuildManifest
    options: PlanOptions
    level: int

    def artifact_dirs(self) -> tuple[Path, ...]:
        """Return the folders that the artifacts were in.

        Raises `InputError` for those that were at a URL or are gone, `ProblemsError` for several folders that are gone.
        """
        places = [used.place for used in self.manifest.inputs]
        if urls := [place for place in places if is_url(place)]:
            raise InputError(self.source, f"was made of artifacts at {urls[0]}", remedy=_SAY_WHERE)
        if not places:
            raise InputError(self.source, "names no artifacts", expected=_DAMAGED)
        folders = tuple(dict.fromkeys((self.source.parent / place).parent for place in places))
        raise_all(str(self.source), [self._gone(folder) for folder in folders if not folder.is_dir()])
        return folders

    def _gone(self, folder: Path) -> InputError:
        """Return the error to raise for the artifacts of a folder that is not there."""
        inputs = self.manifest.inputs
        names = [used.name for used in inputs if (self.source.parent / used.place).parent == folder]
        found = f"was made of {count(len(names), 'artifact')} that can't be found: {first_of(names, _MOST)}"
        return InputError(self.source, found, expected=f"a folder {folder} with them", remedy=_SAY_WHERE)

    def recipe(self) -> Path | None:
        """Return the path of the recipe, none for the one that ships with rocwheel."""
        place = self.manifest.recipe.place
        return self.source.parent / place if place else None

    def check_inputs(self, digests: Mapping[str, ArtifactDigest], recipe_sha256: str) -> None:
        """Raise `InputError` for an artifact or a recipe that is not what it was; `ProblemsError` for several."""
        raise_all(str(self.source), [*self._input_problems(digests), *self._recipe_problems(recipe_sha256)])

    def _input_problems(self, digests: Mapping[str, ArtifactDigest]) -> Iterator[InputError]:
        before = {used.name: used for used in self.manifest.inputs}
        for name, used in before.items():
            if name not in digests:
                expected = f"the artifact with the SHA-256 {used.sha256}"
                yield InputError(name, "is missing", expected=expected, remedy=_SAY_WHERE_IT_IS)
            elif (found := digests[name].sha256) != used.sha256:
                yield InputError(name, f"is another artifact, with the SHA-256 {found}", expected=used.sha256)
        for name in sorted(digests.keys() - before.keys()):
            yield InputError(name, "was no part of that build", expected="its artifacts alone")

    def _recipe_problems(self, sha256: str) -> Iterator[InputError]:
        recipe = self.manifest.recipe
        if sha256 != recipe.sha256:
            yield InputError(recipe.name, f"is another recipe, with the SHA-256 {sha256}", expected=recipe.sha256)

    def check_outputs(self, outputs: tuple[ManifestOutput, ...]) -> None:
        """Raise `WorkError` for an output that is not what it was; `ProblemsError` for several."""
        raise_all(str(self.source), list(self._output_problems({one.path: one for one in outputs})))

    def _output_problems(self, made: Mapping[str, ManifestOutput]) -> Iterator[WorkError]:
        before = {one.path: one for one in self.manifest.outputs}
        for path in sorted(before.keys() | made.keys()):
            if path not in made:
                yield WorkError(path, "was not built again", expected=before[path].sha256)
            elif path not in before:
                yield WorkError(path, "was built, and is not in the manifest")
            elif made[path].sha256 != before[path].sha256:
                yield WorkError(path, f"has the SHA-256 {made[path].sha256}", expected=before[path].sha256)


def read_repetition(path: Path) -> Repetition:
    """Read the manifest of a build that is to be made again, and compare this rocwheel with the one that made it.

    ``path`` is as for `find_manifest`.
    Raises what `read_manifest` raises, `InputError` for another version of rocwheel, or of a library whose work shows
    in the bytes, and for options that can't be read; `ProblemsError` for several.
    """
    path = find_manifest(path)
    manifest = read_manifest(path)
    raise_all(str(path), list(_tool_problems(manifest)))
    given = dict(manifest.options)
    level = given.pop("level", None)
    if not isinstance(level, int):
        raise InputError(path, "is damaged: options have no level", expected=_DAMAGED)
    try:
        options = convert_value(given, PlanOptions)
    except msgspec.ValidationError as e:
        raise InputError(path, f"is damaged: options: {shortened(str(e))}", expected=_DAMAGED) from e
    return Repetition(path, manifest, options, level)


def _tool_problems(manifest: BuildManifest) -> Iterator[InputError]:
    if manifest.rocwheel != rocwheel.__version__:
        found, expected = f"is version {rocwheel.__version__}", f"{manifest.rocwheel}, which built it"
        yield InputError("rocwheel", found, expected=expected, remedy="Install that version.")
        return  # other versions may need other libraries
    here = used_tools()
    for name, version in manifest.tools.items():
        if _shown(name, here.get(name, "none")) != _shown(name, version):
            remedy = _REMEDIES.get(name, _SAME_TOOLS).format(version=_shown(name, version))
            yield InputError(name, f"is {here.get(name, 'none')}", expected=version, remedy=remedy)
    samples = codec_samples()
    for name, sample in manifest.codecs.items():
        if samples.get(name) != sample:
            found = f"compresses a sample into other bytes on this machine ({platform.machine()})"
            yield InputError(name, found, expected="those of the machine that built it")


def _shown(name: str, version: str) -> str:
    """Return as much of a version as shows in the bytes: of Python, the first two numbers."""
    return ".".join(version.split(".")[:2]) if name == "Python" else version
