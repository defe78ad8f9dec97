"""Phase 1: the settings are Bazel's own; the old wheel scripts go on working."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.frameworks.jax.bazelrc import render_bazelrc
from rocwheel.frameworks.jax.generated_file import GeneratedFile
from rocwheel.frameworks.jax_checkout.editing.rc_file import rc_lines, without_lines
from rocwheel.frameworks.jax_checkout.phases.plan import SETTINGS
from rocwheel.frameworks.jax_checkout.phases.settings_draft import settings_text
from rocwheel.frameworks.jax_checkout.reading.structure import WORKSPACE
from rocwheel.targets.spelling.target_set import parse_target_set

if TYPE_CHECKING:
    from rocwheel.frameworks.jax_checkout.editing.rc_file import RcLine
    from rocwheel.frameworks.jax_checkout.phases.plan import Plan

__all__ = ["FRAGMENT", "prepare"]

FRAGMENT = f"{WORKSPACE}/rocm.bazelrc"
"""What ``rocwheel jax bazelrc`` writes."""

_IMPORT = "import %workspace%/rocm.bazelrc"
_IMPORT_LINES = f"\n# Written by `rocwheel jax bazelrc`; it imports .bazelrc.user as the last of all.\n{_IMPORT}\n"
_CONFIGURED = "%workspace%/.jax_configure.bazelrc"
_USER = "%workspace%/.bazelrc.user"
_OWN_CONFIGS = ("avx_posix", "native_arch_posix")


def prepare(plan: Plan) -> None:
    """Write the settings and the fragment, import it, and take out of ``.bazelrc`` what it brings."""
    draft = plan.draft
    if not draft.has(SETTINGS):
        text = settings_text(draft.checkout, plan.structure)
        draft.put(SETTINGS, text, "the build's settings, as .bazelrc, WORKSPACE and the builders had them")
    settings = plan.settings
    targets = parse_target_set(settings.targets, source=f"{SETTINGS}: targets")
    fragment = GeneratedFile("Made by rocwheel jax bazelrc from rocm.toml;", render_bazelrc(settings, targets))
    if not draft.has(FRAGMENT):
        draft.put(FRAGMENT, fragment.text, "what build.py put on the command line, as configs of Bazel")
    _edit_bazelrc(plan, {line.text.strip() for line in rc_lines(fragment.body)})


def _edit_bazelrc(plan: Plan, brought: set[str]) -> None:
    draft, path = plan.draft, plan.structure.bazelrc
    text = draft.text(path)
    if not any(line.command == "import" and line.options == ("%workspace%/rocm.bazelrc",) for line in rc_lines(text)):
        text = without_lines(text, lambda line: line.command.endswith("import") and _CONFIGURED in line.options)
        draft.put(path, text, "build.py wrote this file, from which every later build took every flag twice")
        text = without_lines(text, lambda line: line.command.endswith("import") and _USER in line.options)
        text = text.rstrip("\n") + "\n" + _IMPORT_LINES
        draft.put(path, text, "the fragment is imported last, and imports .bazelrc.user after its configs")
    text = without_lines(text, lambda line: _is_brought(line, brought))
    draft.put(path, text, "the fragment has these configs")


def _is_brought(line: RcLine, brought: set[str]) -> bool:
    return line.config in _OWN_CONFIGS and line.text.strip() in brought
