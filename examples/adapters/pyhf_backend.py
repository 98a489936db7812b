"""A backend of pyhf (https://pyhf.readthedocs.io) over ops: its statistical models run on NumPy, PyTorch and MLX."""

import math
from collections import namedtuple

import pyhf
from pyhf.optimize import common

from emberharmony import ops

SAME = "abs concatenate divide einsum erf erfinv exp isfinite log outer power ravel reshape shape sqrt stack sum tile"
SAME += " to_numpy transpose where"


class Distribution(namedtuple("Distribution", "logpdf draw parameters")):
    """A distribution of pyhf: its logarithmic density, the op that draws from it, and its parameters."""

    def log_prob(self, value):
        return self.logpdf(value, *self.parameters)

    def sample(self, sample_shape=()):
        return self.draw((*sample_shape, *self.parameters[0].shape), *self.parameters)


class EmberBackend:
    """The functions of pyhf whose names or parameters differ from those of ops; the others are registered below."""

    name, default_do_grad = "emberharmony", True
    product, gather, boolean_mask = staticmethod(ops.prod), staticmethod(ops.get_item), staticmethod(ops.get_item)
    conditional, simple_broadcast = staticmethod(ops.cond), staticmethod(ops.broadcast_arrays)
    clip = staticmethod(lambda tensor, min_value, max_value: ops.clip(tensor, min_value, max_value))
    tolist = staticmethod(lambda tensor: tensor if isinstance(tensor, list) else tensor.tolist())

    def __init__(self, precision="64b"):
        self.precision, bits = precision, precision.removesuffix("b")
        self.dtypemap = {"float": f"float{bits}", "int": f"int{bits}", "bool": "bool"}

    def _setup(self):
        ops.set_default_float(self.dtypemap["float"])

    def astensor(self, tensor_in, dtype="float"):
        return ops.cast(tensor_in, self.dtypemap[dtype])

    def ones(self, shape, dtype="float"):
        return ops.ones(shape, self.dtypemap[dtype])

    def zeros(self, shape, dtype="float"):
        return ops.zeros(shape, self.dtypemap[dtype])

    def percentile(self, tensor_in, q, axis=None, interpolation="linear"):
        return ops.percentile(tensor_in, q, axis, interpolation)

    def poisson_logpdf(self, n, lam):
        return ops.subtract(ops.xlogy(n, lam), ops.add(lam, ops.gammaln(ops.add(n, 1.0))))

    def normal_logpdf(self, x, mu, sigma):
        z = ops.divide(ops.subtract(x, mu), sigma)
        return ops.subtract(ops.multiply(ops.square(z), -0.5), ops.add(ops.log(sigma), 0.5 * math.log(2.0 * math.pi)))

    poisson = lambda self, n, lam: ops.exp(self.poisson_logpdf(n, lam))
    normal = lambda self, x, mu, sigma: ops.exp(self.normal_logpdf(x, mu, sigma))

    def normal_cdf(self, x, mu=0.0, sigma=1.0):
        return ops.ndtr(ops.divide(ops.subtract(x, mu), sigma))

    def poisson_dist(self, rate):
        return Distribution(self.poisson_logpdf, ops.random.poisson, (rate,))

    def normal_dist(self, mu, sigma):
        return Distribution(self.normal_logpdf, ops.random.normal, (mu, sigma))


def wrap_objective(objective, data, pdf, stitch_pars, do_grad=False, jit_pieces=None):
    """Returns the objective of a fit, as scipy takes it; pyhf has such a function for each of its own backends."""
    loss = lambda parameters: objective(stitch_pars(parameters), data, pdf)[0]
    evaluate = ops.value_and_grad(loss) if do_grad else loss
    return lambda parameters: ops.tree_map(ops.to_numpy, evaluate(ops.array(parameters)))


for function in SAME.split():
    setattr(EmberBackend, function, staticmethod(getattr(ops, function)))
of_pyhf = common._get_tensor_shim  # knows the names of pyhf's own backends only
common._get_tensor_shim = lambda: wrap_objective if isinstance(pyhf.tensorlib, EmberBackend) else of_pyhf()

if __name__ == "__main__":
    pyhf.set_backend(EmberBackend())
    model = pyhf.simplemodels.uncorrelated_background([5.0, 10.0], [50.0, 60.0], [7.0, 8.0])
    best, minimum = pyhf.infer.mle.fit([55.0, 68.0, *model.config.auxdata], model, return_fitted_val=True)
    print(f"{ops.get_backend()}: {type(best).__name__} {[round(x, 4) for x in best.tolist()]}, {minimum.tolist():.6f}")
