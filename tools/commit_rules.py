"""A rule for gitlint: the subject of a commit is in the imperative, after an optional area and a colon."""

import re
from pathlib import Path

from gitlint.rules import CommitRule, RuleViolation

VERBS = frozenset((Path(__file__).parent / "commit_verbs.txt").read_text(encoding="utf-8").split())


class ImperativeSubject(CommitRule):  # type: ignore[misc]
    """Refuses subjects such as "Added a test", "tests: more cases" or "docs"."""

    name = "subject-is-imperative"
    id = "UC1"

    def validate(self, commit: object) -> list[RuleViolation]:
        """Returns a violation if the subject, after its area, does not begin with a verb in the imperative."""
        title: str = commit.message.title  # type: ignore[attr-defined]
        if title.startswith(("Merge ", "Revert ")):
            return []
        words = re.split(r"\W+", re.sub(r"^[\w./, *-]+: ", "", title).lower())
        if words[0] in VERBS:
            return []
        message = (
            f"the subject begins with {words[0]!r}, expected a verb in the imperative: 'ops/math: add logaddexp' "
            f"(if it is such a verb, add it to tools/commit_verbs.txt)"
        )
        return [RuleViolation(self.id, message, title)]
