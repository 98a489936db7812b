"""Which tensors of two models differ, and in what: layout, order, rounding, or a tensor that is missing."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony.io.differences import differences
from emberharmony.io.header import TensorInfo
from emberharmony.io.sources import BLOCK, Array
from emberharmony.testing.differences.measures import distance
from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.alignment import Alignment, Side
from emberharmony.testing.models.canonical import add_parts

_EQUAL = 2.0**-21
"""Tensors this far apart, as a share of the largest element, differ by the rounding of a conversion."""

_MOST_AXES = 5


class Unequal(NamedTuple):
    """A tensor that differs.

    Attributes:
        path: the module of the first model.
        other: that of the second.
        name: the tensor in PyTorch's layout.
        what: how the second differs from the first.
        wrong: the side that is wrong, 0 or 1, or None if the tensors do not tell.
        share: how far they are apart, as a share of the largest element.
    """

    path: str
    other: str
    name: str
    what: str
    wrong: int | None
    share: float


class _Source:
    """Tensors of a model as `io.differences` takes them."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.path, self.metadata = "", dict[str, str]()
        self._hosts = hosts
        self.tensors = {name: TensorInfo(host.dtype, host.shape, host.bits.nbytes, 0) for name, host in hosts.items()}

    def blocks(self, name: str) -> Iterator[Array]:
        """Yields the elements of a tensor."""
        flat = self._hosts[name].bits.reshape(-1)
        for start in range(0, flat.size, BLOCK):
            yield np.ascontiguousarray(flat[start : start + BLOCK])

    def place(self, name: str) -> str:
        """Returns what is equal for the names of one tied tensor."""
        return name

    def close(self) -> None:
        """Does nothing."""


def unequal_tensors(first: Side, second: Side, alignment: Alignment) -> tuple[list[Unequal], tuple[set[str], set[str]]]:
    """Returns the tensors of corresponding modules that differ, in the order of the calls of the first model.

    The second value has the modules of each model whose tensors were compared with those of a module around them.
    """
    differing: list[Unequal] = []
    claimed: tuple[set[str], set[str]] = (set(), set())
    left = tuple(
        [path for path in paths if side.adapter.own(side.modules[path])]
        for side, paths in zip((first, second), alignment.left, strict=True)
    )
    ordered = sorted(alignment.names.items(), key=lambda pair: (pair[0].count("."), pair[0]))
    for path, other in ordered:
        if path in claimed[0] or other in claimed[1]:
            continue
        (one, inner), (two, inside) = first.tensors(path), second.tensors(other)
        if bool(inner) != bool(inside):  # one side has a layer in parts that the other has as a whole
            claimed[0].update(inner)
            claimed[1].update(inside)
            _add_parts(first, path, one.hosts, two.hosts)
            _add_parts(second, other, two.hosts, one.hosts)
        hosts = add_parts(one, two.sums), add_parts(two, one.sums)
        for here, there, side, free in ((hosts[0], hosts[1], second, left[1]), (hosts[1], hosts[0], first, left[0])):
            _add_elsewhere(here, there, side, free)
        differing += _of_module(path, other, *hosts)
    differing = _name_swaps(first, second, differing)
    return sorted(differing, key=lambda each: first.order.get(each.path, len(first.order))), claimed


def _add_parts(side: Side, path: str, hosts: dict[str, Host], others: Mapping[str, Host]) -> None:
    """Adds the tensors of modules in a module to its own, where the other model has them there."""
    for name, module in side.below(path).items():
        for key, array in side.adapter.own(module).items():
            if f"{name}.{key}" in others:
                hosts.setdefault(f"{name}.{key}", side.adapter.host(array))


def _add_elsewhere(here: Mapping[str, Host], there: dict[str, Host], side: Side, paths: Sequence[str]) -> None:
    """Adds tensors that a module lacks and that a module has that corresponds to none: the one of the same shape."""
    for name, host in here.items():
        if name in there or host.size < 2:
            continue
        fitting = [
            array
            for path in paths
            for array in side.adapter.own(side.modules[path]).values()
            if tuple(array.shape) == tuple(host.shape)
        ]
        equal = [array for array in fitting if distance(host, side.adapter.host(array)).share <= _EQUAL]
        if equal or len(fitting) == 1:
            there[name] = side.adapter.host((equal or fitting)[0])


def _of_module(path: str, other: str, one: Mapping[str, Host], two: Mapping[str, Host]) -> Iterator[Unequal]:
    two = _rename(one, two)
    first, second = _Source(one), _Source(two)
    names = [*one, *(name for name in two if name not in one)]
    for each in differences(first, second, names, lambda _: None):
        x, y = one.get(each.name), two.get(each.name)
        if each.kind == "equal" or (each.kind == "dtype" and not each.elements):
            continue
        if x is None or y is None:
            host = x if y is None else y
            if host is not None and (host.dtype.startswith(("int", "uint", "bool")) or _is_neutral(each.name, host)):
                continue
            side = 0 if x is None else 1
            yield Unequal(path, other, each.name, "missing", side, 1.0)
            continue
        what, wrong, share = _difference(x, y)
        if what:
            yield Unequal(path, other, each.name, what, wrong, share)


