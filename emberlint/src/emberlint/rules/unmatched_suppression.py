"""EMB904: a range of suppression with one end."""

from emberlint.rule import EngineRule, Example


class UnmatchedSuppression(EngineRule):
    """Reports `off` without `on`, and `on` without `off`."""

    code = "EMB904"
    name = "unmatched-suppression"
    message = "`{what}` has no matching `{other}`"
    why = "A range that is never closed silences the rest of the file, whatever is added to it later."
    VALID = (Example("# emberlint: off[EMB101]\nimport numpy\nimport torch\n# emberlint: on[EMB101]\n"),)
    INVALID = (
        Example("# emberlint: off[EMB101]\nimport numpy\n"),
        Example("import math\n# emberlint: on[EMB101]\n"),
        Example("# emberlint: off[EMB101]\nimport numpy\n# emberlint: on[EMB103]\n", count=2),
    )
