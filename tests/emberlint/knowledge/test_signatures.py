"""Proves the table of native signatures: every row runs as the native call and as the translated call of the op.

Outside of the deep profile a third of the rows of PyTorch and MLX runs, with one sample for each form of a call. JAX
compiles for each shape, so a row of JAX always has one sample for each form, and one row of 120 runs. The seed rotates
them, see `tests/sampling.py`.

A program of JAX computes in 32 bits unless it sets `jax_enable_x64`; the ops on JAX set it. So each row of JAX runs
natively in both modes, with the default float of the mode for the op, and the op runs on JAX and on NumPy. Where JAX
has integers of 32 bits because the mode is off, the op may have those of 64 bits.
"""

import ast
import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberlint.knowledge.arguments import parameters
from emberlint.knowledge.replacements import PACKAGE
from emberlint.knowledge.signatures import DROPPED, Signature, UntranslatableError, signatures, translate
from emberlint.port import layers
from tests.sampling import DEEP, is_tried

# The libraries of the table, the module with the dtypes of each, and how many rows each has at least.
LIBRARIES = {"numpy": ("numpy", 270), "torch": ("torch", 400), "mlx": ("mlx.core", 150), "jax": ("jax.numpy", 350)}
INSTALLED = [name for name in LIBRARIES if is_installed(name)]
MODULES = {name: import_module(LIBRARIES[name][0].partition(".")[0]) for name in INSTALLED}
DTYPES = {name: import_module(LIBRARIES[name][0]) for name in INSTALLED}
BACKENDS = {"jax": ("jax", "numpy")}  # on which the op runs, if not on the backend of the library alone
SHARES = {"numpy": 2, "jax": 120}  # one row of so many runs; else one of three
PORTIONS = {"jax": 24, "torch": 2}  # in which a library's rows run, each as one test, which may take 300 s
GENERATOR = np.random.default_rng(7)
SQUARE = GENERATOR.uniform(0.1, 0.9, (3, 3))
CUBE = GENERATOR.uniform(0.1, 0.9, (2, 3, 4))
POSITIVE = SQUARE @ SQUARE.T + 3 * np.eye(3)
# What the arguments of an op may be, by the name of its parameter; the first value fits most ops.
SAMPLES: dict[str, tuple[Any, ...]] = {
    "axis": (0, -1, 1),
    "axes": ((1, 0), (0, 1), 1, (0,), (2, 0, 1)),
    "keepdims": (True, False),
    "dtype": ("float64", "float32", "int64"),
    "shape": ((9,), (3, 3), (2, 3), (-1,)),
    "fill_value": (2.5,),
    "axis1": (0, 1),
    "axis2": (1, 0),
    "k": (1, -1, 0),
    "N": (3,),
    "M": (4,),
    "n": (2, 3),
    "m": (4,),
    "decimals": (1, 2),
    "ord": (2, 1),
    "p": (1.0, 2.0),
    "q": (0.25, 50.0),
    "num": (5, 3),
    "start": (0, 1),
    "stop": (7, 12),
    "step": (2, 3),
    "endpoint": (False, True),
    "base": (3.0,),
    "shift": (1, 2),
    "repeats": (2, (2, 1)),
    "indices_or_sections": (3, 1, (1, 2)),
    "x_min": (0.3,),
    "x_max": (0.6,),
    "descending": (True, False),
    "stable": (True,),
    "source": (0, 1),
    "destination": (1, 0),
    "offset": (1, 0),
    "indexing": ("ij", "xy"),
    "subscripts": ("ij,jk->ik",),
    "correction": (1, 0),
    "negative_slope": (0.2,),
    "alpha": (0.7,),
    "threshold": (0.3,),
    "rtol": (0.5,),
    "atol": (0.5,),
    "equal_nan": (True,),
    "nan": (0.5,),
    "posinf": (2.0,),
    "neginf": (-2.0,),
    "side": ("right", "left"),
    "upper": (True, False),
    "increasing": (True, False),
    "approximate": (False, "none"),
    "invert": (True,),
    "assume_unique": (True,),
    "rowvar": (False, True),
    "ddof": (1,),
    "weights": (np.array([1.0, 2.0, 3.0]),),
    "norm": ("ortho", "forward"),
    "lower": (True, False),
    "descending_": (True,),
    "initial": (0.95,),
    "method": ("nearest", "linear"),
    "delta": (0.5,),
    "mode": ("same", "full", "reduced"),
    "bins": (4,),
    "minlength": (9,),
    "pad_width": (((1, 1), (0, 2)),),
    "constant_values": (2.0,),
    "to": ("float64",),
    "s": ((2, 2),),
    "retstep": (False,),
    "condition": (SQUARE > 0.5, SQUARE[0] > 0.5),
    "indices": (np.array([1, 0]), np.array([[1, 0, 1]])),
    "num_classes": (13,),
    "optimize": (False,),
    "operands": (SQUARE, CUBE[0, :, :3]),
    "dx": (0.5,),
    "period": (2.0,),
    "left": (0.0,),
    "right": (1.0, True),
    "d": (0.5,),
    "array": (SQUARE, CUBE),
    "probabilities": (0.5,),
    "key": (1, (0, 1), slice(0, 2), (slice(None), 1), (..., -1), (None, 0), np.array([1, 0, 1]), SQUARE > 0.5),
    "value": (3, SQUARE[0], 0.5, np.array([7, 3, 1])),
}
# Functions to transform, which use nothing but operators and methods that the tensors of all libraries have.
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    lambda x, y=2.0: (x * x * y).sum(),
    lambda x, y=2.0: ((x * x * y).sum(), x * y),
    lambda x, y=2.0: x * x * y,
)
SAMPLES |= {
    "fn": FUNCTIONS,
    "argnums": ((0, 1), 1, 0),
    "has_aux": (True, False),
    "in_axes": ((0, None), 1, (1, 0)),
    "out_axes": (1, 0, -1),
    "copy": (True, None, False),
}
# What native parameters may be where the op's parameter of another library takes more or less.
NATIVE_SAMPLES: dict[str, tuple[Any, ...]] = {
    "dims": ((0,), (0, 1), [1], 0, 1),
    "value": (7, 2.0),
    "device": ("cpu",),
}
TENSORS = (SQUARE, CUBE, SQUARE[0], POSITIVE, SQUARE[:1], CUBE.swapaxes(1, 2))
INTEGERS = (np.array([[7, 3, 1], [12, 9, 5], [2, 4, 8]]), np.array([3, 1, 2]))
BOOLS = (SQUARE > 0.5, SQUARE[0] > 0.5)
LISTS = ([SQUARE, SQUARE.T.copy()], [SQUARE[0], SQUARE[1]])
DATA = (SQUARE, *INTEGERS, BOOLS[0], *TENSORS[1:], BOOLS[1], *LISTS)
NARROWED = {"int64": "int32", "uint64": "uint32"}
TENSOR_TYPES = {"float64": "DoubleTensor", "float32": "FloatTensor", "int64": "LongTensor"}
UNSET = {"empty", "empty_like"}  # whose values are arbitrary
CONDITIONS = {"", "device", "dtype", "function", "integers", "real", "scalar", "sizes", "tensor type"}
LIMIT = 12  # equal results that are enough for one form of a call
TRIES = {"jax": 100}  # samples that are tried for one form, if not 600


