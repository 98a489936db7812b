"""The differences of the tensors of two models: in layout, order or rounding, or because one is missing."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony.io.differences import differences
from emberharmony.io.header import TensorInfo
from emberharmony.io.sources import BLOCK, Array
from emberharmony.nn.layouts.row import Part
from emberharmony.testing.differences.measures import distance
from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.alignment import Alignment, Side
from emberharmony.testing.models.canonical import Tensors, combine_parts

_EQUAL = 2.0**-21
"""The largest relative difference of two tensors that the rounding of a conversion explains."""

_NEAR = 0.01
"""The relative difference within which nine of ten elements must be for two arrays to have the same axes."""

_MOST_AXES = 5


class Unequal(NamedTuple):
    """A tensor that differs between two models: its module and name, the kind of difference, and the wrong side.

    Attributes:
        path: the module of the first model.
        other: that of the second.
        name: the tensor in PyTorch's layout.
        what: how the second differs from the first.
        wrong: the side that is wrong, 0 or 1, or None if the tensors do not tell.
        share: how far they are apart, as a share of the largest element.
        within: the module of the first model whose results tell whether this matters; "" for `path` itself.
    """

    path: str
    other: str
    name: str
    what: str
    wrong: int | None
    share: float
    within: str = ""

    @property
    def may_be_right(self) -> bool:
        """Whether the same function may be computed with such a tensor: in another layout, scaled, or elsewhere."""
        return self.wrong is None or self.what == "missing"


class _Source:
    """Tensors of a model as `io.differences` takes them."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.path, self.metadata = "", dict[str, str]()
        self._hosts = hosts
        self.tensors = {name: TensorInfo(host.dtype, host.shape, host.bits.nbytes, 0) for name, host in hosts.items()}

    def blocks(self, name: str) -> Iterator[Array]:
        """Yields the elements of a tensor."""
        flat_bits = self._hosts[name].bits.reshape(-1)
        for start in range(0, flat_bits.size, BLOCK):
            yield np.ascontiguousarray(flat_bits[start : start + BLOCK])

    def memory_key(self, name: str) -> str:
        """Returns the name itself, as no tensors are tied."""
        return name

    def close(self) -> None:
        """Does nothing, because the tensors are in memory."""


def unequal_tensors(first: Side, second: Side, alignment: Alignment) -> tuple[list[Unequal], tuple[set[str], set[str]]]:
    """Returns the tensors of corresponding modules that differ, in the order of the calls of the first model.

    The second value has the modules of each model whose tensors were compared with those of a module around them.
    """
    unequal_rows: list[Unequal] = []
    claimed_paths: tuple[set[str], set[str]] = (set(), set())
    uncompared_paths = tuple(
        [path for path in paths if side.adapter.own(side.modules[path])]
        for side, paths in zip((first, second), alignment.unpaired, strict=True)
    )
    ordered_paths = sorted(alignment.names.items(), key=lambda pair: (pair[0].count("."), pair[0]))
    for path, second_path in ordered_paths:
        if path in claimed_paths[0] or second_path in claimed_paths[1]:
            continue
        (first_tensors, first_inner), (second_tensors, other_inner) = first.tensors(path), second.tensors(second_path)
        # A layer that one model splits into parts may have other parts in the other model, or be whole there.
        if first_inner or other_inner:
            claimed_paths[0].update(
                first_inner | _add_inner_tensors(first, path, first_tensors.hosts, second_tensors.hosts)
            )
            claimed_paths[1].update(
                other_inner | _add_inner_tensors(second, second_path, second_tensors.hosts, first_tensors.hosts)
            )
        hosts = combine_parts(first_tensors, second_tensors.sums), combine_parts(second_tensors, first_tensors.sums)
        for own_hosts, other_hosts, side, unclaimed_paths in (
            (hosts[0], hosts[1], second, uncompared_paths[1]),
            (hosts[1], hosts[0], first, uncompared_paths[0]),
        ):
            _add_unmatched_tensors(own_hosts, other_hosts, side, unclaimed_paths)
        module_differences = list(_differences_of_module(path, second_path, *hosts))
        for i, (side, name, tensors, sums) in enumerate(
            (
                (first, path, first_tensors, second_tensors.sums),
                (second, second_path, second_tensors, first_tensors.sums),
            )
        ):
            module_differences = [
                _describe_idle_tensor(side, name, tensors, sums, unequal, i) for unequal in module_differences
            ]
        unequal_rows += module_differences
    unequal_rows = _describe_swaps(first, second, unequal_rows)
    unequal_rows += _differences_of_joined_layers(first, second, alignment, uncompared_paths, claimed_paths)
    return sorted(unequal_rows, key=lambda each: first.order.get(each.path, len(first.order))), claimed_paths


