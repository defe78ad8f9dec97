"""Whose ROCm a wheel's libraries are taken from: the SDK's packages, or what the system has."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.audit.wheel_toolkits import judge_toolkit
from rocwheel.linking.known.toolkits import is_rocm_folder, is_toolkit_folder

if TYPE_CHECKING:
    from rocwheel.audit.settings import AuditSettings
    from rocwheel.installed.tree import Distribution, Tree

__all__ = ["Opens", "Toolkit", "ToolkitOption", "choose_toolkit"]

ToolkitOption = Literal["auto", "sdk", "system"]
"""What users ask for; ``auto`` is judged by the libraries that the wheel needs."""


class Opens(enum.Enum):
    """What is known about the libraries that a file opens by name."""

    NOTHING = "nothing"
    """It opens none."""
    FOUND = "found"
    """Its strings name them, and each is in a package or on every system."""
    NAMED = "named"
    """Its strings name some. Others are put together at run time, or no package at hand has them."""
    ANYTHING = "anything"
    """Its strings name none: the names come from elsewhere."""


class Toolkit(msgspec.Struct, frozen=True):
    """Where a wheel's toolkit comes from."""

    is_sdk: bool
    """Whether run paths may be led to the SDK's packages."""
    is_told: bool = False
    """Whether a user said so."""
    reason: str = ""
    """Why a wheel's toolkit is not the SDK's: the libraries by which that is judged."""

    keeps: bool = False
    """Whether run paths keep every folder that may have libraries, since a user said so."""

    @property
    def trusts_layout(self) -> bool:
        """Whether the SDK's packages, which the wheel will require, have what the SDK's layout says."""
        return self.is_sdk and not self.keeps

    def gives_up(self, folder: str, opens: Opens) -> bool:
        """Return whether a file that finds all that it needs gives up a folder that may have what it opens by name.

        The folder is absolute or relative to site-packages. The SDK's packages stand in for the folders of ROCm where
        the file's strings name what it opens, and for those of every toolkit where a user said so.
        """
        if not self.trusts_layout or opens is Opens.FOUND:
            return self.trusts_layout
        is_rocms = is_rocm_folder(folder) and (opens is Opens.NAMED or self.is_told)
        return is_rocms or (self.is_told and is_toolkit_folder(folder))

    @property
    def is_systems(self) -> bool:
        """Whether the wheel is left to the machine's toolkits: a user said so, or its libraries do."""
        return not self.is_sdk and (self.is_told or bool(self.reason))


def choose_toolkit(
    tree: Tree, owner: Distribution, option: ToolkitOption, settings: AuditSettings, *, keeps: bool = False
) -> Toolkit:
    """Return the toolkit of a wheel in an environment; for ``keeps`` see `Toolkit`.

    With ``auto``, it is judged as an audit judges it (`rocwheel.audit.wheel_toolkits`).
    """
    if option != "auto":
        return Toolkit(option == "sdk", is_told=True, keeps=keeps)
    judged = judge_toolkit(tree, owner, settings)
    return Toolkit(judged.is_sdk, reason=judged.reason, keeps=keeps and not judged.reason)
