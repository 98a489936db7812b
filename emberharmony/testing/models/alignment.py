"""The alignment of the modules of two models by name, order of the calls, class and sizes of tensors."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from emberharmony.core.errors import ArgumentError, suggest
from emberharmony.testing.differences.measures import PART
from emberharmony.testing.models.adapter import Adapter
from emberharmony.testing.models.canonical import Tensors, kind_of, tensors_of

_ALIKE = 0.5
"""The least share of elements in tensors of equal sizes for which two modules may correspond."""

_SAME = 1e-6
"""The largest relative difference of the sums of magnitudes for which two tensors count as equal."""

_JOINED, _NEARLY = 0.8, 0.95
"""The score of two modules if one has at least the second share of the elements of the other."""


class Side:
    """A model with its modules and the order in which they are called.

    Attributes:
        adapter: of the library.
        model: the model.
        modules: its modules by name.
        order: the place of the first call of each module in the order of the calls.
    """

    def __init__(self, adapter: Adapter, model: Any, order: Mapping[str, int]) -> None:
        self.adapter, self.model, self.order = adapter, model, order
        self.modules = adapter.modules(model)
        self._sizes: dict[str, Counter[int]] = {}
        self._magnitude_sums: dict[str, dict[float, int]] = {}
        self._container_flags: dict[str, bool] = {}

    @cached_property
    def parents(self) -> dict[str, str]:
        """The parent of each module by path: the innermost module around it that is no container."""
        parents_by_path: dict[str, str] = {}
        for path in self.modules:
            outer_path = path
            while outer_path:
                outer_path = outer_path.rpartition(".")[0]
                if not outer_path or (outer_path in self.modules and not self.is_only_container(outer_path)):
                    break
            if path:
                parents_by_path[path] = outer_path
        return parents_by_path

    def is_only_container(self, path: str) -> bool:
        """Returns whether a module is only a container: by its class, or because only modules in it are called."""
        if path not in self._container_flags:
            is_uncalled_parent = path not in self.order and any(name.startswith(f"{path}.") for name in self.order)
            self._container_flags[path] = is_uncalled_parent or self.adapter.is_container(self.modules[path])
        return self._container_flags[path]

    def children(self, path: str) -> list[str]:
        """Returns the modules directly in a module, in the order of their calls; containers are passed through."""
        child_paths = [
            name for name, parent in self.parents.items() if parent == path and not self.is_only_container(name)
        ]
        return sorted(child_paths, key=lambda name: self.order.get(name, math.inf))

    def kind(self, path: str) -> str:
        """Returns the name of a module's class, in PyTorch's terms if it is a known layer."""
        return kind_of(self.adapter, self.modules[path])

    def submodules(self, path: str) -> dict[str, Any]:
        """Returns the modules inside a module by their names relative to it."""
        prefix = f"{path}." if path else ""
        return {
            name[len(prefix) :]: module for name, module in self.modules.items() if name and name.startswith(prefix)
        }

    def tensors(self, path: str) -> tuple[Tensors, set[str]]:
        """Returns the tensors of a module in PyTorch's layout, and the names of the modules in it that hold some."""
        tensors_in_torch_layout, used_names = tensors_of(self.adapter, self.modules[path], self.submodules(path))
        return tensors_in_torch_layout, {f"{path}.{name}" if path else name for name in used_names}

    def sizes(self, path: str) -> Counter[int]:
        """Returns how many tensors of each size a module and those in it have; those of integers are no weights."""
        if path not in self._sizes:
            modules = [self.modules[path], *self.submodules(path).values()]
            arrays = [array for module in modules for array in self.adapter.own(module).values()]
            tensor_sizes = (math.prod(array.shape) for array in arrays if self.adapter.is_floating(array))
            self._sizes[path] = Counter(n for n in tensor_sizes if n > 1)
        return self._sizes[path]

    def magnitude_sums(self, path: str) -> dict[float, int]:
        """Returns the sums of the magnitudes of the tensors of a module and of those in it, with their sizes.

        The sums are equal for the same tensors in any layout.
        """
        if path not in self._magnitude_sums:
            self._magnitude_sums[path] = {}
            for name, module in {"": self.modules[path], **self.submodules(path)}.items():
                if name:
                    self._magnitude_sums[path] |= self.magnitude_sums(f"{path}.{name}" if path else name)
                    continue
                for array in self.adapter.own(module).values():
                    if math.prod(array.shape) > 1 and self.adapter.is_floating(array):
                        host = self.adapter.host(array)
                        self._magnitude_sums[path][sum(float(np.abs(x).sum()) for x in host.blocks(PART))] = host.size
        return self._magnitude_sums[path]


class Alignment(NamedTuple):
    """The modules of two models that correspond, and those that have no counterpart.

    Attributes:
        names: the names in the second model of the modules of the first.
        unpaired: the modules of each model that correspond to none.
    """

    names: dict[str, str]
    unpaired: tuple[list[str], list[str]]