def _add_inner_tensors(side: Side, path: str, hosts: dict[str, Host], others: Mapping[str, Host]) -> set[str]:
    """Adds the tensors of modules in a module to its own, where the other model has them there; returns these."""
    used_keys: set[str] = set()
    for name in side.submodules(path):
        inner_path = f"{path}.{name}" if path else name
        for key, host in side.tensors(inner_path)[0].hosts.items():
            if f"{name}.{key}" in others and f"{name}.{key}" not in hosts:
                hosts[f"{name}.{key}"] = host
                used_keys.add(inner_path)
    return used_keys


def _add_unmatched_tensors(
    own_hosts: Mapping[str, Host], other_hosts: dict[str, Host], side: Side, paths: Sequence[str]
) -> None:
    """Adds tensors that a module lacks and that a module has that corresponds to none: the one of the same shape."""
    for name, host in own_hosts.items():
        if name in other_hosts or host.size < 2:
            continue
        fitting_arrays = [
            array
            for path in paths
            for array in side.adapter.own(side.modules[path]).values()
            if tuple(array.shape) == tuple(host.shape)
        ]
        equal_arrays = [array for array in fitting_arrays if distance(host, side.adapter.host(array)).share <= _EQUAL]
        if equal_arrays or len(fitting_arrays) == 1:
            other_hosts[name] = side.adapter.host((equal_arrays or fitting_arrays)[0])


def _differences_of_joined_layers(
    first: Side,
    second: Side,
    alignment: Alignment,
    unpaired_paths: Sequence[Sequence[str]],
    claimed_paths: tuple[set[str], set[str]],
) -> Iterator[Unequal]:
    """Yields the differences of layers that one model has as one, and the other one as several: their rows joined."""
    for path, second_path in alignment.names.items():
        child_names_by_side = [
            [child for child in side.children(name) if child in unmatched_paths and child not in claimed_names]
            for side, name, unmatched_paths, claimed_names in zip(
                (first, second), (path, second_path), unpaired_paths, claimed_paths, strict=True
            )
        ]
        joined_side = next(
            (i for i in (0, 1) if len(child_names_by_side[i]) == 1 < len(child_names_by_side[1 - i])), None
        )
        if joined_side is None:
            continue
        sides = first, second
        (joined_path,), part_paths = child_names_by_side[joined_side], child_names_by_side[1 - joined_side]
        hosts = sides[joined_side].tensors(joined_path)[0].hosts
        tensors_by_path = {part_path: sides[1 - joined_side].tensors(part_path)[0].hosts for part_path in part_paths}
        if any(piece.keys() != hosts.keys() for piece in tensors_by_path.values()):
            continue
        claimed_paths[joined_side].add(joined_path)
        claimed_paths[1 - joined_side].update(part_paths)
        for name, host in hosts.items():
            for part, x, y in _rows_of_joined(name, host, tensors_by_path):
                hosts_and_paths = ((x, y), (joined_path, part)) if joined_side == 0 else ((y, x), (part, joined_path))
                difference_kind, wrong_side, share = _describe_difference(*hosts_and_paths[0])
                if difference_kind:
                    yield Unequal(*hosts_and_paths[1], name, difference_kind, wrong_side, share, path)


def _rows_of_joined(
    name: str, host: Host, hosts_by_path: Mapping[str, Mapping[str, Host]]
) -> Iterator[tuple[str, Host, Host]]:
    """Yields the rows of a tensor that are those of one of several layers, with the tensor of this layer."""
    row_counts = [piece[name].shape[0] for piece in hosts_by_path.values()]
    array = host.bits
    if array.ndim == 2 and array.shape[0] != sum(row_counts) == array.shape[1]:  # the inputs are on axis 0
        array = array.T
    if array.shape[0] != sum(row_counts):
        return
    for part_path, rows in zip(hosts_by_path, np.split(array, np.cumsum(row_counts)[:-1]), strict=True):
        yield part_path, Host(np.ascontiguousarray(rows), host.dtype), hosts_by_path[part_path][name]


