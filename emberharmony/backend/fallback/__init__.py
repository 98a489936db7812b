"""Default bodies of primitives, over other primitives: a backend that lacks an op uses its body.

A backend that defines the op itself never comes here: this package is imported when a backend that lacks a primitive is
loaded, and a call then costs what the ops of the body cost.
"""

from emberharmony.backend.fallback.tools import BODIES as BODIES
from emberharmony.backend.fallback.tools import READING as READING
