"""Functions compiled by `torch.compile`: as a whole if possible, else in parts, else not at all.

`torch.compile` keeps what it compiles by the code object of the outermost function. Once it has 8 versions of it, it
runs this code uncompiled, for every function that has it, and with `fullgraph=True` it raises an error only after the
function has run, so that a second try draws other random numbers. All objects that are no functions, such as modules,
share one code object of PyTorch's, and all closures of one `def` share theirs. So each gets a function of its own
around it: one with a new code object for an object, and one code object for all functions of a `def` that close over
the same model, until PyTorch has used up its versions. It would take the shapes of a second model for shapes that vary.
"""

import functools
import inspect
import itertools
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from emberharmony.backend.torch.device_ops import PLACEMENT
from emberharmony.backend.torch.flow.guards import needed_guards
from emberharmony.backend.torch.random_ops import STREAM
from emberharmony.backend.torch.tracing import is_watched
from emberharmony.core import op_globals, selection
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.state.checked_mode import checking
from emberharmony.core.trees.nodes import OF_CLASSES

if TYPE_CHECKING:
    from emberharmony.backend.torch.flow import attention_fusion
else:
    attention_fusion = Deferred("emberharmony.backend.torch.flow.attention_fusion")

for _function in OF_CLASSES:
    # torch.compiler.assume_constant_result does the same, but it imports torch._dynamo, which takes seconds.
    vars(_function)["_dynamo_marked_constant"] = True

F = TypeVar("F", bound=Callable[..., Any])
_WHOLE, _IN_PARTS, _NOT = range(3)
_LOCK = threading.Lock()


class _State:
    """Counts the running calls of functions that are compiled in parts.

    While there are any, transforms run uncompiled. Otherwise torch.compile could compile only the function inside a
    transform, and would treat its traced tensors as plain ones.
    """

    in_parts = 0


def make_traceable(transform: F) -> F:
    """Returns a transform that torch.compile traces completely, with all functions that it calls, or not at all."""

    @functools.wraps(transform)
    def call_traceably(*args: Any, **kwargs: Any) -> Any:
        if _State.in_parts:
            return torch._dynamo.disable(transform)(*args, **kwargs)  # type: ignore[no-untyped-call]
        return transform(*args, **kwargs)

    return call_traceably  # type: ignore[return-value]


class _Entries:
    """The ops that guarded ops read while a function is compiled as a whole, as attributes named by kind.

    torch.compile compiles a function again when a dict gets another key, but not when a class gets another attribute.
    """


class _Whole(threading.local):
    """The kind of the ops with which this thread calls a function that is compiled as a whole, else None."""

    kind: str | None = None


class _Composite:
    """The override that ops in the body of a composite read while `autocast` is traced; None elsewhere."""

    def __init__(self) -> None:
        self.entry: Any = None  # torch.compile would compile again once the attribute of a class became one of its own


_WHOLE_CALL, _COMPOSITE = _Whole(), _Composite()


def _whole_call_kind() -> str | None:
    return _WHOLE_CALL.kind


vars(_whole_call_kind)["_dynamo_marked_constant"] = True


def _innermost_override() -> Any:
    """Returns the entry of the innermost override, a tuple that begins with its ops, or None.

    torch.compile cannot trace how an override is found, so it takes the ops of the call. This is right if a function is
    compiled as a whole, because no block can begin or end in it, and `ops.compile` compiles it for one backend and for
    one kind of ops. A function that is compiled in parts, or by `torch.compile` alone, breaks the graph here.
    """
    if is_traced_whole():
        return _COMPOSITE.entry or getattr(_Entries, _whole_call_kind())  # type: ignore[arg-type]
    return selection.override_entry()


def is_traced_whole() -> bool:
    """Returns whether torch.compile is tracing a function as a whole, for `ops.compile` and while ops are guarded."""
    return torch.compiler.is_compiling() and _whole_call_kind() is not None


