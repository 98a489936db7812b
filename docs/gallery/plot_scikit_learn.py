"""
scikit-learn and SciPy on any backend
=====================================

scikit-learn projects points on their principal components and fits a mixture of Gaussians, and SciPy finds roots. Both
compute with arrays of the active backend, MLX as well as NumPy, and the roots are differentiated through SciPy's code.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

import matplotlib.pyplot as plt
import sklearn
from scipy.optimize.elementwise import find_root
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from emberharmony import ops
from emberharmony.xp import namespace

xp = namespace(ops.get_backend())

# Three groups in five dimensions, which the first two components tell apart.
noise = xp.random.normal((300, 5), generator=xp.random.Generator(0), dtype=xp.float32)
centers = xp.asarray([[4.0, 0, 0, 2, 0], [-4, 3, 0, 0, 1], [0, -5, 1, 0, 0]], dtype=xp.float32)
points = xp.repeat(centers, 100, axis=0) + noise
with sklearn.config_context(array_api_dispatch=True):
    plane = PCA(2, svd_solver="full").fit_transform(points)
    mixture = GaussianMixture(3, init_params="random_from_data", means_init=plane[::100, :], random_state=0)
    groups = mixture.fit_predict(plane)


def root(c):
    """Returns the positive roots of t**3 + t = c."""
    bracket = xp.zeros_like(c), xp.full_like(c, 5.0)
    return find_root(lambda t, c: t**3 + t - c, bracket, args=(c,)).x


sides = xp.linspace(0.1, 8.0, 50, dtype=xp.float64)
slopes = xp.grad(lambda c: xp.sum(root(c)))(sides)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.scatter(plane[:, 0], plane[:, 1], c=groups, cmap="tab10", s=8)
left.set(xlabel="first component", ylabel="second component")
right.plot(sides, root(sides), label="root of t**3 + t = c")
right.plot(sides, slopes, label="its derivative")
right.set(xlabel="c")
right.legend()
plt.show()
