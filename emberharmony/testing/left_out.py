"""Reasons why sample rows leave out a conformance check, shared by several rows."""

NO_WINDOW = "a window does not fit into an empty axis"
NO_PIXELS = "an empty image has no pixels to sample"
DIFFERENCE = "the result is a small difference of large products"
SUMMED = "the error is relative to the sum of magnitudes"
NO_MAXIMUM = "the maximum of no elements is undefined"
ROUNDED_MEAN = "the mean is rounded to the dtype before it is subtracted"
BEYOND_SCIPY = "SciPy overflows, or gives a double pole a sign"
