"""The workspace's own configs, without what the fragment says again: one home for the compiler and the targets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_checkout.editing.rc_file import config_options, rc_lines, without_lines
from rocwheel.frameworks.jax_checkout.phases.prepare import FRAGMENT
from rocwheel.frameworks.jax_checkout.phases.users import callers

if TYPE_CHECKING:
    from rocwheel.frameworks.jax_checkout.editing.rc_file import RcLine
    from rocwheel.frameworks.jax_checkout.phases.plan import Plan

__all__ = ["drop_overridden"]

_CONFIGS = ("rocm", "rocm_base")
_CONFIG = "rocm_build"
_SETTING = re.compile(r"(--(?:repo_env|action_env|define)=[^=]+)=.*", re.DOTALL)
_USE = re.compile(r"--config[= ](?:rocm|rocm_base)(?![\w.-])")


def drop_overridden(plan: Plan) -> None:
    """Take the lines out of ``.bazelrc`` whose variables ``rocm_build`` sets, unless a file uses those configs."""
    path = plan.structure.bazelrc
    if any(_uses(name, file.text) for name, file in callers(plan.draft.checkout) if name not in (path, FRAGMENT)):
        return
    again = {_name(option) for option in config_options(plan.draft.text(FRAGMENT)).get(_CONFIG, [])}

    def is_overridden(line: RcLine) -> bool:
        names = {_name(option) for option in line.options}
        return line.config in _CONFIGS and bool(names) and "" not in names and names <= again

    plan.draft.put(path, without_lines(plan.draft.text(path), is_overridden), "rocm_build of the fragment sets these")


def _name(option: str) -> str:
    """Return which variable an option sets, empty for an option that sets none."""
    match = _SETTING.fullmatch(option)
    return match[1] if match else ""


def _uses(path: str, text: str) -> bool:
    """Return whether a file builds by the old configs themselves, in more than comments."""
    if path.endswith("bazelrc"):
        return any(_USE.search(" ".join(line.options)) for line in rc_lines(text))
    return any(_USE.search(line) and not line.lstrip().startswith("#") for line in text.splitlines())
