"""A MkDocs hook that makes the API reference: one page for each floor, from the docstrings of its modules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

SOURCE = Path(__file__).parent.parent / "src" / "rocwheel"
FLOORS = (
    "frameworks",
    "packages",
    "repair",
    "audit",
    "installed",
    "device",
    "targets",
    "artifacts",
    "linking",
    "distributions",
    "binary",
    "foundation",
)
FOUNDATION = ("errors", "progress", "files", "tables", "demo")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the site."""
    for floor in FLOORS:
        modules = sorted(path.stem for path in (SOURCE / floor).glob("*.py") if not path.stem.startswith("_"))
        _add(files, config, floor, [f"rocwheel.{floor}.{module}" for module in modules])
    _add(files, config, "foundation", [f"rocwheel.{module}" for module in FOUNDATION])
    return files


def _add(files: Files, config: MkDocsConfig, name: str, modules: list[str]) -> None:
    text = f"# {name.capitalize()}\n\n" + "\n".join(f"::: {module}\n" for module in modules)
    files.append(File.generated(config, f"api/{name}.md", content=text))
