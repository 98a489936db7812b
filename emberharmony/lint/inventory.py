"""Counts the native calls of a code base, and which op replaces each: what adopting the namespace would take."""

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from emberharmony.lint.model import SourceFile
from emberharmony.lint.rename import DTYPE_NAMES, NEUTRAL, Replacement, replacement


@dataclass
class Inventory:
    """The native things used, how often and where, and what becomes of them."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    imports: Counter[str] = field(default_factory=Counter)
    files: int = 0

    def add(self, file: SourceFile) -> None:
        """Count what a file uses."""
        self.files += 1
        for node in file.index.nodes(ast.Import):
            self.imports.update(
                root for root in (one.name.partition(".")[0] for one in node.names) if root in file.foreign
            )
        for source in file.index.nodes(ast.ImportFrom):
            root = (source.module or "").partition(".")[0]
            self.imports.update([root] if root in file.foreign and not source.level else [])
        for use in file.native_uses:
            self.counts[use.origin] += 1
            self.first.setdefault(use.origin, f"{file.path}:{use.node.lineno}")

    def rows(self) -> list[tuple[str, int, Replacement | None, str]]:
        """Return native name, number of uses, replacement and first place, the most used first."""
        return [(name, count, replaced(name), self.first[name]) for name, count in self.counts.most_common()]

    def totals(self) -> dict[str, int]:
        """Return how many uses are plain renames, need other arguments, or have no op."""
        kinds = Counter({"renames": 0, "other arguments": 0, "no op": 0})
        for name, count in self.counts.items():
            found = replaced(name)
            kinds["no op" if found is None else "renames" if found.is_rename else "other arguments"] += count
        return dict(kinds)


def replaced(origin: str) -> Replacement | None:
    """Return the op or the neutral dtype that replaces a native thing."""
    name = origin.rpartition(".")[2]
    neutral = DTYPE_NAMES.get(name, name)
    return Replacement(neutral, is_rename=True) if neutral in NEUTRAL else replacement(origin)


def take(files: Iterable[SourceFile]) -> Inventory:
    """Return the inventory of some files."""
    inventory = Inventory()
    for file in files:
        inventory.add(file)
    return inventory
