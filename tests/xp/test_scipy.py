"""SciPy's special functions for arrays, as far as `enable_scipy` hands them to the ops."""

import json
import os
import subprocess
import sys

import pytest

from emberharmony.xp.scipy import op_of

PROGRAM = """
import json, numpy as np, scipy.special as special
from emberharmony import xp as package
xp = package.namespace({backend!r})
x = xp.asarray(np.asarray([0.25, 0.5, 2.0]))
plain = special.gammaln(x)
refused = ""
try:
    xp.grad(lambda a: xp.sum(special.gammaln(a)))(x)
except Exception as error:
    refused = type(error).__name__
package.enable_scipy()
slope = xp.grad(lambda a: xp.sum(special.gammaln(a)))(x)
half = special.ndtr(xp.asarray([0.5], dtype=xp.float32))
whole = special.expit(xp.asarray([0, 1])).tolist()
found = special.gammaln(x)
package.enable_scipy(False)
print(json.dumps(dict(
    refused=refused, slope=slope.tolist(), wanted=special.digamma(np.asarray(x)).tolist(), dtype=str(half.dtype),
    whole=whole, same=bool(np.allclose(np.asarray(found), np.asarray(plain), rtol=1e-6)), left=hasattr(xp, "special"),
)))
"""


def test_a_function_is_an_op_if_that_takes_tensors_alone() -> None:
    found = {name: getattr(op_of(name), "name", None) for name in ("expit", "psi", "gammaln", "ndtr", "yv", "sum")}
    assert found == {
        "expit": "sigmoid",
        "psi": "digamma",
        "gammaln": "gammaln",
        "ndtr": "ndtr",
        "yv": None,
        "sum": None,
    }


def test_scipy_finds_the_ops_and_forgets_them() -> None:
    pytest.importorskip("scipy")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(backend="numpy")],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert found["refused"] == "TracedTensorError"
    assert found["slope"] == pytest.approx(found["wanted"], rel=1e-5)
    assert (found["same"], found["left"], found["dtype"]) == (True, False, "float32")
    assert found["whole"] == pytest.approx([0.5, 0.7310586])
