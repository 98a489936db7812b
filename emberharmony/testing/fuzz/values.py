"""Random sources of arguments that fit a parameter's declaration, unusual ones, and some of a wrong type."""

import ast
import functools
import re
from collections.abc import Callable, Sequence
from random import Random

from emberharmony.core.registry import OPS, OpParameter
from emberharmony.testing.fuzz import odd
from emberharmony.testing.fuzz.arrays import Arrays

Draw = Callable[[], str]
_LITERAL = re.compile(r"'([^']*)'")
_TABLES = (
    (r"^Callable", odd.FUNCTIONS),
    (r"Generator", odd.GENERATORS),
    (r"DType", odd.DTYPES_WRITTEN),
    (r"Device", odd.DEVICES),
    (r"\bfloat\b", odd.NUMBERS),
    (r"\bbool\b", odd.BOOLEANS),
    (r"\bstr\b", odd.STRINGS),
    (r"Norm", odd.NORMS),
    (r"Mapping", odd.MAPPINGS),
)
"""Pairs of a pattern for a parameter's annotation and the sources of arguments for it."""


def is_bounded(op: str, parameter: str) -> bool:
    """Returns whether a parameter determines how often a loop runs.

    Only small numbers are drawn for it: with a large one the call would rightly run for ever, and count as a hang.
    """
    return OPS[op].category == "control" and parameter in ("lower", "upper", "length", "cond")


class Values(Arrays):
    """Draws sources of arguments for one call.

    Args:
        rng: makes all random choices.
        pool: by the name of a parameter, the sources of the arguments that sample rows give it.
        short: whether to draw only short arrays, as in `Arrays`.
    """

    def __init__(self, rng: Random, pool: dict[str, list[str]], short: bool = False) -> None:
        super().__init__(rng, short)
        self.pool = pool
        self._draws: tuple[tuple[str, Draw], ...] = (
            (r"^Sequence\[Callable", self._functions_source),
            (r"DType", lambda: repr(rng.choice(odd.DTYPES))),
            (r"TensorLike|Operand", self.tensor_source),
            (r"Operand", functools.partial(rng.choice, odd.NUMBERS)),
            (r"Tensors", self.tensor_list_source),
            (r"Shape", self._shape_source),
            (r"Tensor \| Sequence\[(int|Any|Sequence)", self.indices_source),
            (r"float \| Tensor|Tensor \| float|Sequence\[float\]", self.tensor_source),
            (r"Sequence\[(int|Sequence)|tuple\[int", self._integer_sequence_source),
            (r"^int\b|\| int\b", self._integer_source),
        )

    def argument(self, op: str, parameter: OpParameter, wrong: float = 0.06) -> str:
        """Returns the source of an argument for a parameter (of one argument for a variadic parameter).

        Args:
            wrong: the probability of an argument of a wrong type.
        """
        if is_bounded(op, parameter.name):
            return self.rng.choice(odd.BOUNDS)
        if self.rng.random() < wrong:
            return self.rng.choice(odd.WRONG)
        pooled_sources = self.pool.get(parameter.name)
        if pooled_sources and self.rng.random() < 0.25:
            return self.rng.choice(pooled_sources)
        if parameter.optional and self.rng.random() < 0.2:
            return "None"
        return self.rng.choice(self._draw_functions_for(parameter))()

    def _draw_functions_for(self, parameter: OpParameter) -> Sequence[Draw]:
        """Returns functions that draw arguments which suit a parameter's name and annotation."""
        annotation, name = parameter.annotation, parameter.name
        if name == "key":
            return [functools.partial(self.rng.choice, odd.KEYS)]
        if ("axis" in name and "int" in annotation) or "Axis" in annotation:
            return [self._axis_source]
        if name in ("axes", "spatial_dims"):
            return [self._axes_source]
        if "Literal" in annotation:
            return [
                lambda: repr(self.rng.choice(_LITERAL.findall(annotation))),
                functools.partial(self.rng.choice, odd.STRINGS),
            ]
        matching_draws = [draw for pattern, draw in self._draws if re.search(pattern, annotation)]
        matching_draws += [
            functools.partial(self.rng.choice, table) for pattern, table in _TABLES if re.search(pattern, annotation)
        ]
        return matching_draws or [self._any_value_source]

    def _integer_source(self) -> str:
        random_share = self.rng.random()
        if random_share < 0.7:
            return str(self.rng.randint(-3, 6))
        if random_share < 0.8:
            return str(self.rng.choice(odd.MIDDLE))
        return self.rng.choice(odd.HUGE if random_share < 0.95 else odd.INTEGERS)

    def _integer_sequence_source(self) -> str:
        """Returns the source of a list, a tuple or a tensor of integers."""
        ndim = len(self.shape)
        items_text = ", ".join(self._integer_source() for _ in range(self.rng.choice((ndim, ndim, 0, 1, 2, 3, 9))))
        random_share = self.rng.random()
        if random_share < 0.45:
            return f"[{items_text}]"
        return f"ops.array([{items_text}])" if random_share > 0.95 else f"({items_text},)" if items_text else "()"

    def _shape_source(self) -> str:
        """Returns the source of a shape."""
        random_share = self.rng.random()
        if random_share < 0.55:
            return repr(self.shape if random_share < 0.35 else self.rng.choice(odd.SHAPES))
        return self._integer_source() if random_share < 0.7 else self.rng.choice(odd.LENGTHS)

    def _axis_source(self) -> str:
        """Returns the source of an axis, or of several."""
        random_share, ndim = self.rng.random(), max(len(self.shape), 1)
        if random_share < 0.5:
            return str(self.rng.randint(-ndim, ndim - 1))
        if random_share < 0.65:
            return self._axes_source()
        return "None" if random_share < 0.75 else self._integer_source()

    def _axes_source(self) -> str:
        """Returns the source of axes, most often of those that the call's shape has."""
        random_share, ndim = self.rng.random(), len(self.shape)
        if random_share < 0.5:
            return repr(tuple(self.rng.sample(range(-ndim, 0), self.rng.randint(0, ndim))))
        if random_share < 0.8:
            return repr(tuple(self.rng.randint(-4, 4) for _ in range(self.rng.randint(0, 4))))
        return self._integer_sequence_source()

    def misspell(self, word: str) -> str:
        """Returns the source of a string, given as source, with characters removed, inserted or replaced."""
        characters = list(ast.literal_eval(word))
        position = self.rng.randint(0, len(characters))
        characters[position : position + self.rng.randint(0, 2)] = self.rng.choice(("", "", *"abij ,.->()1…*{}|"))
        return repr("".join(characters))

    def _functions_source(self) -> str:
        function_sources = [self.rng.choice(odd.FUNCTIONS) for _ in range(self.rng.randint(0, 3))]
        return f"[{', '.join(function_sources)}]"

    def _any_value_source(self) -> str:
        if self.rng.random() < 0.6:
            return self.rng.choice(
                (self.tensor_source, self.tensor_list_source, self._integer_source, self._integer_sequence_source)
            )()
        return self.rng.choice(self.rng.choice((odd.WRONG, odd.NUMBERS, odd.DTYPES_WRITTEN)))
