"""Tells apart the ways by which JAX, Dask and the array API compute what the sample rows declare.

`python -m tests.backend.fast_paths.other_ways` writes `other_ways.json` beside it: by backend and op one word for
each call of the row, `-` for one that raises. It is a hash of the primitives of JAX's program, of the names of the
layers of Dask's graph, or of the functions that are called of a library of the array API.
"""

import json
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.shared.random_streams import start_streams
from emberharmony.core.errors import EmberError
from emberharmony.testing.rows import call_of, dtypes_of, tensor_roles
from emberharmony.testing.sample import Case, Sample
from emberharmony.testing.samples import all_samples
from tests.backend.activation import LIBRARIES, active
from tests.backend.fast_paths.counts import Given, place_tensors

RECORD = Path(__file__).with_suffix(".json")
MANY = 2**16 + 1
"""So many elements JAX does not compute on the host."""


def calls_to_tell(sample: Sample) -> Iterator[Given]:
    """Yields the calls of a row in two dtypes, a half and a complex one, and of many elements in the first."""
    roles, dtypes = tensor_roles(sample), dtypes_of(sample)
    others = [next((d for d in dtypes[2:] if d.endswith(ending)), None) for ending in ("float16", "complex64")]
    for dtype in dict.fromkeys([*dtypes[:2], *filter(None, others)]):
        cases = [(str(number), item) for number, item in enumerate(sample.cases)]
        if sample.elementwise and cases and dtype == dtypes[0]:
            args = tuple(np.resize(x, MANY) if isinstance(x, np.ndarray) else x for x in sample.cases[0].args)
            cases.append(("many", Case(args, sample.cases[0].kwargs)))
        for label, item in cases:
            call = call_of(sample, "", dtype, "", item)
            args = place_tensors(ops.convert_to_tensor, call.args, roles)
            yield Given(f"{label} {dtype}", call, args, is_judged=False)


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Makes "jax", "dask" or "strict" the active backend, and hides what it warns of."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), active(name):
        warnings.simplefilter("ignore")
        yield


def way(name: str, op: str, item: Given) -> str:
    """Returns a word that differs if a call goes another way; `-` in the place of one that raises."""
    start_streams(0)
    return _WAYS[name](op, item)


def _way_of_jax(op: str, item: Given) -> str:
    """Returns the words of two programs: of tensors whose values are at hand, and of traced ones."""
    make_jaxpr, roles, arrays = import_module("jax").make_jaxpr, tensor_roles(all_samples()[op]), list[Any]()

    def keep(array: Any) -> Any:
        arrays.append(ops.convert_to_tensor(array))
        return arrays[-1]

    def call_on(traced: list[Any]) -> list[Any]:
        remaining = iter(traced)
        args = place_tensors(lambda _: next(remaining), item.call.args, roles)
        return ops.tree_leaves(item._replace(args=args).make(op))

    place_tensors(keep, item.call.args, roles)
    programs = (lambda: make_jaxpr(lambda: ops.tree_leaves(item.make(op)))(), lambda: make_jaxpr(call_on)(arrays))
    found = [_word_or_none(lambda program=program: _primitives(program().jaxpr)) for program in programs]
    return "/".join(dict.fromkeys(found))


def _primitives(jaxpr: Any) -> Iterator[str]:
    """Yields the names of the primitives of a program of JAX and of the programs in it."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for part in value if isinstance(value, (list, tuple)) else (value,):
                inner = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    yield from _primitives(inner)


def _way_of_dask(op: str, item: Given) -> str:
    def names() -> list[str]:
        layers = {name for x in ops.tree_leaves(item.make(op)) if hasattr(x, "dask") for name in x.dask.layers}
        return sorted(name.rpartition("-")[0] for name in layers)

    return _word_or_none(names)


def _way_of_strict(op: str, item: Given) -> str:
    def names() -> list[str]:
        item.make(op)  # the first call of an op makes what the later ones use
        entered: list[str] = []

        def note(frame: Any, event: str, argument: Any) -> None:
            if event == "call" and _is_of_strict(frame) and not _is_of_strict(frame.f_back):
                entered.append(frame.f_code.co_name)

        sys.setprofile(note)
        try:
            item.make(op)
        finally:
            sys.setprofile(None)
        return entered

    return _word_or_none(names)


def _is_of_strict(frame: Any) -> bool:
    return frame is not None and frame.f_globals.get("__name__", "").startswith(LIBRARIES["strict"])


def _word_or_none(names: Callable[[], Iterable[str]]) -> str:
    try:
        return f"{zlib.crc32(' '.join(names()).encode()) & 0xFFFF:04x}"
    except EmberError:
        return "-"


_WAYS: dict[str, Callable[[str, Given], str]] = {"jax": _way_of_jax, "dask": _way_of_dask, "strict": _way_of_strict}


def encode(found: Iterable[str]) -> str:
    """Returns words as a text, in which `3*ab` stands for three of them."""
    groups = [(word, len([*group])) for word, group in groupby(found)]
    return " ".join(word if number == 1 else f"{number}*{word}" for word, number in groups)


def words(name: str, op: str) -> list[str]:
    """Returns the ways of all calls of an op, on the active backend."""
    return [way(name, op, item) for item in calls_to_tell(all_samples()[op])]


def main() -> None:
    """Writes the record of the backends that are installed."""
    record: dict[str, Any] = {"program": "python -m tests.backend.fast_paths.other_ways"}
    record |= {"versions": {name: version(library) for name, library in LIBRARIES.items()}}
    for name in LIBRARIES:
        with quiet(name):
            record[name] = {op: encode(words(name, op)) for op in sorted(all_samples())}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
