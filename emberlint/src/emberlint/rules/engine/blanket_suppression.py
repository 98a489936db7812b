"""EMB903: a suppression of all rules."""

from emberlint.rule import EngineRule, Example


class BlanketSuppression(EngineRule):
    """Reports suppressions that name no rule."""

    code = "EMB903"
    name = "blanket-suppression"
    message = "`{what}` without a rule silences every rule; name the intended rule: {what}[...]"
    why = "A blanket suppression also silences findings that nobody has seen yet."
    VALID = (Example("import numpy  # emberlint: ignore[backend-import] -- oracle\n"),)
    INVALID = (
        Example("import numpy  # emberlint: ignore\n"),
        Example("import numpy  # emberlint: ignore[]\n"),
        Example("# emberlint: file-ignore\nimport numpy\n"),
    )
