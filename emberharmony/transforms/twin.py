"""Twins: backends that stand for others and tell watchers of the calls of their ops.

A twin is an object of a subclass of the backend's class, with ops of its own. It keeps the fast paths: the native
function is called where it is called otherwise, so the results are the same bits. The nodes of a tape on a twin
remember the module and the op that they belong to, so that the backward pass has both.

A block costs 3 to 5 ms, because it exchanges the code of each op twice; so a loop belongs into one block. The frames of
the running calls would give the module without wrappers of `__call__`, but to read the locals of each frame at each op
would cost more than most ops.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from types import FunctionType
from typing import Any, cast

from emberharmony.core.dispatch import Bound, Fast
from emberharmony.core.registry import OpSpec
from emberharmony.core.selection import _OVERRIDE, active
from emberharmony.core.tracing import TensorProxy
from emberharmony.transforms.traced_tensor import TracedTensor
from emberharmony.transforms.watchers import (
    THREADS,
    WATCHER,
    Pulled,
    WatchedCall,
    tell_watchers,
    values_of,
    watchers,
    watchers_in,
)

_RESULTS = ("Tensor", "Result", "HostArray")
"""Words in the annotation of the result of an op that computes something."""

_OTHERS = ("eval", "synchronize", "host_call")
"""Other ops that do."""

_NONE: dict[str, Any] = {}

PLAIN, GRAPH, TAPE = range(3)
"""How a twin computes gradients: as its backend does; so that nodes of the library's graph can be looked at; by the
tape."""

_LOCK = threading.Lock()

_Pull = Callable[[Any, Any], Any]


def _telling_function(
    spec: OpSpec,
    backend: Any,
    function: Callable[..., Any],
    wrap: Callable[[Any], Any],
    *,
    traced: bool = False,
    otherwise: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Returns the implementation of an op that tells the watchers.

    Args:
        spec: the op.
        backend: the twin.
        function: the implementation.
        wrap: makes tensors of native scalars.
        traced: whether the arguments may be traced by a tape.
        otherwise: the function that runs if this one raises an error, because it refuses some arguments.
    """
    tensor_type, op_name, new_object = backend.tensor_type, spec.name, object.__new__
    threads, override = THREADS, _OVERRIDE.get

    # A call of an op in a training step takes some microseconds, so this function calls as few others as it can.
    def call_and_tell(*args: Any, **kwargs: Any) -> Any:
        thread = threads.here
        if thread.telling:
            return function(*args, **kwargs)
        override_entry = override()
        called_watchers = (
            override_entry[WATCHER:]
            if override_entry is not None and override_entry[1] is None
            else watchers_in(override_entry)
        )
        if not called_watchers:
            return function(*args, **kwargs)
        calls = thread.calls
        watched_call = new_object(WatchedCall)
        watched_call.spec = spec
        watched_call.backend = backend
        watched_call.args, watched_call.kwargs = _untraced_arguments(args, kwargs) if traced else (args, kwargs)
        watched_call.path = thread.path
        watched_call.outer = calls[-1] if calls else None
        watched_call.depth = len(calls)
        watched_call.gradient_of = thread.gradient_of
        watched_call.seconds = watched_call.started = 0.0
        watched_call.kept = {}
        thread.telling = True
        try:
            for watcher in called_watchers:
                watcher.before(watched_call)
        except Exception as error:
            error.of_watcher = True  # type: ignore[attr-defined]
            raise
        finally:
            thread.telling = False
        calls.append(watched_call)
        try:
            watched_call.started = perf_counter()
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                if otherwise is None or hasattr(error, "of_watcher"):
                    raise
                result = otherwise(*args, **kwargs)
            if result.__class__ is not tensor_type:
                result = wrap(result)
            watched_call.seconds = perf_counter() - watched_call.started
        except BaseException as error:
            watched_call.seconds = perf_counter() - watched_call.started
            del calls[watched_call.depth :]
            if isinstance(error, Exception):
                tell_watchers(called_watchers, "on_error", watched_call, error)
            raise
        calls.pop()
        thread.last = op_name
        thread.telling = True
        try:
            for watcher in called_watchers:
                watcher.after(watched_call, values_of(result) if traced else result)
        except Exception as error:
            error.of_watcher = True  # type: ignore[attr-defined]
            raise
        finally:
            thread.telling = False
            watched_call.args, watched_call.kwargs = (), _NONE
        return result

    return call_and_tell


def _untraced_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return values_of(args), {name: values_of(value) for name, value in kwargs.items()}