def _differences_of_module(
    path: str, other: str, first_hosts: Mapping[str, Host], second_hosts: Mapping[str, Host]
) -> Iterator[Unequal]:
    second_hosts = _renamed_hosts(first_hosts, second_hosts)
    first_source, second_source = _Source(first_hosts), _Source(second_hosts)
    names = [*first_hosts, *(name for name in second_hosts if name not in first_hosts)]
    for row in differences(first_source, second_source, names, lambda _: None):
        first_host, second_host = first_hosts.get(row.name), second_hosts.get(row.name)
        if row.kind == "equal" or (row.kind == "dtype" and not row.elements):
            continue
        if first_host is None or second_host is None:
            host = first_host if second_host is None else second_host
            if host is not None and (host.dtype.startswith(("int", "uint", "bool")) or _is_neutral(row.name, host)):
                continue
            side = 0 if first_host is None else 1
            yield Unequal(path, other, row.name, "missing", side, 1.0)
            continue
        difference_kind, wrong_side, share = _describe_difference(first_host, second_host)
        if difference_kind:
            yield Unequal(path, other, row.name, difference_kind, wrong_side, share)


def _describe_idle_tensor(
    side: Side, path: str, tensors: Tensors, sums: Sequence[Part], unequal: Unequal, number: int
) -> Unequal:
    """Returns a difference of a sum of tensors; it says so if one of them is zero, unlike those of other modules."""
    if unequal.what != "other values":
        return unequal
    module_class = type(side.modules[path])
    same_class_paths = [name for name, module in side.modules.items() if type(module) is module_class and name != path]
    for name in [
        unequal.name,
        *(sum_part.plus for sum_part in sums if sum_part.source == unequal.name and sum_part.plus),
    ]:
        sibling_hosts = [
            host
            for sibling_path in same_class_paths
            if (host := side.tensors(sibling_path)[0].hosts.get(name)) is not None
        ]
        is_zero = sums and name in tensors.hosts and not tensors.hosts[name].values().any()
        if is_zero and sibling_hosts and all(host.values().any() for host in sibling_hosts):
            return unequal._replace(name=name, what="all 0, as before weights are loaded", wrong=number)
    return unequal


def _renamed_hosts(first_hosts: Mapping[str, Host], second_hosts: Mapping[str, Host]) -> dict[str, Host]:
    """Returns tensors by the names that the other model has for tensors of their shape, where the choice is unique."""
    free_names = [name for name in first_hosts if name not in second_hosts]
    name_by_other_name: dict[str, str] = {}
    for name, host in second_hosts.items():
        fitting_names = [name for name in free_names if sorted(first_hosts[name].shape) == sorted(host.shape)]
        rival_names = [
            second_name
            for second_name in second_hosts
            if second_name not in first_hosts and sorted(second_hosts[second_name].shape) == sorted(host.shape)
        ]
        name_by_other_name[name] = (
            fitting_names[0] if name not in first_hosts and len(fitting_names) == len(rival_names) == 1 else name
        )
    return {name_by_other_name[name]: host for name, host in second_hosts.items()}


def _is_neutral(name: str, host: Host) -> bool:
    """Returns whether a tensor that the other side lacks changes nothing: it adds zero or multiplies by one."""
    if not host.size:
        return True
    host_values = host.values()
    return bool(not host_values.any() or (np.all(host_values == 1) and "bias" not in name)) or "freq" in name


def _describe_difference(x: Host, y: Host) -> tuple[str, int | None, float]:
    """Returns how the second of two tensors differs, which side is wrong if the tensors tell, and how far."""
    share = distance(x, y).share
    if share <= _EQUAL:
        return "", None, share
    first_array, second_array = x.wide_array(), y.wide_array()
    axis_order = _axes_order(first_array, second_array)
    if axis_order is not None:
        second_array = second_array.transpose(axis_order)
        if np.abs(first_array - second_array).max() <= _EQUAL * np.abs(first_array).max():
            return "transposed" if first_array.ndim == 2 else f"with its axes in the order {axis_order}", None, share
    is_unequal = first_array != second_array if first_array.shape == second_array.shape else np.ones((), bool)
    for side, (rounded, exact) in enumerate(((first_array, second_array), (second_array, first_array))):
        rounded_dtype = _rounding_dtype(rounded, exact)
        if rounded_dtype:
            return f"rounded to {rounded_dtype}", side, share
        rounded_part, exact_part = (rounded[is_unequal], exact[is_unequal]) if is_unequal.ndim else (rounded, exact)
        if rounded_part.size > 1 and np.ptp(rounded_part.real) == 0 and np.ptp(exact_part.real) > 0:
            extent_text = "all" if rounded_part.size == rounded.size else f"for {rounded_part.size} elements"
            return f"{extent_text} {rounded_part.flat[0]:g}, as before weights are loaded", side, share
    reordering_text = _describe_reordering(first_array, second_array)
    if reordering_text:
        return reordering_text, None, share
    if first_array.shape != second_array.shape:
        return f"of shape {y.shape}, not {x.shape}", None, share
    return "other values", None, share


