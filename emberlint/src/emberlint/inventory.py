"""Counts the native calls of a code base and the ops that replace them: the work of adopting the namespace."""

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from emberlint.knowledge.replacements import neutral_dtype, replacement
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import is_plain
from emberlint.source.source_file import SourceFile


class Row(NamedTuple):
    """A native name: its uses, the op that replaces it, the uses where only the name changes, and the first place."""

    native: str
    uses: int
    op: str | None
    renames: int
    first: str


@dataclass
class Inventory:
    """The native names used: how often, where first, and which ops replace them."""

    counts: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)  # the uses where only the name would change
    first: dict[str, str] = field(default_factory=dict)
    imports: Counter[str] = field(default_factory=Counter)
    files: int = 0

    def add(self, file: SourceFile) -> None:
        """Counts the native uses of a file."""
        self.files += 1
        for node in file.index.nodes(ast.Import):
            self.imports.update(
                root for root in (one.name.partition(".")[0] for one in node.names) if root in file.foreign
            )
        for source in file.index.nodes(ast.ImportFrom):
            root = (source.module or "").partition(".")[0]
            self.imports.update([root] if root in file.foreign and not source.level else [])
        for use in native_uses(file):
            self.counts[use.origin] += 1
            self.plain[use.origin] += is_plain(file, use)
            self.first.setdefault(use.origin, f"{file.path}:{use.node.lineno}")

    def rows(self) -> list[Row]:
        """Returns a row for each native name, the most frequent first."""
        return [
            Row(name, count, _replaced(name), self.plain[name], self.first[name])
            for name, count in self.counts.most_common()
        ]

    def totals(self) -> dict[str, int]:
        """Returns how many uses need only a new name, need other arguments, or have no op."""
        known = sum(count for name, count in self.counts.items() if _replaced(name) is not None)
        renames = self.plain.total()
        return {"renames": renames, "other arguments": known - renames, "no op": self.counts.total() - known}


def _replaced(origin: str) -> str | None:
    """Returns the op or the neutral dtype that replaces a native name, or None."""
    found = replacement(origin)
    return neutral_dtype(origin) or (found.op if found is not None else None)


def take(files: Iterable[SourceFile]) -> Inventory:
    """Returns the inventory of some files."""
    inventory = Inventory()
    for file in files:
        inventory.add(file)
    return inventory
