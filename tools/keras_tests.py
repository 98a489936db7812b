"""Runs Keras's own tests of its ops on ours: `python tools/keras_tests.py KERAS_SOURCE_TREE --backend numpy`.

The tests are read from the source of a release of Keras, unpacked from its sdist, and run as they are. What they import
of Keras are stand-ins made in memory: the functions and operations of `keras.ops` are our ops, and everything that has
no counterpart here (symbolic tensors, layers, models, other libraries) raises `Unshared` when a test uses it. Such
tests are excluded, and so are those that fail and that the table `EXCLUDED` names, each with the reason. The exit
status is 1 if another test fails.

If JAX is installed, the tests run too that ask JAX for the dtype of a result; without it, those are excluded.
"""

import argparse
import fnmatch
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import sys
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from keras_dtypes import jax_modules
from keras_exclusions import EXCLUDED, WIDE, WIDE_INTEGERS

from emberharmony import ops
from emberharmony.core.registry import ALIASES, OPS
from emberharmony.errors import DTypeError

FILES = (
    *("ops.numpy_test", "ops.math_test", "ops.nn_test", "ops.linalg_test", "ops.core_test", "ops.einops_test"),
    *("ops.image_test", "random.random_test"),
)
KERAS_BACKEND = "numpy"
"""The backend of Keras that the tests are told they run on: that one gives the results that all of ours give."""

OPTIONS_FIRST = ("Einsum", "ForiLoop", "Full", "WhileLoop")
"""The operations whose options come before the tensors in the call of the function."""


class Unshared(BaseException):
    """Raised by a stand-in for a part of Keras, or of another library, that has no counterpart here."""


class Absent(types.ModuleType):
    """The stand-in for a module or function that has no counterpart: its parts are absent too, and calls raise."""

    __path__: MutableSequence[str] = []  # noqa: RUF012
    present: ClassVar[dict[str, types.ModuleType]] = {}
    """The stand-ins that do have contents, by name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        if path in self.present:
            return self.present[path]
        if name[0].isupper() and not name.isupper():
            return type(name, (), {"__new__": lambda cls, *_, **__: _refuse(path)})
        return Absent(path)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raises `Unshared`."""
        _refuse(self.__name__)


def _refuse(path: str) -> None:
    raise Unshared(path)


class Operations(types.ModuleType):
    """The stand-in for a module of ops: functions are ours, and `Mean(axis=1)(x)` is `mean(x, axis=1)`."""

    def __init__(self, name: str, space: Any = ops) -> None:
        super().__init__(name)
        self._space = space

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = self._find_function(name)
        if function is not None:
            return function
        if name in ("nn", "image", "linalg", "numpy", "random"):
            return Operations(f"{self.__name__}.{name}", ops.random if name == "random" else ops)
        full_name = name + "alization" if name.endswith("Norm") else name
        snake_name = next((known for known in (*OPS, *ALIASES) if known.replace("_", "") == full_name.lower()), None)
        if snake_name is None or name == name.lower():
            return getattr(Absent(self.__name__), name)
        return _operation_class(name, self._find_function(snake_name))

    def _find_function(self, name: str) -> Any:
        attribute = vars(self._space).get(name)
        if attribute is None or isinstance(attribute, types.ModuleType):
            spec = OPS.get(name)
            return spec.function if spec is not None else None
        return attribute


def _operation_class(kind: str, function: Any) -> type:
    class Operation:
        """An op with its options bound."""

        def __init__(self, *args: Any, **options: Any) -> None:
            self.args, self.options = args, options

        def __call__(self, *tensors: Any, **options: Any) -> Any:
            first, last = (self.args, tensors) if kind in OPTIONS_FIRST else (tensors, self.args)
            return function(*first, *last, **(self.options | options))

        def symbolic_call(self, *tensors: Any, **options: Any) -> Any:
            """Calls the op: there are no symbolic tensors, so the tensors are concrete."""
            return self(*tensors, **options)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Absent(f"Operation.{name}")

    Operation.__name__ = kind
    return Operation


