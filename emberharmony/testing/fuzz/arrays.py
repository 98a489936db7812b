"""Sources of random arrays of many shapes and dtypes, in all forms in which a tensor may be passed to an op."""

import math
from random import Random

import numpy as np

from emberharmony.testing.fuzz import odd

_WRITTEN_OUT = 24
"""The largest number of elements that the source lists; larger arrays repeat a pattern."""


def source_of_dtype(name: str) -> str:
    """Returns the source of a NumPy dtype."""
    return "bfloat16_of_numpy()" if name == "bfloat16" else repr(name)


class Arrays:
    """Draws sources of arrays for one call; they often share a shape and a dtype, so that the op accepts them.

    Args:
        short: whether to draw only short arrays, for ops that may call a function once for each row.
    """

    def __init__(self, rng: Random, short: bool = False) -> None:
        self.rng, self.short = rng, short
        self.shape = rng.choice(odd.RARE) if rng.random() < 0.04 and not short else rng.choice(odd.SHAPES)
        self.dtype = rng.choice(odd.USUAL) if rng.random() < 0.6 else rng.choice(odd.DTYPES)
        self.on_host = rng.random() < 0.6
        """Whether indices are host arrays and lists, which every backend checks even if checked mode is off."""

    def tensor_source(self) -> str:
        """Returns the source of a tensor, list or number, most often of the shape and dtype of this call."""
        if self.rng.random() < 0.005 and not self.short:
            return f"np.broadcast_to(np.float32(1), (2**{self.rng.choice((20, 30))},))"
        shape = self._shape_near()
        dtype = self.dtype if self.rng.random() < 0.75 else self.rng.choice(odd.DTYPES)
        if shape == () and self.rng.random() < 0.3:
            return self.rng.choice(odd.NUMBERS)
        return self.random_form_of(self._host_array_source(shape, dtype), len(shape))

    def tensor_list_source(self) -> str:
        """Returns the source of a list of tensors; sometimes one is much longer than the others."""
        item_sources = [self.tensor_source() for _ in range(self.rng.choice((0, 1, 2, 2, 2, 3)))]
        if self.rng.random() < 0.08 and not self.short:
            item_sources.insert(self.rng.randint(0, len(item_sources)), self.rng.choice(odd.LONG))
        return f"[{', '.join(item_sources)}]" if self.rng.random() < 0.9 else self.tensor_source()

    def indices_source(self) -> str:
        """Returns the source of a tensor or list of integers, most of them small."""
        shape = self._shape_near() if self.rng.random() < 0.7 else self.rng.choice(((2,), (3,), (2, 1), (1,)))
        shape = shape if math.prod(shape) <= _WRITTEN_OUT else (3,)
        flat_indices = [self.rng.choice((0, 0, 1, 1, 2, 3, -1)) for _ in range(math.prod(shape))]
        if flat_indices and self.rng.random() < 0.1:
            flat_indices[self.rng.randrange(len(flat_indices))] = self.rng.choice(odd.OUTSIDE)
        dtypes = ("int64", "int64", "int64", "int32") if all(abs(n) < 2**31 for n in flat_indices) else ("int64",)
        array_source = f"np.array({flat_indices}, {self.rng.choice(dtypes)!r}).reshape({shape})"
        return self.rng.choice(
            (array_source, f"{array_source}.tolist()") if self.on_host else (f"tensor({array_source})",)
        )

    def _shape_near(self) -> tuple[int, ...]:
        """Returns a random shape: often that of the call or one that broadcasts with it."""
        random_share = self.rng.random()
        if random_share < 0.65:
            return self.shape
        if random_share < 0.85:
            first_axis = self.rng.randint(0, len(self.shape))
            return tuple(1 if self.rng.random() < 0.3 else length for length in self.shape[first_axis:])
        return self.rng.choice(odd.RARE) if random_share < 0.86 and not self.short else self.rng.choice(odd.SHAPES)

    def _host_array_source(self, shape: tuple[int, ...], dtype: str) -> str:
        size, dtype_source = math.prod(shape), source_of_dtype(dtype)
        if size > _WRITTEN_OUT or not size or self.rng.random() < 0.2:
            array_source = f"counting_array({shape}, {dtype_source})"
        else:
            array_source = f"np.array([{', '.join(self._element_source(dtype) for _ in range(size))}], {dtype_source})"
            array_source += "" if len(shape) == 1 else f".reshape({shape})"
        return self.with_odd_element(array_source) if self.rng.random() < 0.1 else array_source

    def _element_source(self, dtype: str) -> str:
        random_share = self.rng.random()
        if dtype == "bool":
            return str(random_share < 0.5)
        if dtype.startswith(("int", "uint")):
            integer_limits = np.iinfo(dtype)
            if random_share < 0.03:
                return str(self.rng.choice((integer_limits.min, integer_limits.max)))
            return str(self.rng.randint(max(integer_limits.min, -3), 5))
        if random_share < 0.03:
            return self.rng.choice(odd.NOT_FINITE)
        number_source = str(self.rng.randint(-24, 24) / 8)
        return (
            f"complex({number_source}, {self.rng.randint(-9, 9) / 4})" if dtype.startswith("complex") else number_source
        )

    def with_odd_element(self, array: str, elements: tuple[str, ...] = odd.SPECIAL) -> str:
        """Returns the source of a host array with one element replaced."""
        return f"with_element({array}, {self.rng.randint(0, 99)}, {self.rng.choice(elements)})"

    def random_form_of(self, array: str, ndim: int, on_host: bool = False) -> str:
        """Returns the source of a host array in one of the forms in which a tensor may be passed.

        Args:
            on_host: whether to draw only forms whose elements are on the host.
        """
        if on_host:
            return self.rng.choice((array, f"as_read_only({array})", f"{array}.tolist()"))
        form_sources = (
            [f"tensor({array})"] * 5
            + [array] * 2
            + [f"as_read_only({array})", f"non_contiguous_tensor({array})", f"{array}.tolist()"]
        )
        if ndim:
            form_sources += [f"{array}[::-1]", f"{array}.T"]
        if self.rng.random() < 0.02:
            return f"ops.broadcast_to(tensor({array}), (2, *{array}.shape))"
        return self.rng.choice(form_sources)

    def variant_of(self, array: str, ndim: int) -> tuple[str, int]:
        """Returns the source of a host array with another shape, dtype or value, and its number of axes."""
        variants = [
            (f"{array}[None]", ndim + 1),
            (f"{array}.reshape(-1)", 1),
            (f"{array}[..., None]", ndim + 1),
            (f"np.concatenate([{array}.reshape(-1)] * 2)", 1),
            *[(f"{array}.astype({source_of_dtype(self.rng.choice(odd.DTYPES))})", ndim)] * 3,
            *[(self.with_odd_element(array), ndim)] * 4,
        ]
        if ndim:
            variants += [
                *[(f"{array}[{', '.join([':'] * axis + [':0'])}]", ndim) for axis in range(ndim)],
                (f"{array}[:1]", ndim),
                (f"{array}[0]", ndim - 1),
                (f"{array}.T", ndim),
                (f"{array}[1:]", ndim),
                (f"np.broadcast_to({array}[:1], (2**12, *{array}.shape[1:]))", ndim),
            ]
        return self.rng.choice(variants)
