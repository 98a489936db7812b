"""The classes of which rows of the layout table consist: `Part`, `Weight` and `Row`."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A part of a tensor of another library: a range of rows of a parameter of ours.

    Attributes:
        source: the name of the parameter in its layer.
        start, stop: the first row, and the one after the last; None for all.
        plus: a parameter that the other library has added to this one; read back, it is zeros.
    """

    source: str
    start: int | None = None
    stop: int | None = None
    plus: str | None = None


class Weight(NamedTuple):
    """A tensor in the layout of another library: its name, its parts, and the order of its axes.

    Attributes:
        name: its name there.
        parts: what it is made of, one after the other on the first axis.
        pattern: how the axes of the joined parts become those of the tensor, as `ops.rearrange` takes it; "" leaves
            them. An axis with the name of an attribute of the layer has the length that the attribute says.
        lengths: the lengths of other axes.
    """

    name: str
    parts: tuple[Part, ...]
    pattern: str = ""
    lengths: Mapping[str, int] = MappingProxyType({})

    def within_model(self, theirs: str, ours: str, layer: Any) -> "Weight":
        """Returns the weight with full names of a model instead of a layer's, and with the lengths of its axes.

        Args:
            theirs, ours: the name of the layer in both libraries, with a dot at its end.
            layer: the layer.
        """
        length_names = re.findall(r"\w{2,}", self.pattern)
        length_by_name = {name: int(getattr(layer, name)) for name in length_names if name not in self.lengths}
        parts = [p._replace(source=ours + p.source, plus=p.plus and ours + p.plus) for p in self.parts]
        return Weight(theirs + self.name, tuple(parts), self.pattern, {**self.lengths, **length_by_name})

    def source_names(self) -> list[str]:
        """Returns the names of the parameters of which the tensor consists, each once."""
        return list(dict.fromkeys(name for part in self.parts for name in (part.source, part.plus) if name))


class Row(NamedTuple):
    """The names and layouts of a layer's tensors in another library; tensors that are not named are as in PyTorch.

    Attributes:
        weights: the tensors that have another name or other axes there.
        children: the names of modules of the layer there, by their names here; "*" stands for all others.
        left_out: the buffers that the other library lacks; read back, they are zeros.
    """

    weights: tuple[Weight, ...] = ()
    children: Mapping[str, str] = MappingProxyType({})
    left_out: tuple[str, ...] = ()

    def child_name(self, name: str) -> str:
        """Returns the name that an inner module of the layer has in the other library."""
        return self.children.get(name) or self.children.get("*", "*").replace("*", name)


def weight_of(name: str, source: str, pattern: str = "") -> Weight:
    """Returns the `Weight` of another library that corresponds to one parameter of ours."""
    return Weight(name, (Part(source),), pattern)


def row(*weights: Weight, left_out: Iterable[str] = (), **children: str) -> Row:
    """Returns a `Row` of the given weights and names of inner modules."""
    return Row(weights, MappingProxyType(children), tuple(left_out))