def _axes_order(a: Array, b: Array) -> tuple[int, ...] | None:
    """Returns the order of the axes in which the second array has the values of the first, or nearly; None if none."""
    if a.size != b.size or a.ndim != b.ndim or not 2 <= a.ndim <= _MOST_AXES or a.dtype.kind not in "fc":
        return None
    largest_difference = _NEAR * float(np.abs(a).max(initial=0.0))
    for order in itertools.permutations(range(a.ndim)):
        transposed_array = b.transpose(order)
        if (
            transposed_array.shape == a.shape
            and float(np.quantile(np.abs(a - transposed_array), 0.9)) <= largest_difference
        ):
            return None if order == tuple(range(a.ndim)) else order
    return None


def _rounding_dtype(rounded: Array, exact: Array) -> str:
    """Returns the dtype to which an array is the rounded form of another one, or of a part of it, or ""."""
    if rounded.shape != exact.shape or rounded.dtype.kind != "f":
        return ""
    with np.errstate(all="ignore"):
        half_values = exact.astype(np.float16).astype(np.float64)
    bits = exact.astype(np.float32).view(np.uint32)
    bfloat16_values = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    dtype_candidates = (("float16", half_values), ("bfloat16", bfloat16_values))
    return next(
        (
            dtype_name
            for dtype_name, rounded_values in dtype_candidates
            if np.all((rounded == rounded_values) | (rounded == exact))
        ),
        "",
    )


def _describe_reordering(a: Array, b: Array) -> str:
    """Returns how the second array has the elements of the first along an axis, or as a multiple; or ""."""
    if a.shape != b.shape:
        return ""
    largest_difference = _EQUAL * float(np.abs(a).max(initial=0.0))
    for axis in range(a.ndim):
        if np.abs(a - np.flip(b, axis)).max() <= largest_difference:
            return f"reversed on axis {axis}"
        sorted_sums = (
            np.sort(np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis]).sum(0)),
            np.sort(np.moveaxis(b, axis, -1).reshape(-1, b.shape[axis]).sum(0)),
        )
        if (
            a.shape[axis] > 1
            and np.abs(sorted_sums[0] - sorted_sums[1]).max() <= largest_difference * a.size / a.shape[axis]
        ):
            return f"in another order on axis {axis}"
    squared_norm = float(np.vdot(a, a).real)
    ratio = float(np.vdot(a, b).real) / squared_norm if squared_norm else 0.0
    deviation = float(np.abs(a * ratio - b).max())
    return f"{ratio:.6g} times the other" if ratio and deviation <= largest_difference * max(abs(ratio), 1) else ""


def _describe_swaps(first: Side, second: Side, unequal_rows: list[Unequal]) -> list[Unequal]:
    """Returns the differences; two tensors that were exchanged with each other are described so."""
    values_by_path_and_name: dict[tuple[str, str], tuple[Any, Any]] = {}
    for row in unequal_rows:
        if row.what == "other values":
            first_hosts, other_hosts = first.tensors(row.path)[0].hosts, second.tensors(row.other)[0].hosts
            if row.name in first_hosts and row.name in other_hosts:
                values_by_path_and_name[row.path, row.name] = (
                    first_hosts[row.name].values(),
                    other_hosts[row.name].values(),
                )
    text_by_path_and_name: dict[tuple[str, str], str] = {}
    for key, (_, y) in values_by_path_and_name.items():
        for other_key, (x, _) in values_by_path_and_name.items():
            if other_key != key and x.shape == y.shape and np.array_equal(x, y):
                text_by_path_and_name[key] = f"that of {'.'.join(filter(None, other_key))}"
    return [row._replace(what=text_by_path_and_name.get((row.path, row.name), row.what)) for row in unequal_rows]
