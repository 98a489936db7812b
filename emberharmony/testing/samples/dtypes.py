"""Sample rows of `ops/dtypes.py`."""

from emberharmony.testing.sample import Sample

SAMPLES = [
    Sample("dtype", str, (), reference="tests"),
]