def _rename(one: Mapping[str, Host], two: Mapping[str, Host]) -> dict[str, Host]:
    """Returns tensors by the names that the other model has for tensors of their shape, where the choice is unique."""
    free = [name for name in one if name not in two]
    names: dict[str, str] = {}
    for name, host in two.items():
        fitting = [each for each in free if sorted(one[each].shape) == sorted(host.shape)]
        rivals = [each for each in two if each not in one and sorted(two[each].shape) == sorted(host.shape)]
        names[name] = fitting[0] if name not in one and len(fitting) == len(rivals) == 1 else name
    return {names[name]: host for name, host in two.items()}


def _is_neutral(name: str, host: Host) -> bool:
    """Returns whether a tensor that the other side lacks changes nothing: it adds zero or multiplies by one."""
    if not host.size:
        return True
    values = host.values()
    return bool(not values.any() or (np.all(values == 1) and "bias" not in name)) or "freq" in name


def _difference(x: Host, y: Host) -> tuple[str, int | None, float]:
    """Returns how the second of two tensors differs, which side is wrong if the tensors tell, and how far."""
    share = distance(x, y).share
    if share <= _EQUAL:
        return "", None, share
    a, b = x.wide(), y.wide()
    for side, (narrow, exact) in enumerate(((a, b), (b, a))):
        kind = _rounded_to(narrow, exact)
        if kind:
            return f"rounded to {kind}", side, share
        if narrow.size > 1 and np.ptp(narrow.real) == 0 and np.ptp(exact.real) > 0:
            return f"all {narrow.flat[0]:g}, as before weights are loaded", side, share
    moved = _reordering(a, b)
    if moved:
        return moved, None, share
    if a.shape != b.shape:
        return f"of shape {y.shape}, not {x.shape}", None, share
    return "other values", None, share


def _rounded_to(narrow: Array, exact: Array) -> str:
    """Returns the dtype to which an array is the rounded form of another one, or ""."""
    if narrow.shape != exact.shape or narrow.dtype.kind != "f":
        return ""
    with np.errstate(all="ignore"):
        half = exact.astype(np.float16).astype(np.float64)
    bits = exact.astype(np.float32).view(np.uint32)
    brain = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return next((kind for kind, cut in (("float16", half), ("bfloat16", brain)) if np.array_equal(narrow, cut)), "")


def _reordering(a: Array, b: Array) -> str:
    """Returns in what order the second array has the elements of the first, or ""."""
    if a.size != b.size or a.ndim != b.ndim or a.ndim > _MOST_AXES:
        return ""
    limit = _EQUAL * float(np.abs(a).max(initial=0.0))
    for order in itertools.permutations(range(a.ndim)):
        turned = b.transpose(order)
        if turned.shape == a.shape and order != tuple(range(a.ndim)) and np.abs(a - turned).max() <= limit:
            return "transposed" if a.ndim == 2 else f"with its axes in the order {order}"
    if a.shape != b.shape:
        return ""
    for axis in range(a.ndim):
        if np.abs(a - np.flip(b, axis)).max() <= limit:
            return f"reversed on axis {axis}"
        rows = (
            np.sort(np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis]).sum(0)),
            np.sort(np.moveaxis(b, axis, -1).reshape(-1, b.shape[axis]).sum(0)),
        )
        if a.shape[axis] > 1 and np.abs(rows[0] - rows[1]).max() <= limit * a.size / a.shape[axis]:
            return f"in another order on axis {axis}"
    whole = float(np.vdot(a, a).real)
    ratio = float(np.vdot(a, b).real) / whole if whole else 0.0
    off = float(np.abs(a * ratio - b).max())
    return f"{ratio:.6g} times the other" if ratio and off <= limit * max(abs(ratio), 1) else ""


def _name_swaps(first: Side, second: Side, differing: list[Unequal]) -> list[Unequal]:
    """Returns differences in which those of two tensors that changed places say so."""
    values: dict[tuple[str, str], tuple[Any, Any]] = {}
    for each in differing:
        if each.what == "other values":
            one, two = first.tensors(each.path)[0].hosts, second.tensors(each.other)[0].hosts
            if each.name in one and each.name in two:
                values[each.path, each.name] = one[each.name].values(), two[each.name].values()
    names: dict[tuple[str, str], str] = {}
    for key, (_, y) in values.items():
        for other, (x, _) in values.items():
            if other != key and x.shape == y.shape and np.array_equal(x, y):
                names[key] = f"that of {'.'.join(filter(None, other))}"
    return [each._replace(what=names.get((each.path, each.name), each.what)) for each in differing]
