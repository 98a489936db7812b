"""A backend of einops (https://einops.rocks) over ops, for tensors that einops does not know.

einops has backends for the native tensors of NumPy, PyTorch and JAX. Importing this module adds those of MLX and Dask,
the tensors that `ops.grad` and `ops.vmap` trace on NumPy, and `emberharmony.Parameter`.
"""

import einops
from einops._backends import AbstractBackend

from emberharmony import ops


class EmberBackend(AbstractBackend):
    """The functions that einops calls; einops finds the class among the subclasses of its own."""

    framework_name = "emberharmony.ops"

    arange = staticmethod(ops.arange)
    shape = staticmethod(ops.shape)
    reshape = staticmethod(ops.reshape)
    transpose = staticmethod(ops.transpose)
    stack_on_zeroth_dimension = staticmethod(ops.stack)
    add_axis = staticmethod(ops.expand_dims)
    tile = staticmethod(ops.tile)
    einsum = staticmethod(ops.einsum)
    from_numpy = staticmethod(ops.convert_to_tensor)
    to_numpy = staticmethod(ops.to_numpy)

    def is_appropriate_type(self, tensor):
        # einops 0.8.2 has a backend for MLX, in which `repeat` raises a TypeError.
        return type(tensor).__module__.partition(".")[0] in ("emberharmony", "dask", "mlx")

    def reduce(self, x, operation, axes):
        return getattr(ops, operation)(x, axis=tuple(axes))

    def concat(self, tensors, axis):
        return ops.concatenate(tensors, axis=axis)

    def is_float_type(self, x):
        return ops.isdtype(ops.dtype(x), "real floating")


if __name__ == "__main__":
    images = ops.reshape(ops.arange(2.0 * 4 * 4 * 3), (2, 4, 4, 3))

    def energy(x):
        """Returns the sum of the squares of the means of a patch, over images and positions in a patch."""
        patches = einops.rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2)
        return ops.sum(ops.square(einops.repeat(einops.reduce(patches, "b n d -> b d", "mean"), "b d -> b n d", n=3)))

    slope = ops.grad(energy)(images)
    lengths = ops.vmap(lambda x: ops.sqrt(einops.reduce(ops.square(x), "h w c -> ", "sum")))(images)
    total, norms = float(ops.sum(slope)), [round(n, 3) for n in ops.to_numpy(lengths).tolist()]
    print(f"{ops.get_backend()}: {type(slope).__name__} {total:.1f} {norms}")
