"""A backend of tensorly (https://tensorly.org) over ops: its decompositions run on NumPy, PyTorch and MLX."""

import tensorly
from tensorly.backend.core import Backend, backend_array, backend_basic_math, backend_types

from emberharmony import ops

SAME = "arange argmax argmin argsort concatenate conj copy diag dot eigh finfo flip is_tensor kron log log2 logsumexp"
SAME += " max mean moveaxis nan ndim qr shape sign solve sort stack sum svd tensordot to_numpy trace transpose"


class EmberBackend(Backend, backend_name="emberharmony"):
    """The functions of tensorly whose parameters differ from those of ops; the others are registered below."""

    @staticmethod
    def context(tensor):
        return {"dtype": tensor.dtype}

    @staticmethod
    def tensor(data, dtype=None, **_):
        return ops.array(data, dtype)

    @staticmethod
    def clip(tensor, a_min=None, a_max=None):
        return ops.clip(tensor, a_min, a_max)

    @staticmethod
    def norm(tensor, order=2, axis=None):
        return ops.vector_norm(tensor, None if axis == () else axis, ord=float(order))  # order may be "inf"

    @staticmethod
    def where(condition, *values):
        return ops.where(condition, *values) if values else ops.nonzero(condition)

    @staticmethod
    def lstsq(a, b, rcond=None):
        return ops.lstsq(a, b, rcond), None  # tensorly does not read the residuals


for name in {*backend_types, *backend_basic_math, *backend_array, *SAME.split()} - {"where"}:
    EmberBackend.register_method(name, getattr(ops, name))

if __name__ == "__main__":
    from tensorly.decomposition import parafac

    tensorly.set_backend(EmberBackend())
    wanted = tensorly.random.random_cp((6, 5, 4), rank=2, full=True, random_state=0)
    found = tensorly.cp_to_tensor(parafac(wanted, rank=2, n_iter_max=500, tol=1e-9, random_state=1))
    error = float(tensorly.norm(found - wanted) / tensorly.norm(wanted))
    print(f"{ops.get_backend()}: {type(found).__name__} of shape {tensorly.shape(found)}, relative error {error:.1e}")
