"""Base classes of rules, and the class of the examples that define a rule."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix
from emberlint.source.project import Project
from emberlint.source.source_file import SourceFile


@dataclass(frozen=True, slots=True)
class FixResult:
    """The result of `emberlint.fixes.fix(...)`: the new text, the repaired and the refused findings, with reasons."""

    text: str
    fixed: tuple[Finding, ...] = ()
    refused: tuple[tuple[Finding, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """An example of source that a rule accepts or reports; the tests, `explain` and the docs use it.

    Args:
        source: the source, which defines the rule together with the other examples.
        path: the path of the file in its project.
        fixed: the repaired source; None if the rule has no fix for it.
        unsafe: whether only `--unsafe-fixes` repairs it.
        count: the number of findings, if the example is one of INVALID.
        files: further files of the project, by path.
        settings: keys of `[tool.emberlint]`.
    """

    source: str
    path: str = "library/module.py"
    fixed: str | None = None
    unsafe: bool = False
    count: int = 1
    files: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)


class AnyRule(ABC):
    """The base class of all rules. Each rule is a class in a file of its own in `rules/`, where the registry finds it.

    Attributes:
        code: the code, such as "EMB101".
        name: the name, such as "backend-import", which suppressions use.
        message: a format string, filled with the words that are passed to `finding`.
        why: the reason for the rule, which `explain` shows.
        min_tier: the weakest evidence with which a finding is reported.
        roles: the roles of the files that the rule checks.
        VALID: examples without a finding.
        INVALID: examples with findings.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    message: ClassVar[str]
    why: ClassVar[str]
    min_tier: ClassVar[Tier] = Tier.A
    roles: ClassVar[frozenset[str]] = frozenset({"frontend"})
    VALID: ClassVar[Sequence[Example]]
    INVALID: ClassVar[Sequence[Example]]

    def finding(
        self,
        file: SourceFile,
        node: ast.AST,
        *,
        tier: Tier = Tier.A,
        reason: str = "",
        fix: Fix | None = None,
        rank: int = 0,
        **words: object,
    ) -> Finding:
        """Returns a finding at `node`, with `words` filled into the message of the rule."""
        line = getattr(node, "lineno", 1)
        column_offset = getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end_column_offset = getattr(node, "end_col_offset", None) or column_offset
        span = (line, file.column(line, column_offset), end_line, file.column(end_line, end_column_offset))
        return self.finding_at(file.path, span, tier=tier, reason=reason, fix=fix, rank=rank, **words)

    def finding_at(
        self,
        path: str,
        place: tuple[int, int, int, int],
        *,
        tier: Tier = Tier.A,
        reason: str = "",
        fix: Fix | None = None,
        rank: int = 0,
        **words: object,
    ) -> Finding:
        """Returns a finding at a place: line, column, end line, end column."""
        return Finding(self.code, self.name, path, *place, self.message.format(**words), tier, reason, fix, rank)


class Rule(AnyRule):
    """A rule that looks at one file at a time."""

    @abstractmethod
    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields the findings of any tier; the engine keeps those of at least `min_tier`."""


class ProjectRule(AnyRule):
    """A rule that needs several files of the project, such as those of layering and parity."""

    @abstractmethod
    def check(self, project: Project) -> Iterator[Finding]:
        """Yields the findings in the whole project; the engine keeps those in the files to check."""


class EngineRule(AnyRule):
    """A rule that the engine itself reports, such as those about syntax errors and suppressions."""

    roles = frozenset({"frontend", "backend", "test", "script"})
