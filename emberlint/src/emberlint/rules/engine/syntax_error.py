"""EMB000: a file that cannot be read as Python."""

from emberlint.rule import EngineRule, Example


class SyntaxErrorRule(EngineRule):
    """Reports files that do not parse."""

    code = "EMB000"
    name = "syntax-error"
    message = "cannot be read as Python: {what}"
    why = (
        "A file that cannot be parsed cannot be checked, so it never counts as clean: this rule cannot be ignored, "
        "suppressed or put in a baseline."
    )
    VALID = (Example("x = 1\n"), Example(""))
    INVALID = (Example("def f(:\n    pass\n"), Example("x = (1,\n"))
