"""Adapters, by which libraries that have backends of their own run over ops, run there on every backend."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
KIND = {"numpy": "ndarray", "torch": "Tensor", "mlx": "array"}


def run(backend: str, *arguments: str) -> str:
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=ADAPTERS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_adapter_is_short() -> None:
    lines = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in ADAPTERS.glob("*.py")}
    assert lines.keys() == {"einops_backend", "pyhf_backend", "tensorly_backend"}
    assert lines["einops_backend"] <= 60
    assert lines["pyhf_backend"] < 90
    assert lines["tensorly_backend"] <= 50


@pytest.mark.sampled(3, everywhere=True)
@pytest.mark.fresh_process
def test_the_backend_of_einops_has_gradients(backend: str) -> None:
    pytest.importorskip("einops")
    # The slope of each of the sums of squares of means, and the norms of the images.
    assert run(backend, "einops_backend.py") == f"{backend}: {KIND[backend]} 6840.0 [188.997, 504.579]\n"


@pytest.mark.sampled(3, everywhere=True)
@pytest.mark.fresh_process
def test_the_backend_of_tensorly_decomposes_a_tensor(backend: str) -> None:
    pytest.importorskip("tensorly")
    form = rf"{backend}: {KIND[backend]} of shape \(6, 5, 4\), relative error ([\d.e-]+)\n"
    found = re.fullmatch(form, run(backend, "tensorly_backend.py"))
    assert found is not None
    assert float(found[1]) < 1e-5


@pytest.mark.sampled(3, everywhere=True)
@pytest.mark.fresh_process
def test_the_backend_of_pyhf_fits_a_model(backend: str) -> None:
    pytest.importorskip("pyhf")
    # The parameters that pyhf 0.7.6 finds by its own NumPy backend.
    assert run(backend, "pyhf_backend.py") == f"{backend}: {KIND[backend]} [0.848, 1.0072, 0.9961], 23.559393\n"


FUNCTIONS = """
import numpy as np
import pyhf
from pyhf_backend import EmberBackend
from scipy import stats
from emberharmony import ops

own, given = EmberBackend(), pyhf.tensor.numpy_backend()
pyhf.set_backend(own)
x, table = np.array([0.3, 1.2, 2.5]), np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])
calls = {
    "clip": (x, 0.5, 2.0), "erf": (x,), "erfinv": (x / 3,), "tile": (x, (2, 1)), "outer": (x, x),
    "isfinite": (np.array([1.0, np.nan, np.inf]),), "sum": (table, 0), "product": (table, 1), "abs": (-x,),
    "power": (x, x), "sqrt": (x,), "divide": (x, x), "log": (x,), "exp": (x,), "stack": ([x, x], 1),
    "where": (x > 1, x, -x), "concatenate": ([x, x],), "shape": (table,), "reshape": (table, (3, 2)),
    "ravel": (table,), "transpose": (table,), "einsum": ("ij,j->i", table, x), "normal_cdf": (x, 0.5, 2.0),
    "poisson_logpdf": (x, x + 1), "poisson": (x, x + 1), "normal_logpdf": (x, x + 1, x), "normal": (x, x + 1, x),
    "gather": (table, np.array([1, 0, 1])), "boolean_mask": (table, table > 2), "zeros": ((2, 3),), "ones": (3, "int"),
    "tolist": (table,), "simple_broadcast": (1, [2, 3], [4, 5]),
}
def same(name, found, wanted):
    pairs = zip(found, wanted) if isinstance(wanted, tuple) and name != "shape" else [(found, wanted)]
    for a, b in pairs:
        a = ops.to_numpy(a) if ops.is_tensor(a) else a
        assert np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-12, atol=1e-14, equal_nan=True), (name, a, b)
def tensors(value):
    if isinstance(value, list):
        return [tensors(item) for item in value]
    return ops.array(value) if isinstance(value, np.ndarray) else value
for name, arguments in calls.items():
    same(name, getattr(own, name)(*map(tensors, arguments)), getattr(given, name)(*arguments))
lower = own.percentile(tensors(table), [25, 50], axis=1, interpolation="lower")
same("percentile", lower, np.percentile(table, [25, 50], 1, method="lower"))
same("conditional", own.conditional(tensors(x)[0] > 0, lambda: 1.0, lambda: 2.0), 1.0)
same("poisson at 0", own.poisson([0, 0, 1], [0, 1, 0]), stats.poisson.pmf([0, 0, 1], [0, 1, 0]))
assert own.tolist([[1, 2], 3]) == [[1, 2], 3]
for law, parameters in (("poisson", (5.0,)), ("normal", (5.0, 2.0))):
    law = getattr(own, f"{law}_dist")(*(own.astensor([p, p]) for p in parameters))
    assert own.shape(law.sample((1000,))) == (1000, 2)
    assert abs(float(ops.mean(law.sample((1000,)))) - 5.0) < 0.5
    assert own.shape(law.log_prob(own.astensor([4.0, 6.0]))) == (2,)
