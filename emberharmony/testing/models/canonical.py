"""The tensors of layers of any library in the layout of PyTorch, by the rows of `nn.layouts`."""

import re
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from emberharmony.backend.shared.arrays.rearranging import rearrangement
from emberharmony.core.errors import EmberError
from emberharmony.nn.layouts.row import Part, Row
from emberharmony.nn.layouts.table import TABLE
from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.adapter import Adapter

Array = np.ndarray[Any, Any]


class Tensors(NamedTuple):
    """The tensors of a layer in the layout of PyTorch.

    Attributes:
        hosts: the tensors by name.
        sums: the parts of tensors that the library has added to others.
    """

    hosts: dict[str, Host]
    sums: tuple[Part, ...] = ()


def kind_of(adapter: Adapter, module: Any) -> str:
    """Returns the class of a module, by the name of the class in PyTorch if `nn.layouts` knows it."""
    class_name = adapter.title(module)
    for key in _layout_keys(adapter, module):
        return re.sub(r"\dd$", "", key)
    return re.sub(r"\dd$", "", class_name)


def _layout_keys(adapter: Adapter, module: Any) -> Iterator[str]:
    class_name, layout = adapter.title(module), adapter.layout_of(module)
    if layout != "torch":
        for key, layouts in TABLE.items():
            class_of_library = layouts.mlx_class if layout == "mlx" else layouts.keras_class
            if class_name in class_of_library.split(", "):
                yield key


def tensors_of(adapter: Adapter, module: Any, submodules: Mapping[str, Any]) -> tuple[Tensors, set[str]]:
    """Returns the tensors of a layer in PyTorch's layout, and the names of the modules below it that hold some of them.

    Args:
        adapter: of the library.
        module: the layer.
        submodules: the modules below it, by their names in it.
    """
    own_tensors = adapter.own(module)
    row, layer_stand_in = _layout_row(adapter, module, own_tensors)
    if row is None:
        return Tensors({name: adapter.host(array) for name, array in own_tensors.items()}), set()
    host_by_name: dict[str, Host] = {}
    pieces_by_name: dict[str, list[tuple[int, Host]]] = {}
    tensor_sums: list[Part] = []
    used_names: set[str] = set()
    for weight in row.weights:
        holder, _, name = weight.name.rpartition(".")
        holder_tensors = own_tensors if not holder else adapter.own(submodules[holder]) if holder in submodules else {}
        if name not in holder_tensors:
            continue
        used_names.add(holder)
        own_tensors = {key: array for key, array in own_tensors.items() if holder or key != name}
        host = adapter.host(holder_tensors[name])
        torch_array = _to_torch_axes(host.bits, weight.pattern, weight.lengths, layer_stand_in)
        first_row = 0
        for source_part in weight.parts:
            row_count = len(torch_array) if source_part.stop is None else source_part.stop - (source_part.start or 0)
            pieces_by_name.setdefault(source_part.source, []).append(
                (source_part.start or 0, Host(torch_array[first_row : first_row + row_count], host.dtype))
            )
            first_row += row_count
            if source_part.plus:
                tensor_sums.append(source_part)
    for source, pieces_of_source in pieces_by_name.items():
        pieces_of_source.sort(key=lambda pair: pair[0])
        joined_bits = (
            pieces_of_source[0][1].bits
            if len(pieces_of_source) == 1
            else np.concatenate([host.bits for _, host in pieces_of_source])
        )
        host_by_name[source] = Host(joined_bits, pieces_of_source[0][1].dtype)
    host_by_name |= {name: adapter.host(array) for name, array in own_tensors.items()}
    return Tensors(host_by_name, tuple(tensor_sums)), used_names - {""}


def _layout_row(adapter: Adapter, module: Any, tensors: Mapping[str, Any]) -> tuple[Row | None, SimpleNamespace]:
    """Returns the row of the layout table for a layer, and the stand-in whose options the row reads."""
    layer_stand_in = _stand_in(adapter, module, tensors)
    for key in _layout_keys(adapter, module):
        layouts = TABLE[key]
        rule = layouts.mlx if adapter.layout_of(module) == "mlx" else layouts.keras
        try:
            row = rule if isinstance(rule, Row) else rule(layer_stand_in)
        except (AttributeError, KeyError, TypeError):
            continue
        return row, layer_stand_in
    return None, layer_stand_in


def _stand_in(adapter: Adapter, module: Any, tensors: Mapping[str, Any]) -> SimpleNamespace:
    """Returns a stand-in for another library's layer, with the attributes that a layout row reads from ours."""
    options = adapter.options(module)
    value_by_attribute: dict[str, Any] = {"num_layers": 1, "bidirectional": False}
    hidden_size = next((tuple(tensors[name].shape)[-1] for name in ("Wh", "Whh") if name in tensors), None)
    if hidden_size is not None:  # the last axis of the recurrent matrix has the size of the hidden state
        value_by_attribute["hidden_size"] = hidden_size
    value_by_attribute |= {f"{role}_proj_weight": None for role in "qkv"}
    value_by_attribute |= adapter.attention(module)
    value_by_attribute |= {name: options[name] for name in ("groups", "hidden_size", "in_channels") if name in options}
    return SimpleNamespace(**value_by_attribute)


def _to_torch_axes(array: Array, pattern: str, lengths: Mapping[str, int], layer: Any) -> Array:
    """Returns a tensor with the axes of PyTorch."""
    if not pattern:
        return array
    lengths_by_name = dict(lengths)
    for name in re.findall(r"\w{2,}", pattern):
        if name not in lengths_by_name:
            lengths_by_name[name] = int(getattr(layer, name, 1) or 1)
    native_axes, our_axes = pattern.split(" -> ")[1], pattern.split(" -> ")[0]
    try:
        rearranging_steps = rearrangement(f"{native_axes} -> {our_axes}", array.shape, lengths_by_name)
    except EmberError:
        return array
    split_array = array.reshape(rearranging_steps.split_shape)
    return split_array.transpose(rearranging_steps.order).reshape(rearranging_steps.joined_shape)


def combine_parts(tensors: Tensors, sums: tuple[Part, ...]) -> dict[str, Host]:
    """Returns the tensors of a layer with some of them added to rows of others, as another library stores them."""
    host_by_name = dict(tensors.hosts)
    for sum_part in sums:
        if sum_part.source in host_by_name and sum_part.plus in host_by_name:
            sum_array, added_array = (
                host_by_name[sum_part.source].values().copy(),
                host_by_name[sum_part.plus].values().copy(),
            )
            row_slice = slice(sum_part.start, sum_part.stop)
            sum_array[row_slice] += added_array[row_slice]
            added_array[row_slice] = 0
            host_by_name[sum_part.source] = Host(sum_array, host_by_name[sum_part.source].dtype)
            host_by_name[sum_part.plus] = Host(added_array, host_by_name[sum_part.plus].dtype)
            if not added_array.any():
                del host_by_name[sum_part.plus]
    return host_by_name
