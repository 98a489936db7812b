"""EMB904: a range of suppression that is not closed or not opened."""

from emberlint.rule import EngineRule, Example


class UnmatchedSuppression(EngineRule):
    """Reports `off` without `on`, and `on` without `off`."""

    code = "EMB904"
    name = "unmatched-suppression"
    message = "`{what}` has no matching `{other}`"
    why = "A range that is never closed silences the rest of the file, including code that is added later."
    VALID = (Example("# emberlint: off[EMB101]\nimport numpy\nimport torch\n# emberlint: on[EMB101]\n"),)
    INVALID = (
        Example("# emberlint: off[EMB101]\nimport numpy\n"),
        Example("import math\n# emberlint: on[EMB101]\n"),
        Example("# emberlint: off[EMB101]\nimport numpy\n# emberlint: on[EMB103]\n", count=2),
    )
