"""EMB905: an entry of the baseline that accepts nothing any more."""

from emberlint.rule import EngineRule


class StaleBaseline(EngineRule):
    """Reports entries of the baseline whose finding is gone."""

    code = "EMB905"
    name = "stale-baseline"
    message = "the baseline accepts {what} in {where}, which is no longer found; run with --baseline-update"
    why = (
        "An entry whose finding was repaired would let the same fault come back unseen. "
        "The baseline may only shrink, and this rule makes it."
    )
    VALID = ()
    INVALID = ()
