"""What every step of planning knows: the recipe, the facts of the files, and what was asked for."""

from __future__ import annotations

import msgspec

from rocwheel.artifacts.sdk_files import SdkManifest
from rocwheel.binary.platform import Platform
from rocwheel.distributions.formats.platforms.given_platform import WINDOWS_TAG
from rocwheel.distributions.formats.platforms.platform_floor import oldest_tag
from rocwheel.packages.layout.facts import Facts
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.recipe.names import PackageNames, name_package
from rocwheel.packages.recipe.recipe import Layout, Recipe

__all__ = ["PlanBasis"]


class PlanBasis(msgspec.Struct, frozen=True):
    """The same for every distribution of a plan."""

    recipe: Recipe
    facts: Facts
    options: PlanOptions
    version: str
    """The version of every distribution, normalised."""
    layout: Layout
    compress_for: str | None = None
    """The oldest ROCm release that has to read compressed device code; none keeps device code as it is."""
    manifest: SdkManifest | None = None
    """What the SDK was built from."""

    @property
    def any_tag(self) -> str:
        """The platform tag of wheels without machine code: any system that the packages could be for takes them."""
        if self.facts.platform is Platform.WINDOWS:
            return WINDOWS_TAG
        return oldest_tag(self.facts.machine)

    def names(self, key: str, variant: str) -> PackageNames:
        """Return the names of the package ``key`` for a GPU target or family, with the suffix of platform modules."""
        names = name_package(self.recipe, key, self.layout, variant)
        return msgspec.structs.replace(names, platform_module=names.platform_module + self.options.module_suffix)