def _make_module(name: str, **contents: Any) -> types.ModuleType:
    module = Absent(name)
    vars(module).update(contents)
    return module


class Parameterized:
    """The stand-in for `absl.testing.parameterized`: each row of parameters becomes a test."""

    TestCase = unittest.TestCase

    @staticmethod
    def named_parameters(*rows: Any) -> Callable[[Any], Any]:
        """Returns a decorator; each row is a dict, or a tuple whose first element is a name."""
        return _parameterize(list(_flatten_rows(rows)), named=True)

    @staticmethod
    def parameters(*rows: Any) -> Callable[[Any], Any]:
        """Returns a decorator; each row is a dict, a tuple of arguments, or the only argument."""
        return _parameterize(list(_flatten_rows(rows)), named=False)

    @staticmethod
    def product(*given: Any, **choices: Any) -> Callable[[Any], Any]:
        """Returns a decorator; there is a row for each combination of the choices."""
        return _parameterize(list(_product_rows(given, choices)), named=False)


def _flatten_rows(rows: Sequence[Any]) -> Sequence[Any]:
    is_wrapped = len(rows) == 1 and not isinstance(rows[0], (dict, str)) and hasattr(rows[0], "__iter__")
    return list(rows[0]) if is_wrapped and not (isinstance(rows[0], tuple) and isinstance(rows[0][0], str)) else rows