def is_call(found: Signature) -> bool:
    """Returns whether a row is about a function of tensors and an op; `test_layers.py` has the others."""
    return not found.op.startswith(PACKAGE) and found.when not in layers.CONDITIONS


@contextmanager
def native_mode(library: str, wide: bool) -> Iterator[None]:
    """Runs native calls of JAX with 64 or 32 bits; what it announces to refuse, such as floats in integers, fails."""
    is_jax = library == "jax"
    mode = MODULES["jax"].enable_x64(wide) if is_jax else nullcontext()
    with np.errstate(all="ignore"), mode, warnings.catch_warnings():
        if is_jax:
            warnings.simplefilter("error", FutureWarning)
        yield


@contextmanager
def default_float(library: str, wide: bool) -> Iterator[None]:
    """Gives ops the default float that JAX has with 64 or 32 bits."""
    before = ops.default_float()
    if library == "jax":
        ops.set_default_float("float64" if wide else "float32")
    try:
        yield
    finally:
        ops.set_default_float(before)


def native(found: Signature) -> Callable[..., Any]:
    """Returns the native function or method of a row; of a row for a part of its result, what returns the part."""
    owner, _, name = found.native.rpartition(".")
    if owner == "jax.Array":  # the class has no methods, only its instances
        return lambda self, *args, **options: getattr(self, name)(*args, **options)
    if owner.endswith(".at"):
        return lambda self, key, *args, **options: getattr(self.at[key], name)(*args, **options)
    function = resolve_name(found.native)
    return (lambda *args, **options: function(*args, **options)[found.part]) if found.part is not None else function


