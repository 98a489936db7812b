"""Sample rows of `ops/reductions/histograms.py`."""

import numpy as np

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.gradient_row import TALL, GradientRow
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

REAL = FLOATS + HALVES
INTS = ("int32", "uint8")
_CUBE = np.random.default_rng(1).permutation(grid(-3, 5, 24)).reshape(2, 3, 4)
_COUNTS = np.array([0, 2, 2, 5])
_EDGES = np.array([-1.0, 0.5, 2.0])

SAMPLES = [
    Sample(
        "digitize",
        np.digitize,
        (case(_CUBE, _EDGES), case(_CUBE, _EDGES, True)),
        result="int64",
        fixed=True,
        dtypes=REAL,
        integers=INTS[:1],
    ),
    Sample(
        "bincount",
        np.bincount,
        (case(_COUNTS), case(_COUNTS, minlength=9)),
        dtypes=("float32",),
        result="int64",
        differentiable=True,
        gradient=GradientRow(cases=(case(np.array([0, 2, 2, 5]), np.array([0.5, -1.5, 2.0, 0.25]), 8),)),
        refuses=((ArgumentError, case(np.array([-1]))),),
    ),
    Sample(
        "histogram",
        lambda x, bins, range=None: np.histogram(x, bins, range),
        (case(_CUBE, 5, (-4.0, 6.0)), case(np.array([1.0, 4.0, 2.0, 1.5]), 4)),
        dtypes=REAL,
        integers=INTS[:1],
        result=("int64", "float"),
        differentiable=True,
        gradient=GradientRow(cases=(case(TALL, 4), case(TALL, 3, (-0.5, 2.0)))),
    ),
]
