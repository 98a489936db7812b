"""Arrays of any backend in scikit-learn and SciPy: `python examples/array_api/scikit_learn.py`.

scikit-learn computes principal components and a mixture of Gaussians on the backend; SciPy finds a root, which is
differentiated through SciPy's own code.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

import sklearn
from scipy.optimize.elementwise import find_root
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from emberharmony import ops
from emberharmony.xp import namespace

xp = namespace(ops.get_backend())
sklearn.set_config(array_api_dispatch=True)

centers = xp.asarray([[4.0, 0.0, 0.0], [-4.0, 1.0, 0.0]], dtype=xp.float32)
noise = xp.random.normal((200, 3), generator=xp.random.Generator(0), dtype=xp.float32)
points = xp.add(xp.repeat(centers, 100, axis=0), noise)

flat = PCA(2, svd_solver="full").fit_transform(points)
start = xp.asarray([[-1.0, 0.0], [1.0, 0.0]], dtype=xp.float32)
mixture = GaussianMixture(2, init_params="random_from_data", means_init=start, random_state=0).fit(flat)
labels = mixture.predict(flat)
halves = xp.astype(labels[:100] == labels[0], xp.float32), xp.astype(labels[100:] != labels[0], xp.float32)
right = float(xp.mean(xp.concat(halves)))


def root(c):
    """Returns the root of t**3 - c, which SciPy brackets and finds."""
    bracket = xp.zeros_like(c), xp.full_like(c, 5.0)
    return find_root(lambda t, c: t**3 - c, bracket, args=(c,)).x


slope = xp.grad(lambda c: xp.sum(root(c)))(xp.asarray([8.0], dtype=xp.float64))
print(
    f"{ops.get_backend()}: {100 * right:.1f}% in the right group; the root of t**3 = 8 moves by {float(slope[0]):.5f}"
)