def align(first: Side, second: Side, match: Mapping[str, str]) -> Alignment:
    """Returns the alignment of two models: the pairs of corresponding modules, and the others.

    Args:
        first, second: the models.
        match: names in the second model by names in the first, which are not looked for.

    Raises:
        ArgumentError: if a name of `match` is unknown.
    """
    for side, matched_paths in ((first, list(match)), (second, list(match.values()))):
        for name in matched_paths:
            if name not in side.modules:
                raise ArgumentError(
                    f"match: the model of {side.adapter.name} has no module {name!r}{suggest(name, list(side.modules))}"
                )
    name_by_first_name: dict[str, str] = {"": ""} | dict(match)
    pending_pairs = [("", ""), *match.items()]
    while pending_pairs:
        first_path, second_path = pending_pairs.pop(0)
        taken_names = set(name_by_first_name), set(name_by_first_name.values())
        child_pairs = _pair_children(
            first,
            second,
            [n for n in first.children(first_path) if n not in taken_names[0]],
            [n for n in second.children(second_path) if n not in taken_names[1]],
        )
        name_by_first_name |= child_pairs
        pending_pairs += child_pairs.items()
    unpaired_paths = tuple(
        [path for path in side.modules if path not in paired_paths and not side.is_only_container(path)]
        for side, paired_paths in ((first, set(name_by_first_name)), (second, set(name_by_first_name.values())))
    )
    return Alignment(name_by_first_name, unpaired_paths)  # type: ignore[arg-type]


def _pair_children(first: Side, second: Side, first_paths: list[str], second_paths: list[str]) -> dict[str, str]:
    """Returns the pairs of corresponding modules of two lists; submodules replace a module without a partner."""
    name_by_first_name: dict[str, str] = {}
    while True:
        for pair_modules in (_pair_by_name, _pair_uncalled, _pair_in_order, _pair_by_values):
            new_pairs = pair_modules(first, second, first_paths, second_paths)
            first_paths, second_paths = (
                _names_without(first_paths, new_pairs),
                _names_without(second_paths, new_pairs.values()),
            )
            name_by_first_name |= new_pairs
        if not first_paths or not second_paths:
            return name_by_first_name
        largest_containers = _largest_container(first, first_paths), _largest_container(second, second_paths)
        if largest_containers == (None, None):
            return name_by_first_name
        if _element_count(first, largest_containers[0]) >= _element_count(second, largest_containers[1]):
            first_paths = _open_module(first, first_paths, largest_containers[0])
        else:
            second_paths = _open_module(second, second_paths, largest_containers[1])


def _names_without(names: list[str], claimed: Any) -> list[str]:
    claimed_names = set(claimed)
    return [name for name in names if name not in claimed_names]


def _largest_container(side: Side, paths: Sequence[str]) -> str | None:
    """Returns the module with submodules that has the most elements; None if no module has submodules."""
    container_paths = [path for path in paths if side.children(path)]
    return max(container_paths, key=lambda path: _element_count(side, path), default=None)


def _element_count(side: Side, path: str | None) -> int:
    return -1 if path is None else sum(side.sizes(path).elements())


def _open_module(side: Side, paths: Sequence[str], path: str | None) -> list[str]:
    """Returns the list of modules with one module replaced by the modules inside it."""
    path_index = paths.index(path or "")
    return [*paths[:path_index], *side.children(paths[path_index]), *paths[path_index + 1 :]]


def _pair_by_name(first: Side, second: Side, first_paths: Sequence[str], second_paths: Sequence[str]) -> dict[str, str]:
    """Returns the modules that have equal names, and tensors of equal sizes.

    `conv1` may be the first convolution in a model and the second one in another, where the first is `conv0`. So equal
    names count only if all modules of a model have one of the other's, or if the values of the tensors are equal too.
    """
    name_counts = [Counter(map(_last_name, names)) for names in (first_paths, second_paths)]
    name_by_last_part = {_last_name(name): name for name in second_paths}
    pairs_by_name = {
        name: name_by_last_part[last_name]
        for name in first_paths
        if (last_name := _last_name(name)) in name_by_last_part
        if name_counts[0][last_name] == name_counts[1][last_name] == 1
        and _share_of_equal_sizes(first, second, name, name_by_last_part[last_name]) >= _ALIKE
        if not _wraps(first, second, name, name_by_last_part[last_name])
    }
    if len(pairs_by_name) == min(len(first_paths), len(second_paths)):
        return pairs_by_name
    return {
        first_path: second_path
        for first_path, second_path in pairs_by_name.items()
        if _share_of_equal_values(first, second, first_path, second_path) == 1.0
    }


def _wraps(first: Side, second: Side, one: str, other: str) -> bool:
    """Returns whether one of two modules wraps a layer that corresponds to the other one."""
    for outer_side, outer_path, inner_side, inner_path in ((first, one, second, other), (second, other, first, one)):
        children = outer_side.children(outer_path)
        if children and not inner_side.children(inner_path):
            sizes, layer_kind = inner_side.sizes(inner_path), inner_side.kind(inner_path)
            if sizes and any(
                outer_side.kind(child) == layer_kind and outer_side.sizes(child) == sizes for child in children
            ):
                return True
    return False


