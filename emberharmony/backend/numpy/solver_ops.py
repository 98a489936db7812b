"""Linear algebra, on NumPy."""

import numpy as np

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared.algebra import lapack
from emberharmony.backend.shared.solver import cast_to_inexact


class NumpySolverOps:
    """Holds the ops of `ops/solver.py`.

    The bodies call LAPACK by NumPy too, in 1.2 to 3.9 times the time, for few elements.
    """

    det = staticmethod(cast_to_inexact(promotion)(lapack.det))
    slogdet = staticmethod(cast_to_inexact(promotion)(lapack.slogdet))
    inv = staticmethod(cast_to_inexact(promotion)(lapack.inv))
    solve = staticmethod(cast_to_inexact(promotion, 2, np.linalg.solve)(lapack.solve))
    cholesky = staticmethod(cast_to_inexact(promotion)(lapack.cholesky))
    qr = staticmethod(cast_to_inexact(promotion)(lapack.qr))
    svd = staticmethod(cast_to_inexact(promotion)(lapack.svd_or_singular_values))
    svdvals = staticmethod(cast_to_inexact(promotion)(lapack.svdvals))
    eigh = staticmethod(cast_to_inexact(promotion)(lapack.eigh))
    eigvalsh = staticmethod(cast_to_inexact(promotion)(lapack.eigvalsh))
    eig = staticmethod(cast_to_inexact(promotion)(lapack.eig))
    eigvals = staticmethod(cast_to_inexact(promotion)(lapack.eigvals))
    lu_factor = staticmethod(cast_to_inexact(promotion)(lapack.lu_factor))