def call_with_own_ops(bound: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls a function with the ops of a backend, in a way that torch.compile can trace, unlike a block."""
    outer_entry, _COMPOSITE.entry = _COMPOSITE.entry, (bound,)
    try:
        return function(*args, **kwargs)
    finally:
        _COMPOSITE.entry = outer_entry


def _make_ops_traceable(bound: Any) -> str:
    """Makes the ops of an override traceable by torch.compile, and returns the name of their kind."""
    variant_name = f"{bound.backend.prefix}{bound.variant}"
    if variant_name not in vars(_Entries):
        bound.compile_all()  # because torch.compile cannot trace the first call of an op
        setattr(_Entries, variant_name, (bound,))
        op_globals.publish(override=_innermost_override)
    return variant_name


def call_whole(bound: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function that is compiled as a whole with the ops of a backend, while these are overridden."""
    outer_kind, _WHOLE_CALL.kind = _WHOLE_CALL.kind, _make_ops_traceable(bound)
    try:
        return function(*args, **kwargs)
    finally:
        _WHOLE_CALL.kind = outer_kind


_COUNT = itertools.count()
_CODES: "weakref.WeakKeyDictionary[Any, dict[tuple[CodeType, str], CodeType]]" = weakref.WeakKeyDictionary()
"""By the model that functions close over, if any, by their code and the kind of ops, the code of their entries.

So functions of one `def` with one model share what is compiled.
"""


def _entry_function(fn: Callable[..., Any], code: CodeType | None = None) -> Callable[..., Any]:
    """Returns a function that calls `fn`, with this code or a new one.

    torch.compile keeps what it compiles by the code object. After 8 versions it runs this code uncompiled, whoever
    calls it, and with `fullgraph=True` it raises an error for that when the function has already run. All objects that
    are called, such as modules, would have the code of one function of PyTorch, and functions of one `def` have theirs.
    """
    if inspect.isgeneratorfunction(fn):
        return fn  # Dynamo would run it to its end

    def entry(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    # The name is new too, because PyTorch notes by names which numbers change between calls.
    entry.__code__ = code or entry.__code__.replace(co_name=f"compiled_{next(_COUNT)}")
    return entry


def _shared_entry(fn: Callable[..., Any], variant: str, spent: CodeType | None = None) -> Callable[..., Any]:
    """Returns an entry with one code object for the functions that one `def` makes with one model and kind of ops.

    The code is not `spent`, which has all its versions.
    """
    if not isinstance(fn, FunctionType):
        return _entry_function(fn)
    code_by_function = _CODES.setdefault(_model_of(fn), {})
    known_code = code_by_function.get((fn.__code__, variant))
    entry = _entry_function(fn, None if known_code is spent else known_code)
    code_by_function[fn.__code__, variant] = entry.__code__
    return entry


def _model_of(fn: FunctionType) -> Any:
    """Returns the first object that a function closes over and that can be called, such as a module; else its code."""
    for closure_cell in fn.__closure__ or ():
        try:
            closed_object = closure_cell.cell_contents
        except ValueError:  # it has not been assigned yet
            continue
        cls = type(closed_object)
        is_hashed_by_identity = cls.__hash__ is object.__hash__  # type: ignore[comparison-overlap]
        if callable(closed_object) and is_hashed_by_identity and cls.__weakrefoffset__ and cls is not FunctionType:
            return closed_object
    return fn.__code__


def _compile_whole(entry: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an entry function compiled as a whole, whose guards check only what can change."""
    return _compile(entry, fullgraph=True, guard_filter_fn=needed_guards)


def _compile_parts(entry: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an entry function compiled in parts, between calls that cannot be compiled."""
    return _compile(entry)


def _compile(entry: Callable[..., Any], fullgraph: bool = False, **options: Any) -> Callable[..., Any]:
    with warnings.catch_warnings():
        # The first call imports the compiler, whose own code uses what PyTorch deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled_entry: Callable[..., Any] = torch.compile(
            entry, fullgraph=fullgraph, options={**options, **attention_fusion.OPTIONS}
        )
    return compiled_entry


def _is_compiler_error(error: Exception, way: int) -> bool:
    """Returns whether an error says that Dynamo cannot compile a function in this way, so that nothing has run yet."""
    if isinstance(error, (torch._dynamo.exc.TorchDynamoException, torch._dynamo.exc.FailOnRecompileLimitHit)):
        return True  # the bug may be in the function itself; running it eagerly gives the readable error
    if isinstance(error, AssertionError):  # of Dynamo, or of the function, some of whose parts may have run already
        compiler_file = torch._dynamo.convert_frame.__file__
        traceback_files = (frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__))
        return way == _WHOLE or compiler_file in traceback_files
    # PyTorch 2.13 raises this after a call in which it compiled nothing, as where Dynamo skips all frames.
    return isinstance(error, RuntimeError) and way == _WHOLE and "no compiled frames" in str(error)


def _is_stop_at_move(error: Exception) -> bool:
    """Returns whether Dynamo stopped at a parameter that moves from another backend, which it cannot trace."""
    frames = getattr(error, "real_stack", None) or ()
    return any(frame.name == Cell._move_slot.__name__ for frame in frames)


class TorchFunction:
    """A function that is compiled as a whole, in parts or not at all; its first calls find out which is possible.

    Args:
        fn: the function.
        bound: the ops of the backend.
        in_transform: returns whether a transform of `torch.func` is running; `torch.compile` cannot run inside one.

    Once it has been compiled as a whole, calls do without the frames that look for another way.
    """

    def __init__(self, fn: Callable[..., Any], bound: Any, in_transform: Callable[[], bool]) -> None:
        self._fn, self._bound, self._in_transform = fn, bound, in_transform
        entry = _shared_entry(fn, bound.variant)
        self._shared_code = entry.__code__ if isinstance(fn, FunctionType) else None
        self._whole_function, self._parts = _compile_whole(entry), _compile_parts(_entry_function(fn))
        self._way, self._is_whole, self._has_moved = _WHOLE, False, False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the function, compiled as far as possible."""
        if self._in_transform() or checking():
            return self._fn(*args, **kwargs)
        if self._is_whole and not (selection.is_overridden() or PLACEMENT.is_overridden or is_watched()):
            STREAM.get()  # as below
            try:
                return self._whole_function(*args, **kwargs)
            except Exception as error:
                if not _is_compiler_error(error, _WHOLE):
                    raise
        if is_watched():
            # torch.compile would translate NumPy calls into PyTorch ops, and silently lose the gradient; uncompiled,
            # such a call raises TracedTensorError.
            with torch._dynamo.config.patch(trace_numpy=False):
                return self._find_way(*args, **kwargs)
        return self._find_way(*args, **kwargs)

    def _find_way(self, *args: Any, **kwargs: Any) -> Any:
        STREAM.get()  # starts it, because Dynamo cannot trace that: it asks the operating system for a seed
        # A function that is compiled in parts would take the ops of an `autocast` block for those of the backend.
        for way in range(self._way, _IN_PARTS if self._bound.variant else _NOT):
            try:
                result = self._run_despite_warnings(way, *args, **kwargs)
            except Exception as error:
                if not _is_compiler_error(error, way):
                    raise
                if not self._has_moved and _is_stop_at_move(error):
                    self._has_moved = True  # by the call below; the next one finds the cells here
                    return self._fn(*args, **kwargs)
                continue
            self._way, self._is_whole = way, way == _WHOLE
            return result
        result = self._fn(*args, **kwargs)
        self._way, self._is_whole = _NOT, False
        return result

    def _run_despite_warnings(self, way: int, *args: Any, **kwargs: Any) -> Any:
        """Runs the function compiled in a way, and again if a warning that is an error ended the compilation.

        Dynamo raises an error of its own in the place of such a warning, before anything has run.
        """
        try:
            return self._run(way, *args, **kwargs)
        except torch._dynamo.exc.TorchDynamoException as error:
            if not isinstance(error.__context__, Warning):
                raise
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._run(way, *args, **kwargs)

    def _run(self, way: int, *args: Any, **kwargs: Any) -> Any:
        if way == _WHOLE:
            if PLACEMENT.is_overridden:
                return PLACEMENT.call_whole(self._run_whole, *args, **kwargs)
            return self._run_whole(*args, **kwargs)
        with _LOCK:
            _State.in_parts += 1
        try:
            # Ops that read values compute with NumPy. torch.compile would translate parts of that into PyTorch ops, and
            # fails for unsigned numbers between two parts (PyTorch 2.13).
            with torch._dynamo.config.patch(trace_numpy=False):
                return self._parts(*args, **kwargs)
        finally:
            with _LOCK:
                _State.in_parts -= 1

    def _run_whole(self, *args: Any, **kwargs: Any) -> Any:
        if not selection.is_overridden() or not self._is_active():
            return self._run_versions(*args, **kwargs)
        return call_whole(self._bound, self._run_versions, *args, **kwargs)

    def _is_active(self) -> bool:
        """Returns whether ops are of the backend and kind for which the function is compiled."""
        bound = selection.active()
        return bound.backend is self._bound.backend and bound.variant == self._bound.variant

    def _run_versions(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._whole_function(*args, **kwargs)
        except torch._dynamo.exc.FailOnRecompileLimitHit:
            if self._shared_code is None:
                raise
        # Perhaps other functions of the same `def` have used up the versions. PyTorch has not run anything yet.
        self._whole_function, self._shared_code = (
            _compile_whole(_shared_entry(self._fn, self._bound.variant, self._shared_code)),
            None,
        )
        return self._whole_function(*args, **kwargs)
