"""The scopes of large trees: neither every file is asked for every symbol nor is anything loaded again and again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rocwheel.audit.settings import Configuration
from rocwheel.audit.subject import Process, Subject
from rocwheel.audit.symbol_scopes import Definitions, Scopes
from rocwheel.binary.elf.linkage import Linkage, SymbolReference
from tests.support.trees import data, find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.installed.tree import InstalledFile


class CountingLinkages(dict[str, Linkage]):
    """Counts who is asked for a symbol."""

    asked: Counter[str]

    def __getitem__(self, path: str) -> Linkage:
        self.asked[path] += 1
        return super().__getitem__(path)


def test_only_files_with_a_symbol_of_the_name_are_asked() -> None:
    linkages = CountingLinkages({f"{index}.so": Linkage(frozenset({b"f%d" % index})) for index in range(100)})
    linkages.asked = Counter()
    linkages["old.so"] = Linkage(frozenset({b"f7@V1", b"other"}), (b"V1",))
    reference = SymbolReference("f7")
    definitions = Definitions(linkages, [reference])
    assert definitions.has(reference, linkages.keys())
    assert not definitions.has(reference, {"8.so", "old.so"})
    assert linkages.asked == {"7.so": 1, "old.so": 1}


class CountingSubject(Subject):
    """Counts which files are loaded."""

    started: Counter[str]

    def start(self, file: InstalledFile) -> Process:
        """Count, and load."""
        self.started[file.path] += 1
        return super().start(file)


def test_what_is_declared_to_be_loaded_before_many_files_is_loaded_for_all_of_them_once() -> None:
    files = [library("demo/core.so", defines=["f"]), *(library(f"demo/p{index}.so") for index in range(20))]
    settings = Configuration(loaded_by={"demo/p*.so": ("demo/*.so",)})
    subject = CountingSubject(tree((package(), files)), settings)
    subject.started = Counter()
    scopes = Scopes(subject)
    paths = {path for process in subject.processes for path in scopes.of(process).paths}
    assert len(paths) == 21
    assert set(subject.started.values()) == {2}


def test_each_of_two_files_at_one_path_has_its_references_looked_up() -> None:
    user = library("demo/a.so", "libf.so", references=(SymbolReference("f"),), runpath="$ORIGIN")
    own = [library("demo/libf.so", defines=["f"]), data("demo/a.so"), user]
    assert [finding.rule for finding in find(tree((package(), own)), select=("undefined-symbol",))] == []
