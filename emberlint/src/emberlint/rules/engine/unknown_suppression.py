"""EMB902: a suppression that names no rule."""

from emberlint.rule import EngineRule, Example


class UnknownSuppression(EngineRule):
    """Reports suppressions of rules that do not exist, and comments with an unknown verb."""

    code = "EMB902"
    name = "unknown-suppression"
    message = "no rule or verb {what} exists{hint}"
    why = "A misspelt suppression silences nothing, although the reader believes that it does."
    VALID = (
        Example("import numpy  # emberlint: ignore[EMB101] -- by code\n"),
        Example("import numpy  # emberlint: ignore[backend-import] -- by name\n"),
    )
    INVALID = (
        Example("x = 1  # emberlint: ignore[tensor-operators]\n"),
        Example("x = 1  # emberlint: ignore[EMB999]\n"),
        Example("x = 1  # emberlint: disable[EMB101]\n"),
    )