def _product_rows(given: Sequence[Any], choices: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for dicts in itertools.product(*given):
        merged_row = {key: value for one in dicts for key, value in one.items()}
        for values in itertools.product(*choices.values()):
            yield merged_row | dict(zip(choices, values, strict=True))


def named_product(*given: Any, **choices: Any) -> list[dict[str, Any]]:
    """Returns the rows of a product, each with a name."""
    return [row | {"testcase_name": f"_{i}"} for i, row in enumerate(_product_rows(given, choices))]


def _parameterize(rows: list[Any], named: bool) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        function.__rows__ = [*getattr(function, "__rows__", [{}])]
        function.__rows__ = [(row, named) for row in rows]
        return function

    return decorate


def _expand_rows(cls: type) -> None:
    """Replaces the parameterized tests of a class by one test for each row."""
    for name, function in list(vars(cls).items()):
        for i, (row, named) in enumerate(getattr(function, "__rows__", ())):
            args, options = _arguments_of_row(row, named)

            def test(self: Any, function: Any = function, args: Any = args, options: Any = options) -> Any:
                return function(self, *args, **options)

            test.pytestmark = getattr(function, "pytestmark", [])  # type: ignore[attr-defined]
            setattr(cls, f"{name}_{i}", test)
        if hasattr(function, "__rows__"):
            delattr(cls, name)


def _arguments_of_row(row: Any, named: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(row, dict):
        return (), {key: value for key, value in row.items() if key != "testcase_name"}
    if not isinstance(row, (tuple, list)):
        return (row,), {}
    return tuple(row[1:] if named else row), {}


class TestCase(unittest.TestCase):
    """The stand-in for `keras.testing.TestCase`."""

    def __init_subclass__(cls) -> None:
        _expand_rows(cls)

    def assertAllClose(self, actual: Any, desired: Any, atol: float = 1e-6, rtol: float = 1e-6, **_: Any) -> None:
        """Checks that two tensors are close."""
        np.testing.assert_allclose(host_array(actual), host_array(desired), rtol, atol)

    def assertEqual(self, first: Any, second: Any, msg: Any = None) -> None:
        """Checks that two values are equal; a dtype of the backend equals its name, as in NumPy."""
        if isinstance(second, str) and not isinstance(first, str):
            first = standardize_dtype(first)
        super().assertEqual(first, second, msg)  # noqa: PT009

    def assertNotAllClose(self, x1: Any, x2: Any, atol: float = 1e-6, rtol: float = 1e-6, msg: Any = None) -> None:
        """Checks that two tensors differ."""
        assert not np.allclose(host_array(x1), host_array(x2), rtol, atol)

    def assertAlmostEqual(self, actual: Any, desired: Any, decimal: int = 3, **_: Any) -> None:  # type: ignore[override]
        """Checks that two tensors agree in a number of decimals."""
        np.testing.assert_almost_equal(host_array(actual), host_array(desired), decimal)

    def assertAllEqual(self, actual: Any, desired: Any, msg: Any = None) -> None:
        """Checks that two tensors are equal."""
        np.testing.assert_array_equal(host_array(actual), host_array(desired))

    def assertLen(self, items: Any, length: int, msg: Any = None) -> None:
        """Checks the number of items."""
        assert len(items) == length

    def assertDType(self, x: Any, dtype: Any, msg: Any = None) -> None:
        """Checks a dtype."""
        self.assertEqual(standardize_dtype(getattr(x, "dtype", type(x))), standardize_dtype(dtype))  # noqa: PT009

    def assertRaisesRegex(self, error: Any, _: Any, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        """Checks the class of an error; the wording is that of each project."""
        return self.assertRaises(error, *args, **options)  # noqa: PT027

    def assertSparse(self, x: Any, sparse: bool = True) -> None:
        """Checks that no sparse tensor is expected."""
        assert not sparse

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("run_", "get_temp")):
            return Absent(f"keras.testing.{name}")
        raise AttributeError(name)


def host_array(x: Any) -> Any:
    """Returns a tensor of the active backend, or anything that NumPy converts, as a NumPy array."""
    return ops.to_numpy(x) if ops.is_tensor(x) else np.array(x)


def standardize_dtype(dtype: Any) -> str:
    """Returns the name of a dtype of any backend; None is the default float."""
    if dtype is None:
        return "float32"
    name_by_class = {bool: "bool", int: "int32", float: "float32"}
    return (
        name_by_class[dtype]
        if isinstance(dtype, type) and dtype in name_by_class
        else ops.dtype(ops.zeros((), dtype=dtype)).name
    )


def _keep_test(function: Any) -> Any:
    return function


def _skip_test(function: Any) -> Any:
    return unittest.skip("not on this backend")(function)


def _require_channels_last(name: str) -> None:
    if name != "channels_last":
        _refuse("a global data format of channels_first")


def stand_in_modules() -> dict[str, types.ModuleType]:
    """Returns the modules that take the place of Keras's, and of others that its tests import."""
    integers = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "int64")
    floats = ("bfloat16", "float16", "float32", "float64")
    allowed_dtypes = ("bool", *integers, *floats, "complex64")
    dtypes_module = _make_module(
        "dtypes", INT_TYPES=integers, FLOAT_TYPES=floats, FLOAT8_TYPES=(), ALLOWED_DTYPES=allowed_dtypes
    )
    settings: dict[str, Any] = {
        "backend": lambda: KERAS_BACKEND,
        "floatx": lambda: "float32",
        "epsilon": lambda: 1e-7,
        "image_data_format": lambda: "channels_last",
        "set_image_data_format": _require_channels_last,
    }
    common_contents = {
        "standardize_dtype": standardize_dtype,
        "standardize_data_format": lambda given: given or "channels_last",
        "is_int_dtype": lambda x: "int" in standardize_dtype(x),
        "is_float_dtype": lambda x: "float" in standardize_dtype(x),
        "dtypes": dtypes_module,
    }
    function_names = ("is_tensor", "convert_to_tensor", "cast", "shape", "result_type")
    support_flags = {
        "SUPPORTS_SPARSE_TENSORS": False,
        "SUPPORTS_RAGGED_TENSORS": False,
        "SUPPORTS_COMPLEX_DTYPES": True,
    }
    config_module = _make_module("keras.config", **settings)
    tensor_functions = {name: getattr(ops, name) for name in function_names} | {"convert_to_numpy": ops.to_numpy}
    operation_module = Operations("keras.ops")
    random_module = Operations("keras.random", ops.random)
    device_checks = {
        f"{name}_uses_{kind}": lambda: False for name in ("jax", "tensorflow", "torch") for kind in ("gpu", "tpu")
    }
    testing_module = _make_module(
        "keras.src.testing", TestCase=TestCase, uses_gpu=lambda: False, uses_tpu=lambda: False, **device_checks
    )
    backend_parts = {"config": config_module, "numpy": operation_module, "Variable": ops.asarray}
    jax_stand_ins = jax_modules(_refuse)
    modules = {
        "keras": _make_module(
            "keras", config=config_module, backend=config_module, ops=operation_module, random=random_module
        ),
        "keras.src": _make_module("keras.src"),
        "keras.src.backend": _make_module(
            "keras.src.backend", **settings, **common_contents, **tensor_functions, **support_flags, **backend_parts
        ),
        "keras.src.backend.config": config_module,
        "keras.src.backend.common": _make_module("keras.src.backend.common", **common_contents),
        "keras.src.tree": _make_module(
            "keras.src.tree", flatten=lambda tree: ops.tree_flatten(tree)[0], map_structure=ops.tree_map
        ),
        "keras.src.utils": _make_module("keras.src.utils"),
        "keras.src.utils.rng_utils": _make_module("keras.src.utils.rng_utils", set_random_seed=ops.random.seed),
        "keras.src.backend.common.dtypes": dtypes_module,
        "keras.src.testing": testing_module,
        "keras.src.testing.test_utils": _make_module("keras.src.testing.test_utils", named_product=named_product),
        "keras.src.random": _make_module("keras.src.random", random=random_module),
        "keras.src.random.random": random_module,
        "conftest": _make_module(
            "conftest", skip_if_backend=lambda name, _: _keep_test if name != KERAS_BACKEND else _skip_test
        ),
        "absl": _make_module("absl"),
        "absl.testing": _make_module("absl.testing", parameterized=Parameterized),
        "absl.testing.parameterized": _make_module("absl.testing.parameterized", **vars(Parameterized)),
        "jax": _make_module("jax"),
        "jax.scipy": _make_module("jax.scipy"),
        **jax_stand_ins,
    }
    for part in ("", ".numpy", ".math", ".nn", ".linalg", ".core", ".image", ".einops"):
        modules[f"keras.src.ops{part}"] = Operations(f"keras.src.ops{part}")
    return modules


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-ins, the modules of tests in the source tree, and `Absent` for the rest of Keras and JAX."""

    def __init__(self, tree: Path, modules: dict[str, types.ModuleType]) -> None:
        self.tree, self.modules = tree, modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module of Keras, absl, JAX or TensorFlow; None for all others."""
        if name.partition(".")[0] not in ("keras", "absl", "jax", "tensorflow", "conftest"):
            return None
        if name.startswith("jax._src"):  # JAX imports its own parts late
            return None
        if name.endswith(("_test", "backend_utils")):
            return importlib.util.spec_from_file_location(name, self.tree / (name.replace(".", "/") + ".py"))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns a stand-in."""
        return self.modules.get(spec.name) or Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: stand-ins are complete."""


def tests_of(module: types.ModuleType) -> Iterator[tuple[str, TestCase, Any]]:
    """Yields the name, the case and the function of each test in a module."""
    stem = module.__name__.removeprefix("keras.src.")
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and issubclass(cls, TestCase) and cls.__module__ == module.__name__:
            for name in unittest.defaultTestLoader.getTestCaseNames(cls):
                yield f"{stem}.{cls.__name__}.{name}", cls(name), getattr(cls, name)


def skip_reason(*marked: Any) -> str | None:
    """Returns why pytest would skip a test, given what carries its marks, or None."""
    for mark in (mark for one in marked for mark in getattr(one, "pytestmark", ())):
        if mark.name == "skipif" and mark.args[0]:
            return "Keras skips it on this backend"
        if mark.name in ("skip", "requires_trainable_backend"):
            return "Keras skips it on a backend without variables"
    return None


class FirstError(unittest.TestResult):
    """Keeps the first exception of a test."""

    error: BaseException | None = None

    def addError(self, test: Any, err: Any) -> None:
        """Keeps an exception."""
        self.error = self.error or err[1]

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        """Keeps the exception of a part of a test."""
        if err is not None:
            self.addError(test, err)


def _family_of_part(path: str) -> str:
    """Returns what a stand-in for a missing part belongs to."""
    root, last = path.split(".")[0], path.split(".")[-1]
    if root in ("jax", "tensorflow"):
        return root
    if root == "Operation" or "KerasTensor" in last or last in ("Input", "Model"):
        return "symbolic tensors, or the attributes of an operation"
    return path.removeprefix("keras.").removeprefix("src.")


def run_test(name: str, case: TestCase, function: Any) -> tuple[str, str]:
    """Returns "passed", "excluded" or "failed", and the reason, after running a test."""
    skip_cause = skip_reason(type(case), function)
    if skip_cause is not None:
        return "excluded", skip_cause
    error_keeper = FirstError()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.run(error_keeper)
    if error_keeper.skipped:
        return "excluded", "Keras skips it on this backend"
    if error_keeper.error is None:
        return "passed", ""
    if isinstance(error_keeper.error, unittest.SkipTest) or type(error_keeper.error).__name__ == "Skipped":
        return "excluded", "Keras skips it on this backend"
    if isinstance(error_keeper.error, DTypeError) and "has no dtype" in str(error_keeper.error):
        return "excluded", "the backend has no such dtype"
    if "not implemented for 'UInt" in str(error_keeper.error):
        return "excluded", "the operators of PyTorch's own tensors lack wide unsigned dtypes"
    if isinstance(error_keeper.error, Unshared):
        return "excluded", f"uses {_family_of_part(str(error_keeper.error))}"
    message = " ".join(f"{type(error_keeper.error).__name__}: {error_keeper.error}".split())
    if WIDE_INTEGERS.match(message):
        return "excluded", WIDE
    for pattern, reason in EXCLUDED:
        if fnmatch.fnmatchcase(name, pattern):
            return "excluded", reason
    return "failed", message


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tests and prints the figures; returns 1 if a test fails that is not excluded."""
    parser = argparse.ArgumentParser(description="Runs Keras's own tests of its ops on ours.")
    parser.add_argument("tree", type=Path, help="the unpacked source distribution of Keras")
    parser.add_argument("--backend", default="numpy", choices=("numpy", "torch", "mlx"))
    parser.add_argument("--only", default="*", help="a pattern of the names of tests, such as 'ops.nn_test.*'")
    parser.add_argument("--list", action="store_true", help="print every excluded test")
    options = parser.parse_args(arguments)
    ops.set_backend(options.backend)
    if importlib.util.find_spec("ml_dtypes"):  # makes NumPy know the name bfloat16, which the tests use
        importlib.import_module("ml_dtypes")
    Absent.present |= stand_in_modules()
    sys.modules.update({name: module for name, module in Absent.present.items() if name.startswith("jax")})
    sys.meta_path.insert(0, Finder(options.tree, Absent.present))
    passed, reasons, failures = 0, Counter[str](), 0
    for file in FILES:
        for name, case, function in tests_of(importlib.import_module(f"keras.src.{file}")):
            if not fnmatch.fnmatchcase(name, options.only):
                continue
            status, reason = run_test(name, case, function)
            passed, failures = passed + (status == "passed"), failures + (status == "failed")
            reasons.update([reason] * (status == "excluded"))
            if status == "failed" or (options.list and status == "excluded"):
                print(f"{status}: {name}: {reason:.200}", flush=True)
    shared_count = passed + failures
    print(f"{options.backend}: {shared_count + reasons.total()} tests, {shared_count} shared, {passed} passed", end="")
    print(f" ({100 * passed / max(shared_count, 1):.1f} % of the shared)")
    for reason, count in reasons.most_common():
        print(f"  {count:5} excluded: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
