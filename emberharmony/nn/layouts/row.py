"""What a row of the table of layouts is made of."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Part(NamedTuple):
    """Rows of a parameter of ours, of which a tensor of another library is made.

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
    """A tensor in the layout of another library.

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
        """Returns the tensor with the names that it has in a model, and all lengths.

        Args:
            theirs, ours: the name of the layer in both libraries, with a dot at its end.
            layer: the layer.
        """
        length_names = re.findall(r"\w{2,}", self.pattern)
        length_by_name = {name: int(getattr(layer, name)) for name in length_names if name not in self.lengths}
        parts = [p._replace(source=ours + p.source, plus=p.plus and ours + p.plus) for p in self.parts]
        return Weight(theirs + self.name, tuple(parts), self.pattern, {**self.lengths, **length_by_name})

    def sources(self) -> list[str]:
        """Returns the names of the parameters that it is made of, each once."""
        return list(dict.fromkeys(name for part in self.parts for name in (part.source, part.plus) if name))


class Row(NamedTuple):
    """How the tensors of a layer are called and ordered in another library; what it does not name is as in PyTorch.

    Attributes:
        weights: the tensors that have another name or other axes there.
        children: the names of modules of the layer there, by their names here; "*" stands for all others.
        left_out: the buffers that the other library lacks; read back, they are zeros.
    """

    weights: tuple[Weight, ...] = ()
    children: Mapping[str, str] = MappingProxyType({})
    left_out: tuple[str, ...] = ()

    def child(self, name: str) -> str:
        """Returns the name of a module of the layer in the other library."""
        return self.children.get(name) or self.children.get("*", "*").replace("*", name)


def weight_of(name: str, source: str, pattern: str = "") -> Weight:
    """Returns a tensor that is made of one parameter."""
    return Weight(name, (Part(source),), pattern)


def row(*weights: Weight, left_out: Iterable[str] = (), **children: str) -> Row:
    """Returns a row of some tensors and modules."""
    return Row(weights, MappingProxyType(children), tuple(left_out))
