"""What the phases share: the draft that they change, where everything is, and what is given from outside."""

from __future__ import annotations

import msgspec

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.settings import BazelSettings, check_settings
from rocwheel.frameworks.jax_checkout.editing.draft import Draft
from rocwheel.frameworks.jax_checkout.reading.structure import WORKSPACE, Structure

__all__ = ["SETTINGS", "Plan"]

SETTINGS = f"{WORKSPACE}/rocm.toml"


class Plan(msgspec.Struct, frozen=True):
    """One migration under way."""

    draft: Draft
    structure: Structure
    rules: dict[str, str]
    """The files of the package ``rocm_wheel``, by their names."""
    declaration: str
    """What ``WORKSPACE`` says of it."""
    jax_build: str = ""
    """The BUILD file of ``@jax//jaxlib/rocm`` with the patches that the workspace has; empty if it is not at hand."""

    @property
    def settings(self) -> BazelSettings:
        """The settings in ``rocm.toml``; raises `InputError` or `ProblemsError` for unusable ones."""
        try:
            settings = decode_toml(self.draft.text(SETTINGS).encode(errors="surrogateescape"), BazelSettings)
        except msgspec.DecodeError as e:
            found, remedy = f"doesn't hold settings: {e}", "docs/jax.md has the fields."
            raise InputError(SETTINGS, found, remedy=remedy) from e
        check_settings(settings, SETTINGS)
        return settings
