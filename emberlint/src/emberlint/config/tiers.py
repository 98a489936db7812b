"""How sure the linter is of what it says."""

from enum import IntEnum


class Tier(IntEnum):
    """The strength of the evidence behind a finding; a higher tier is stronger.

    A: seen in the same function. B: propagated there. C: by convention only.
    """

    C = 1
    B = 2
    A = 3
