"""The constants of the array API standard."""

import math

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None
__array_api_version__ = "2025.12"