def _pair_uncalled(
    first: Side, second: Side, first_paths: Sequence[str], second_paths: Sequence[str]
) -> dict[str, str]:
    """Returns the pairs of equal values of which a module is not called, perhaps after an error, and has no order."""
    pairs = _pair_by_values(first, second, first_paths, second_paths)
    return {
        first_path: second_path
        for first_path, second_path in pairs.items()
        if first_path not in first.order or second_path not in second.order
    }


def _pair_by_values(
    first: Side, second: Side, first_paths: Sequence[str], second_paths: Sequence[str]
) -> dict[str, str]:
    """Returns the modules that have tensors of equal values, whatever their names and places are."""
    name_by_first_name: dict[str, str] = {}
    for first_path in first_paths:
        equal_names = [
            name
            for name in second_paths
            if name not in name_by_first_name.values()
            and _share_of_equal_values(first, second, first_path, name) == 1.0
        ]
        if len(equal_names) == 1 and not _wraps(first, second, first_path, equal_names[0]):
            name_by_first_name[first_path] = equal_names[0]
    return name_by_first_name


def _share_of_equal_values(first: Side, second: Side, one: str, other: str) -> float:
    """Returns the share of the elements of two modules that are in tensors of equal values; 0 if they have none."""
    first_sums, second_sums = first.magnitude_sums(one), second.magnitude_sums(other)
    larger_count = max(sum(first_sums.values()), sum(second_sums.values()))
    equal_count = sum(
        n
        for magnitude_sum, n in first_sums.items()
        if any(math.isclose(magnitude_sum, other_sum, rel_tol=_SAME) for other_sum in second_sums)
    )
    return equal_count / larger_count if larger_count else 0.0


def _last_name(path: str) -> str:
    """Returns the last name of a module, with the number in a list after it."""
    return re.sub(r"^.*?([^.]+(\.\d+)*)$", r"\1", path)


def _share_of_equal_sizes(first: Side, second: Side, one: str, other: str) -> float:
    """Returns the share of the elements of two modules that are in tensors of equal sizes; 1 if they have none.

    Modules of nearly as many elements are alike too: one may have tensors joined that are apart in the other.
    """
    first_sizes, second_sizes = first.sizes(one), second.sizes(other)
    union_size = sum((first_sizes | second_sizes).elements())
    if not union_size:
        return 1.0
    smaller_count, larger_count = sorted((sum(first_sizes.elements()), sum(second_sizes.elements())))
    return max(
        sum((first_sizes & second_sizes).elements()) / union_size,
        _JOINED if smaller_count >= _NEARLY * larger_count else 0.0,
    )


def _correspondence_score(first: Side, second: Side, one: str, other: str) -> float:
    """Returns a score of how well two modules correspond, 0 for not at all."""
    equal_share = _share_of_equal_sizes(first, second, one, other)
    is_same_kind = first.kind(one).lower() == second.kind(other).lower()
    if not first.sizes(one) and not second.sizes(other) and not is_same_kind and _last_name(one) != _last_name(other):
        return 0.0
    if equal_share < _ALIKE or _wraps(first, second, one, other):
        return 0.0
    if bool(first.children(one)) != bool(second.children(other)) and not is_same_kind and equal_share < 1:
        return 0.0
    first_name, second_name = _last_name(one), _last_name(other)
    numbers_in_names = [re.findall(r"\d+", name)[-1:] for name in (first_name, second_name)]
    name_similarity = SequenceMatcher(None, first_name.lower(), second_name.lower()).ratio()
    equal_value_share = _share_of_equal_values(first, second, one, other)
    return (
        4 * equal_share
        + 8 * equal_value_share
        + 2 * is_same_kind
        + 2 * name_similarity
        + (numbers_in_names[0] == numbers_in_names[1])
    )


def _pair_in_order(
    first: Side, second: Side, first_paths: Sequence[str], second_paths: Sequence[str]
) -> dict[str, str]:
    """Returns the pairs in the order of the calls that have the largest sum of scores."""
    column_count = len(second_paths) + 1
    best_scores = [[0.0] * column_count for _ in range(len(first_paths) + 1)]
    scores = [
        [_correspondence_score(first, second, first_path, second_path) for second_path in second_paths]
        for first_path in first_paths
    ]
    for i, row in enumerate(scores, 1):
        for j, score in enumerate(row, 1):
            best_scores[i][j] = max(
                best_scores[i - 1][j], best_scores[i][j - 1], best_scores[i - 1][j - 1] + score if score else 0.0
            )
    name_by_first_name: dict[str, str] = {}
    i, j = len(first_paths), len(second_paths)
    while i and j:
        score = scores[i - 1][j - 1]
        if score and best_scores[i][j] == best_scores[i - 1][j - 1] + score:
            name_by_first_name[first_paths[i - 1]] = second_paths[j - 1]
            i, j = i - 1, j - 1
        elif best_scores[i][j] == best_scores[i - 1][j]:
            i -= 1
        else:
            j -= 1
    return name_by_first_name