for precision, bits in (("64b", 64), ("32b", 32)):
    narrow = EmberBackend(precision)
    assert [ops.dtype(narrow.astensor([1], kind)).bits for kind in ("float", "int", "bool")] == [bits, bits, 8]
try:
    own.astensor([1], dtype="long")
except KeyError:
    print("done")
"""

MODELS = """
import numpy as np
import pyhf
from pyhf_backend import EmberBackend
from emberharmony import ops

samples = [
    {"name": "signal", "data": [30.0, 95.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
    {"name": "background", "data": [100.0, 150.0], "modifiers": [
        {"name": "shape", "type": "histosys", "data": {"lo_data": [98, 100], "hi_data": [102, 190]}},
        {"name": "scale", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}},
        {"name": "simulated", "type": "staterror", "data": [3.0, 4.0]},
        {"name": "counted", "type": "shapesys", "data": [5.0, 6.0]},
        {"name": "lumi", "type": "lumi", "data": None},
    ]},
]
lumi = {"name": "lumi", "auxdata": [1.0], "sigmas": [0.017], "bounds": [[0.915, 1.085]], "inits": [1.0]}
spec = {"channels": [{"name": "channel", "samples": samples}], "parameters": [lumi]}
code = {"histosys": {"interpcode": "code2"}, "normsys": {"interpcode": "code1"}}
makers = [
    lambda: pyhf.simplemodels.uncorrelated_background([5.0, 10.0], [50.0, 60.0], [7.0, 8.0]),
    lambda: pyhf.simplemodels.correlated_background([12.0, 11.0], [50.0, 52.0], [45.0, 57.0], [55.0, 47.0]),
    lambda: pyhf.Model(spec, poi_name="mu"),
    lambda: pyhf.Model(spec, poi_name="mu", modifier_settings=code),
]
def results(make, fits):
    model, tensorlib = make(), pyhf.tensorlib
    start = model.config.suggested_init()
    parameters = [1.05 * value if value else 0.3 for value in start]
    data = [1.07 * n for n in tensorlib.tolist(model.expected_data(tensorlib.astensor(start), include_auxdata=False))]
    data += model.config.auxdata
    found = [model.expected_data(tensorlib.astensor(parameters)), model.logpdf(parameters, data)]
    if fits:
        best, minimum = pyhf.infer.mle.fit(data, model, return_fitted_val=True)
        found += [minimum, pyhf.infer.hypotest(1.0, data, model, test_stat="qtilde"), best]
    return model, data, parameters, [np.ravel(tensorlib.tolist(value)) for value in found]
for make in makers:
    # The codes 1 and 2 have a kink where a fit starts. There pyhf's own fit by gradients (PyTorch) ends as ours does.
    fits = make is not makers[-1]
    pyhf.set_backend("numpy")
    known, data, parameters, wanted = results(make, fits)
    step = 1e-5 * np.eye(len(parameters))
    slopes = [(known.logpdf(parameters + h, data) - known.logpdf(parameters - h, data)) / 2e-5 for h in step]
    pyhf.set_backend(EmberBackend())
    model, _, _, found = results(make, fits)
    for got, want, tolerance in zip(found, wanted, (1e-13, 1e-13, 1e-8, 1e-6, 1e-3)):
        assert np.allclose(got, want, rtol=tolerance, atol=tolerance), (got, want)
    slope = ops.grad(lambda p: model.logpdf(p, ops.array(data))[0])(ops.array(parameters))
    assert np.allclose(ops.to_numpy(slope), np.ravel(slopes), rtol=1e-6, atol=1e-6)
print("done")
"""


@pytest.mark.sampled(3, everywhere=True)
@pytest.mark.fresh_process
@pytest.mark.parametrize(
    "program", [pytest.param(FUNCTIONS, id="functions"), pytest.param(MODELS, id="models", marks=pytest.mark.slow)]
)
def test_the_backend_of_pyhf_agrees_with_that_of_pyhf_over_numpy(program: str, backend: str) -> None:
    pytest.importorskip("pyhf")
    assert run(backend, "-c", program) == "done\n"