def value(library: str, one: Any, wide: bool) -> Any:
    """Returns a sample as a tensor of the library: with float64, or with float32."""
    if isinstance(one, list):
        return [value(library, item, wide) for item in one]
    if not isinstance(one, np.ndarray):
        return one
    narrow = one.astype("float32") if one.dtype == np.float64 and not wide else one
    if library == "jax" and one.dtype == np.int64 and not wide:
        narrow = one.astype("int32")
    return narrow.copy() if library == "numpy" else ops.convert_to_tensor(narrow)


def spelled(found: Signature, library: str, name: str, one: Any) -> Any:
    """Returns an argument as the library spells it: a dtype is an object of it, or a type of tensors."""
    spelling = TENSOR_TYPES.get(one, one) if found.when == "tensor type" and isinstance(one, str) else one
    return getattr(DTYPES[library], spelling) if name == "dtype" and isinstance(one, str) else one


def applied(result: Any, library: str, wide: bool) -> Any:
    """Returns the result of a call, or that of the function that a transform made, called with two tensors."""
    return result(*value(library, [SQUARE, POSITIVE], wide)) if callable(result) else result


def leaves(result: Any) -> list[Any]:
    if isinstance(result, list | tuple):
        return [leaf for one in result for leaf in leaves(one)]
    return [np.asarray(ops.to_numpy(result)) if ops.is_tensor(result) else np.asarray(result)]


def parts(one: Any, other: Any, narrows: bool = False) -> str:
    """Returns what differs between two results: nothing, the dtype, or more.

    If `narrows`, integers of 32 and of 64 bits are the same.
    """
    first, second = leaves(one), leaves(other)
    if [leaf.shape for leaf in first] != [leaf.shape for leaf in second]:
        return "shape"
    for a, b in zip(first, second, strict=True):
        error = 2e-3 if a.dtype == np.float16 else 1e-5  # NumPy computes a function of bools in float16
        if not np.allclose(a, b, error, error / 10, equal_nan=True):
            return "value"
    kinds = [
        [NARROWED.get(leaf.dtype.name, leaf.dtype.name) if narrows else leaf.dtype for leaf in some]
        for some in (first, second)
    ]
    return "" if kinds[0] == kinds[1] else "dtype"


