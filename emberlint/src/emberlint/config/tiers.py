"""The tiers of evidence: how certain it is that an expression is a tensor."""

from enum import IntEnum


class Tier(IntEnum):
    """The strength of the evidence for a finding; a higher tier is stronger.

    A: seen in the same function. B: propagated from elsewhere. C: by convention only.
    """

    C = 1
    B = 2
    A = 3
