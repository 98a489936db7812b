"""EMB905: an entry of the baseline that no longer accepts anything."""

from emberlint.rule import EngineRule


class StaleBaseline(EngineRule):
    """Reports entries of the baseline whose finding is gone."""

    code = "EMB905"
    name = "stale-baseline"
    message = "the baseline accepts {what} in {where}, where it is no longer found; run with --baseline-update"
    why = (
        "The entry of a repaired finding would hide the same fault if it came back. This rule makes sure that the "
        "baseline shrinks when findings are repaired."
    )
    VALID = ()
    INVALID = ()