def forms(found: Signature) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the native parameters given by position and by keyword: the required ones, and each further one."""
    target = parameters()[found.op]
    backward = {ours: name for name, ours in found.arguments.items()}
    places = [name.lstrip("*") for name in found.places]
    required = [backward[name] for name in target.required if name in backward and name not in found.fills]
    required += [name for name in found.required if name in found.arguments]
    required += ["dtype"] if found.when == "dtype" else []
    count = max((places.index(name) + 1 for name in required if name in places), default=0)
    base, by_name = places[:count], [name for name in required if name not in places]
    if target.variadic:
        base = [*places[:-1], places[-1], places[-1]]
    yield base, by_name
    for name in found.arguments:
        if name in base or name in by_name:
            continue
        if name in found.named:
            yield base, [*by_name, name]
        up_to = places[: places.index(name) + 1] if name in places else []
        if len(up_to) > len(base) and not by_name and all(one in found.arguments for one in up_to):
            yield up_to, []


def outcomes(found: Signature, given: list[str], named: list[str], limit: int = LIMIT) -> dict[str, int]:
    """Runs one form of a call on samples; returns how many results were equal, and how many differed in what."""
    library = found.native.partition(".")[0]
    function = native(found)
    try:
        plan = translate(found, len(given), named)
    except UntranslatableError:
        return {"refused": 1}
    names = [name.lstrip("*") for name in [*given, *named]]
    ours = [found.arguments.get(name, "") for name in names]
    counts: dict[str, int] = {}
    op = attrgetter(found.op)(ops)
    pools = [NATIVE_SAMPLES.get(theirs, SAMPLES.get(name, DATA)) for theirs, name in zip(names, ours, strict=True)]
    if found.op in ("reshape", "transpose", "permute_dims"):
        pools[0] = TENSORS
    if found.when == "scalar":
        pools = [FUNCTIONS[:1] if pool is FUNCTIONS else pool for pool in pools]
    if found.op == "compile":
        pools = [FUNCTIONS[-1:]]  # torch.compile takes seconds for each
    if "key" in ours:  # every form of a key is tried, inside the bounds
        pools[0], limit = (SQUARE, CUBE, INTEGERS[0]), TRIES.get(library, 600)
    if found.when == "sizes":
        pools[1:] = [tuple(one for one in pool if np.min(one) >= 0) for pool in pools[1:]]
    tried = itertools.islice(itertools.product(*pools), TRIES.get(library, 600))
    tried_integers = not any(pool is DATA for pool in pools)
    for sample in tried:
        for wide in (True, False):
            is_integer = any(isinstance(one, np.ndarray) and one.dtype.kind in "ib" for one in sample)
            if library == "jax" and not wide and any(isinstance(one, str) and one == "float64" for one in sample):
                continue  # JAX has no float64 then
            values = [value(library, one, wide) for one in sample]
            args = [spelled(found, library, name, one) for name, one in zip(ours, values, strict=True)]
            by_name = dict(zip(named, args[len(given) :], strict=True))
            try:
                with native_mode(library, wide):
                    expected = applied(function(*args[: len(given)], **by_name), library, wide)
            except Exception:  # noqa: BLE001 -- each library has its own errors for arguments that do not fit
                continue
            fills = {name: ast.literal_eval(text) for name, text in plan.fills}
            for backend in BACKENDS.get(library, (library,)):
                with ops.use_backend(backend), default_float(library, wide):
                    pairs = [*zip(plan.keywords, [value(library, one, wide) for one in sample], strict=True)]
                    try:
                        got = op(*(one for key, one in pairs if key is None), **{k: v for k, v in pairs if k}, **fills)
                        got = applied(got, library, wide)
                        pair = (
                            (np.zeros_like(leaves(one)) for one in (expected, got))
                            if found.op in UNSET
                            else (expected, got)
                        )
                        differs = parts(*pair, narrows=library == "jax" and not wide)
                    except Exception as error:  # noqa: BLE001 -- counted, and compared with the table
                        differs = type(error).__name__
                kind = differs if not differs or not is_integer else f"integers:{differs}"
                counts[kind] = counts.get(kind, 0) + 1
            tried_integers = tried_integers or is_integer
        if counts.get("", 0) >= limit and tried_integers:
            break
    return counts


def faults(found: Signature, limit: int = LIMIT) -> list[tuple[str, dict[str, int]]]:
    """Returns the forms of a call with a wrong result, and the parameters that no equal result proves."""
    wrong = []
    proved: set[str] = set()
    for given, named in forms(found):
        counts = outcomes(found, given, named, limit)
        if counts.get("") or counts.get("integers:"):
            proved.update([*given, *named])
        if any(kind and kind != "integers:" and not (kind == "integers:dtype" and found.integers) for kind in counts):
            wrong.append((f"{', '.join(given)} | {', '.join(named)}", counts))
    return wrong + [(f"| {name}", {}) for name in found.arguments if name not in proved]


@pytest.mark.parametrize(
    ("library", "part"), [(one, part) for one in INSTALLED for part in range(PORTIONS.get(one, 1))]
)
@pytest.mark.filterwarnings("ignore::Warning")
def test_every_row_gives_the_same_values_and_dtypes(library: str, part: int) -> None:
    rows = {name: found for name, found in signatures().items() if name.startswith(f"{library}.") and is_call(found)}
    assert len(rows) >= LIBRARIES[library][1]
    whole = DEEP if library == "jax" else None  # which takes JAX 10 minutes
    tried = [found for name, found in rows.items() if is_tried(name, SHARES.get(library, 3), whole)]
    tried = tried[part :: PORTIONS.get(library, 1)]
    limit = LIMIT if DEEP and library != "jax" else 1
    with ops.use_backend(library), MODULES["jax"].disable_jit() if library == "jax" else nullcontext():
        wrong = {found.native: bad for found in tried if (bad := faults(found, limit))}
    if library == "jax":
        MODULES["jax"].clear_caches()  # its programs take gigabytes
    assert wrong == {}


@pytest.mark.parametrize(
    "name, change",
    [
        ("numpy.std", {"op": "var"}),
        ("numpy.sum", {"arguments": {"a": "x", "axis": "keepdims"}}),
        ("numpy.zeros", {"fills": {}}),
        ("numpy.sqrt", {"integers": ""}),
    ],
    ids=["another op", "another parameter", "another default", "another dtype"],
)
def test_a_wrong_row_has_faults(name: str, change: dict[str, Any]) -> None:
    with ops.use_backend("numpy"):
        assert faults(signatures()[name]._replace(**change))


def test_the_names_of_a_row_exist_and_the_required_parameters_have_a_source() -> None:
    for found in signatures().values():
        target = parameters()[found.op]
        assert found.op.startswith(PACKAGE) or attrgetter(found.op)(ops) is not None
        ours = {*found.arguments.values(), *found.fills} - {DROPPED}
        assert ours <= target.named or target.variadic, found.native
        assert target.variadic or ours.issuperset(target.required), found.native
        assert found.when in (
            "",
            "dtype",
            "device",
            "integers",
            "sizes",
            "tensor type",
            "function",
            "real",
            "scalar",
            *layers.CONDITIONS,
        ), found.native
        assert found.integers in ("", "dtype"), found.native


@pytest.mark.parametrize(
    "name, positional, keywords, expected",
    [
        ("torch.softmax", 1, ["dim"], (None, "axis")),
        ("torch.softmax", 2, [], (None, None)),
        ("torch.sum", 1, ["dim", "keepdim"], (None, "axis", "keepdims")),
        ("numpy.std", 1, ["ddof", "axis"], (None, "correction", "axis")),
        ("torch.Tensor.permute", 4, [], (None, None)),  # three axes become one tuple
        ("numpy.einsum", 3, [], (None, None, None)),
    ],
)
def test_arguments_keep_their_order(
    name: str, positional: int, keywords: list[str], expected: tuple[str | None, ...]
) -> None:
    assert translate(signatures()[name], positional, keywords).keywords == expected


@pytest.mark.parametrize(
    "name, positional, keywords, message",
    [
        ("numpy.sum", 1, ["out"], "has no argument like `out=`"),
        ("numpy.sum", 1, ["dim"], "has no parameter `dim`"),
        ("numpy.sum", 9, [], "takes fewer positional arguments"),
        ("numpy.sum", 1, ["a"], "two arguments"),
        ("numpy.reshape", 1, [], "needs `shape`"),
    ],
)
def test_a_call_that_the_op_does_not_take_is_refused(
    name: str, positional: int, keywords: list[str], message: str
) -> None:
    with pytest.raises(UntranslatableError, match=message):
        translate(signatures()[name], positional, keywords)