class NodeNumbers:
    """The numbers of the nodes of a tape on a twin: each remembers the op and the module that it belongs to."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._places: list[tuple[str, str, str, Any]] = []

    def __next__(self) -> int:
        thread = THREADS.here
        user_line_mark = None
        for watcher in watchers_in(_OVERRIDE.get()):
            if watcher.pulls:
                user_line_mark = watcher.line_mark()
                break
        places = self._places
        places.append(
            (thread.last, thread.path, thread.calls[0].spec.name if thread.calls else thread.last, user_line_mark)
        )
        return len(places) - 1

    def watched_pull(self, pull: _Pull) -> _Pull:
        """Returns a function that computes the gradients of a node, for one backward pass."""
        called_watchers = watchers()
        asking_watchers = [watcher for watcher in called_watchers if watcher.pulls]
        if not asking_watchers:
            return partial(self._pull_at_place, pull)
        return partial(self._pull_and_tell, pull, asking_watchers, len(asking_watchers) == len(called_watchers))

    def _pull_at_place(self, pull: _Pull, gradients: Any, node: Any) -> Any:
        """Returns the gradients of a node, while calls say which op and module it belongs to."""
        thread = THREADS.here
        op, path = thread.gradient_of, thread.path
        thread.gradient_of, thread.path, _, _ = self._places[node[0]]
        try:
            return pull(gradients, node)
        finally:
            thread.gradient_of, thread.path = op, path

    def _pull_and_tell(
        self, pull: _Pull, gradient_watchers: Sequence[Any], quiet: bool, gradients: Any, node: Any
    ) -> Any:
        """Returns the gradients of a node, and tells them to the watchers of gradients.

        Args:
            pull: computes the gradients.
            gradient_watchers: the watchers of gradients.
            quiet: whether there are no others.
            gradients: the gradients of results, by the keys of these.
            node: the node.
        """
        thread = THREADS.here
        node_number = node[0]
        op_place = self._places[node_number]
        asking_watchers = (
            []
            if thread.telling
            else [watcher for watcher in gradient_watchers if watcher.wants_gradients_of(op_place[0])]
        )
        pulled_op = None
        if asking_watchers:
            gradient_keys = (
                [node_number] if node_number in gradients else [(node_number, i) for i in range(len(node[3]))]
            )
            pulled_op = Pulled(
                op_place, self._backend, node, [gradients[key] for key in gradient_keys if key in gradients]
            )
        was_telling = thread.telling
        # Watchers of gradients alone need no calls of the ops of the rule, but an outer tape needs their names.
        # So does the graph of the library, if it differentiates what the tape computes.
        thread.telling = was_telling or (quiet and thread.graph is None and not _is_nested(node, gradients))
        try:
            parent_gradients = self._pull_at_place(pull, gradients, node)
        finally:
            thread.telling = was_telling
        if pulled_op is not None:
            pulled_op.gradients = [gradient for _, _, gradient in parent_gradients]
            tell_watchers(asking_watchers, "on_pull", pulled_op)
        return parent_gradients


def _is_nested(node: Any, gradients: dict[Any, Any]) -> bool:
    """Returns whether an outer tape traces what the gradients of a node are computed of."""
    operand_values = [*node[2], *(node[3] if isinstance(node[3], (list, tuple)) else (node[3],)), *gradients.values()]
    return not {TracedTensor, list}.isdisjoint(map(type, operand_values))


def _identity(result: Any) -> Any:
    return result


def program(columns: Any) -> Any:
    """Stands for `Backend.run_update` and `Backend.apply_rule`, by which optimizers step, as if these were an op.

    Args:
        columns: the gradients, the parameters, and the tensors in the states of these.
    """


PROGRAM = OpSpec("program", cast("FunctionType", program))


def _is_watched(spec: OpSpec) -> bool:
    """Returns whether watchers see an op: neither a transform, whose functions call ops, nor a query of a tensor.

    Queries are those for a dtype, a shape or a device.
    """
    if spec.name in _OTHERS:
        return True
    if spec.category == "transforms":
        return False
    return spec.takes_callable or any(class_name in spec.returns for class_name in _RESULTS)


class Twin:
    """The part of a twin's class that stands in front of the class of its backend."""

    wrapped: Any
    mode: int
    _implementations: dict[OpSpec, Callable[..., Any]]
    _opened: dict[OpSpec, Callable[..., Any]]
    wrap: Any

    is_twin = True

    @property
    def without_watchers(self) -> Any:
        """The backend that the twin stands for."""
        return self.wrapped

    def implementation(self, spec: OpSpec) -> Callable[..., Any]:
        """Returns the implementation of the backend as a function that tells the watchers.

        Transforms, which take functions and return functions, are not told; the ops that those functions call are.
        """
        implementation = self._implementations.get(spec)
        if implementation is None:
            implementation = super().implementation(spec)  # type: ignore[misc]
            if _is_watched(spec):
                implementation = self._telling_implementation(spec, implementation)
            self._implementations[spec] = implementation
        return implementation

    def _telling_implementation(self, spec: OpSpec, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns an implementation that reports its calls to watchers, and keeps the fast path of the op."""
        telling_function = _telling_function(spec, self, function, self.wrap)
        fast_form = getattr(function, "__fast__", None)
        if fast_form is not None and not fast_form.arguments:  # whose native function watchers could not call as the op
            telling_native_function = _telling_function(spec, self, fast_form.native, self.wrap, otherwise=function)
            telling_function.__fast__ = Fast(telling_native_function, fast_form.when, fast_form.weak, fast_form.plain)  # type: ignore[attr-defined]
        return telling_function

    def body_of(self, spec: OpSpec) -> Callable[..., Any]:
        """Returns the body of a composite, which a tape opens, as a function that tells the watchers."""
        body = self._opened.get(spec)
        if body is None:
            body = super().body_of(spec)  # type: ignore[misc]
            if _is_watched(spec):
                body = _telling_function(spec, self, body, _identity, traced=True)
            self._opened[spec] = body
        return body

    @property
    def runs_programs(self) -> bool:
        """Whether no watcher wants the calls of the ops of a program."""
        return all(watcher.takes_programs(self) for watcher in watchers())

    def run_update(self, update: Any, columns: Sequence[Sequence[Any]]) -> Any:
        """Returns what a program computes, as one call; None if the ops have to be called, or a watcher wants it."""
        run_update = super().run_update  # type: ignore[misc]
        return self._run_as_program(lambda: run_update(update, columns), columns)

    def evaluate(self, tensors: list[Any]) -> None:
        """Computes tensors by an op, which watchers see."""
        active().eval(tensors)

    def can_overwrite(self, update: Any) -> bool:
        """Returns False: watchers are given the results, and may keep the inputs."""
        return False

    def apply_rule(self, rule: Callable[..., Any], *arguments: Any) -> Any:
        """Returns what the rule of an optimizer computes, as one call unless a watcher wants those of its ops."""
        rule_result = None
        if self.runs_programs and not THREADS.here.telling:
            rule_result = self._run_as_program(lambda: rule(*arguments), arguments[:3])
        return rule(*arguments) if rule_result is None else rule_result

    def _run_as_program(self, run: Callable[[], Any], columns: Sequence[Any]) -> Any:
        """Returns what a function computes, as one call; None if a watcher wants the calls of its ops instead."""
        thread = THREADS.here

        def run_quietly(_: Any) -> Any:
            was_telling, thread.telling = thread.telling, True
            try:
                return run()
            finally:
                thread.telling = was_telling

        program_results = _telling_function(PROGRAM, self, run_quietly, _identity)(columns)
        if program_results is None or thread.telling:
            return program_results
        thread.telling = True
        try:
            return program_results if all(watcher.accepts(program_results, self) for watcher in watchers()) else None
        finally:
            thread.telling = False

    def node_numbers(self) -> NodeNumbers:
        """Returns the numbers of the nodes of a new tape."""
        return NodeNumbers(self)

    def run_taped(self, fn: Callable[..., Any], tensors: Sequence[Any]) -> Any:
        """Returns what a function of traced tensors returns while a tape records it."""
        thread = THREADS.here
        thread.taping += 1
        try:
            return fn(*tensors)
        finally:
            thread.taping -= 1

    def compile_function(self, fn: Callable[..., Any], *engine: Any) -> Callable[..., Any]:
        """Returns `fn` itself, because the calls of a compiled function cannot be seen; watchers get a note."""
        function_name = getattr(fn, "__qualname__", type(fn).__name__)

        def run_as_is(*args: Any, **kwargs: Any) -> Any:
            tell_watchers(watchers(), "on_note", f"{function_name}() runs uncompiled while its ops are observed")
            return fn(*args, **kwargs)

        return run_as_is


def twin_of(backend: Any, mode: int = PLAIN) -> Any:
    """Returns the twin of a backend; there are at most three for each backend object.

    Args:
        backend: a backend, or the twin of one.
        mode: how gradients are computed.
    """
    if isinstance(backend, Twin) and backend.mode >= mode:
        return backend
    plain_backend = backend.without_watchers
    cls = type(plain_backend)
    if mode == GRAPH and not plain_backend.has_nodes:
        mode = TAPE
    if mode == TAPE and all(getattr(cls, name) is method for name, method in _tape_methods(cls).items()):
        mode = PLAIN
    twins = plain_backend.__dict__.setdefault("_twins", {})
    if mode not in twins:
        with _LOCK:  # another thread may have made it meanwhile
            twins[mode] = twins.get(mode) or _new_twin(plain_backend, mode)
    return twins[mode]


def _tape_methods(kind: type[Any]) -> dict[str, Any]:
    method_by_name: dict[str, Any] = kind.tape_methods()
    return method_by_name


def _watched_gradient_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method `gradients` that tells the watchers the values and the gradients."""

    def gradients(self: Any, fn: Any, primals: Any, constant: bool = False) -> Any:
        values, derivatives = method(self, fn, primals, constant)
        asking_watchers = [watcher for watcher in watchers() if watcher.pulls]
        if asking_watchers and not THREADS.here.telling:
            tell_watchers(asking_watchers, "on_derivative", values, derivatives, self)
        return values, derivatives

    return gradients


def _graph_watched_gradient_method(by_tape: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method `gradients` of the library, if watchers can look at the nodes of its graph.

    Args:
        by_tape: the method by which the tape computes the gradients otherwise: within another gradient too.
    """

    def gradients(self: Any, fn: Any, primals: Any, constant: bool = False) -> Any:
        thread = THREADS.here
        if thread.taping or thread.graph is not None or thread.telling or not self.keeps_nodes(primals):
            return by_tape(self, fn, primals, constant)
        called_watchers = [watcher for watcher in watchers() if watcher.graphs]

        def run_and_tell(*leaves: Any) -> Any:
            outputs = list(fn(*leaves))
            tell_watchers(called_watchers, "on_graph", outputs[0], self)
            return outputs

        thread.graph = {}
        try:
            return super(Twin, self).gradients(run_and_tell, primals, constant)
        finally:
            graph, thread.graph = thread.graph, None
            for notes in graph.values():
                for note in filter(None, notes.values()):  # nodes that stay refer to them
                    note.clear()

    return gradients


class _Graphed:
    """The part of a twin's class in front of that of a backend whose library and the tape both compute gradients."""

    def is_traced(self, x: Any) -> bool:
        """Returns whether the tape or the library differentiates with respect to a tensor."""
        return bool(x.wants_derivative if isinstance(x, TensorProxy) else super().is_traced(x))  # type: ignore[misc]

    def may_outlive_transforms(self, tensor: Any) -> bool:
        """Returns whether a cell may keep a tensor after the transforms that are running."""
        return not isinstance(tensor, TensorProxy) and bool(super().may_outlive_transforms(tensor))  # type: ignore[misc]

    def custom_vjp(self, forward: Any, backward: Any, primals: Sequence[Any]) -> Any:
        """Returns `forward(*primals)` with `backward` as its derivative."""
        if any(isinstance(primal, TensorProxy) for primal in primals):
            return _tape_methods(type(self))["custom_vjp"](self, forward, backward, primals)
        return super().custom_vjp(forward, backward, primals)  # type: ignore[misc]


def _new_twin(backend: Any, mode: int) -> Any:
    """Returns a new twin, which shares all attributes of the backend but its ops."""
    cls = type(backend)
    class_namespace: dict[str, Any] = {"__module__": cls.__module__}
    bases: tuple[type, ...] = (Twin, cls)
    tape_method_by_name = _tape_methods(cls)
    if mode == GRAPH:
        bases = (Twin, _Graphed, cls)
        class_namespace |= {name: method for name, method in tape_method_by_name.items() if name not in vars(_Graphed)}
        class_namespace["gradients"] = _graph_watched_gradient_method(
            _watched_gradient_method(tape_method_by_name["gradients"])
        )
    elif mode == TAPE:
        class_namespace |= tape_method_by_name | {
            "gradients": _watched_gradient_method(tape_method_by_name["gradients"])
        }
    elif cls.gradients is tape_method_by_name["gradients"]:
        class_namespace["gradients"] = _watched_gradient_method(tape_method_by_name["gradients"])
    twin: Any = object.__new__(type(cls.__name__, bases, class_namespace))
    vars(twin).update({name: value for name, value in vars(backend).items() if not name.startswith("_")})
    twin.wrapped, twin.mode, twin._implementations, twin._opened = backend, mode, {}, {}
    twin.take_prefix()
    twin.bound = Bound(twin)
    return twin
