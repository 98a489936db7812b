"""EMB901: a suppression that has no effect."""

from emberlint.rule import EngineRule, Example


class UnusedSuppression(EngineRule):
    """Reports suppressions that silence no finding."""

    code = "EMB901"
    name = "unused-suppression"
    message = "this comment suppresses no finding of {what}; remove it"
    why = (
        "A suppression that no longer silences anything would hide the next finding on its line. Only rules that "
        "ran are judged: `--select EMB101` ignores comments for EMB201."
    )
    VALID = (
        Example("import numpy as np  # emberlint: ignore[backend-import] -- the host's data\n"),
        Example('x = "# emberlint: ignore[EMB101]"\n'),
    )
    INVALID = (
        Example("x = 1  # emberlint: ignore[backend-import] -- once needed\n"),
        Example("# emberlint: off[EMB101]\nx = 1\n# emberlint: on[EMB101]\n"),
    )
