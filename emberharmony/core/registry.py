"""The registry of ops: one `OpSpec` for each declaration, from which dispatch, protocol, docs and checks derive."""

import importlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from emberharmony.core.code_flags import VARIADIC
from emberharmony.core.deferred import Deferred
from emberharmony.core.named_tuple import Record

if TYPE_CHECKING:
    from typing import Literal

    from emberharmony.core.op_code import prologue
else:
    prologue = Deferred("emberharmony.core.op_code.prologue")

_ROLES = ("Tensors", "TensorLike", "Operand", "DTypeLike", "Callable")
_INTEGERS = frozenset(("int", "Sequence[int]", "Sequence[Sequence[int]]", "tuple[int, int]", "Axis", "Shape"))
_WHOLE = _INTEGERS | {"SpatialPadding", "None"}
"""The parts of the annotations of options that are integers or sequences of them, or words in their place."""
EMPTY = object()
REFUSED = {
    "all": (),
    "numeric": ("bool",),
    "real": ("complex",),
    "real numeric": ("bool", "complex"),
    "integer": ("bool", "float", "complex"),
    "integer or boolean": ("float", "complex"),
}
"""What an op may take, in the words of the array API standard, and the kinds of dtypes that it refuses.

"real" is not a word of the standard: it takes booleans too.
"""


class Facts(Record):
    """What a declaration says of an op besides its signature, as in `@op(elementwise=True, gradient="zero")`.

    Each fact is said here once. Whatever depends on one asks `spec.facts` when it needs it, so that an op that is
    declared later, in a notebook or by a plug-in, counts too: batching, blocks of Dask, gradients, `autocast`, checks.

    Attributes:
        elementwise: whether the result is one tensor, each element of which depends on the elements of the tensors at
            one place only; so blocks, and the slices of `vmap`, may be computed together or alone.
        along: the axes of its first tensor that the op needs whole, while it treats what lies along them alike at all
            places: "axis" for its argument of this name, "axes" if it is a reduction over that argument and has
            `keepdims`, or "matrix" for the last two axes; "" for others.
        takes: the dtypes that it is defined for, a word of `REFUSED`; others raise a `DTypeError`. All arguments are
            operands, which become tensors of one dtype before a backend's function runs. "" if the function sees to it.
        gives: the dtype of the result: "float" if integers and booleans become the default float first, "bool", or
            "real" for the real counterpart of a complex dtype; "" for the dtype of the operands.
        gradient: "zero" if the derivative is zero wherever it exists, as that of integers and booleans is, of which it
            need not be said; "" if there is a rule, or a body.
        autocast: the dtype in which the op computes in an `autocast` block: "half" for products, which add in float32,
            "float32" for what overflows easily in half precision or adds many numbers; "" for that of its arguments.
        finite: "yes" if the op makes no NaN and no infinity of finite numbers, so that its results need no check, as
            integers and booleans need none; "gradient" if only its gradients make none; "no" if it does although the
            others of its category do not (`transforms/checks/safe.py`); "" otherwise.
        reads: whether the body of a composite reads values on the host, which no compiled program has: "data" if it
            computes from all values of its tensors there, so that the op does not exist on a library that computes
            later, unless that defines it; "host" if it cannot do without some values, such as an option; "checks" if
            it only refuses wrong ones where they are at hand; "" if it reads none.
        view: whether the results are elements of the arguments as they are, which a library may share without reading.
    """

    elementwise: bool = False
    along: "Literal['', 'axis', 'axes', 'matrix']" = ""
    takes: str = ""
    gives: "Literal['', 'float', 'bool', 'real']" = ""
    gradient: "Literal['', 'zero']" = ""
    autocast: "Literal['', 'half', 'float32']" = ""
    finite: "Literal['', 'yes', 'gradient', 'no']" = ""
    reads: "Literal['', 'data', 'host', 'checks']" = ""
    view: bool = False

    @property
    def refuses(self) -> tuple[str, ...]:
        """The kinds of dtypes for which the op raises a `DTypeError`."""
        return REFUSED[self.takes] if self.takes else ()


NONE = Facts()
"""The facts of an op whose declaration says none."""

_KNOWN: dict[tuple[tuple[str, object], ...], Facts] = {(): NONE}
_WORDS: dict[str, tuple[object, ...]] = {
    "elementwise": (True,),
    "along": ("axis", "axes", "matrix"),
    "takes": tuple(REFUSED),
    "gives": ("float", "bool", "real"),
    "gradient": ("zero",),
    "autocast": ("half", "float32"),
    "finite": ("yes", "gradient", "no"),
    "reads": ("data", "host", "checks"),
    "view": (True,),
}


def facts_of(name: str, declared_facts: dict[str, object]) -> Facts:
    """Returns the `Facts` with the values that a declaration gives; the same object for the same values.

    Raises:
        ValueError: if it says an unknown fact, or something unknown of one.
    """
    fact_items = tuple(declared_facts.items())
    facts = _KNOWN.get(fact_items)
    if facts is None:
        for fact, word in fact_items:
            if fact not in _WORDS:
                raise ValueError(f"op {name!r} says the fact {fact!r}; the facts are {', '.join(_WORDS)}")
            if word not in _WORDS[fact]:
                words_text = " or ".join(map(repr, _WORDS[fact]))
                raise ValueError(f"op {name!r} says {fact}={word!r}; it is {words_text}, or left out")
        if declared_facts.get("gives") == "bool" or declared_facts.get("takes", "") in (
            "integer",
            "integer or boolean",
        ):
            declared_facts = declared_facts | {"gradient": "zero", "finite": "yes"}
        facts = _KNOWN[fact_items] = Facts(**declared_facts)  # type: ignore[arg-type]
    return facts


class OpParameter:
    """One parameter of an op: its name, how it is passed, and its role, which says how dispatch converts it.

    `cast` says that the argument becomes a tensor of the dtype in the argument `dtype`, `unpaired` that a pair of real
    tensors is refused, and `whole` that it is an integer or a sequence of integers.
    """

    __slots__ = (
        "annotation",
        "cast",
        "default",
        "keyword_only",
        "name",
        "optional",
        "role",
        "unpaired",
        "variadic",
        "whole",
    )

    def __init__(
        self, name: str, annotation: object, default: object, *, keyword_only: bool = False, variadic: bool = False
    ) -> None:
        annotation_text = annotation if isinstance(annotation, str) else repr(annotation)
        self.name, self.default, self.keyword_only, self.variadic = name, default, keyword_only, variadic
        self.annotation = annotation_text
        self.cast, self.unpaired = "CastTensorLike" in annotation_text, "ComplexTensorLike" in annotation_text
        self.whole = _WHOLE.issuperset(annotation_text.split(" | "))
        self.role = next((role for role in _ROLES if role in annotation_text), "Value")
        # A tensor with the default None is still required: the op's error says what the call means in other libraries.
        self.optional = "None" in annotation_text or (default is None and self.role == "Value")

    @property
    def is_tensor(self) -> bool:
        """Whether the argument is a single tensor."""
        return self.role in ("TensorLike", "Operand") and not self.variadic


class OpSpec:
    """The declaration of one op, with what is derived from it: parameters, body, category.

    `declared` is the function as it was written, with a body for a composite and `...` for a primitive. `function` is
    the one that users call. `body` runs a composite: it is `composed`, or `composed` wrapped. `facts` is what the
    declaration says of the op.
    """

    __slots__ = (
        "_body",
        "_composed",
        "_composite",
        "_parameters",
        "_place",
        "aliases",
        "declared",
        "facts",
        "function",
        "name",
    )

    def __init__(self, name: str, declared: FunctionType, facts: Facts = NONE) -> None:
        self.name, self.declared, self.facts = name, declared, facts
        self._parameters: tuple[OpParameter, ...] | None = None
        self._composite: bool | None = None
        self._place: str | None = None
        self._body: Callable[..., Any] | None = None
        self._composed: Callable[..., Any] | None = None
        self.aliases: tuple[str, ...] = ()
        self.function: FunctionType = declared

    @property
    def category(self) -> str:
        """The last part of the name of the module that declares the op, without `_ops`."""
        return self.declared.__module__.rpartition(".")[2].removesuffix("_ops")

    @property
    def category_path(self) -> str:
        """The path of the category in each folder that has a file for it: `logic/bitwise`, or `math`."""
        if self._place is None:
            self._place = "/".join([*self.declared.__module__.split(".")[2:-1], self.category])
        return self._place

    @property
    def returns(self) -> str:
        """The annotation of the result, as text."""
        return str(self.declared.__annotations__.get("return", "Tensor"))

    @property
    def composite(self) -> bool:
        """Whether the declaration has a body; otherwise the op is a primitive."""
        if self._composite is None:
            self._composite = not _is_ellipsis(self.declared)
        return self._composite

    @property
    def composed(self) -> Callable[..., Any]:
        """The body as it was written; where the facts say what it takes, operands are promoted or refused before."""
        if self._composed is None:
            self._composed = (
                prologue.with_promoted_operands(self.declared, self.facts) if self.facts.takes else self.declared
            )
        return self._composed

    @property
    def body(self) -> Callable[..., Any]:
        """The function that runs a composite where a backend does not define it."""
        return self.composed if self._body is None else self._body

    @body.setter
    def body(self, function: Callable[..., Any]) -> None:
        self._body = function

    @property
    def parameters(self) -> tuple[OpParameter, ...]:
        """The parameters; read from the declaration on first use, because a program uses few of all ops."""
        if self._parameters is None:
            self._parameters = _parameters_of(self.declared)
        return self._parameters

    @property
    def takes_callable(self) -> bool:
        """Whether the op calls a function that the user gives, whose exceptions must pass through unchanged."""
        return any(p.role == "Callable" for p in self.parameters)

    def __repr__(self) -> str:
        op_kind = "composite" if self.composite else "primitive"
        return f"OpSpec({self.name!r}, {op_kind}, category={self.category!r})"


OPS: dict[str, OpSpec] = {}
"""All declared ops by name."""

ALIASES: dict[str, str] = {}
"""The op's name for each alias."""


def complete() -> ModuleType:
    """Imports the declarations, which fill `OPS`, and returns the module `ops`.

    A program may ask for a backend before it imports `ops`.
    """
    return importlib.import_module("emberharmony.ops")


def functions_by_module() -> dict[str, dict[str, FunctionType]]:
    """Returns the ops and their aliases by the module that declares them, and by name."""
    functions_by_module: dict[str, dict[str, FunctionType]] = {}
    for op_name, spec in OPS.items():
        module_name = spec.declared.__module__
        if module_name not in functions_by_module:
            functions_by_module[module_name] = {}
        functions_by_module[module_name][op_name] = spec.function
    for op_name, target in ALIASES.items():
        spec = OPS[target]
        functions_by_module[spec.declared.__module__][op_name] = spec.function
    return functions_by_module


def _parameters_of(declared: FunctionType) -> tuple[OpParameter, ...]:
    declared_code = declared.__code__
    variable_names, annotations = declared_code.co_varnames, declared.__annotations__
    positional_names = variable_names[: declared_code.co_argcount]
    defaults = (EMPTY,) * (len(positional_names) - len(declared.__defaults__ or ())) + (declared.__defaults__ or ())
    parameters = [
        OpParameter(name, annotations.get(name, ""), default)
        for name, default in zip(positional_names, defaults, strict=True)
    ]
    keyword_end = declared_code.co_argcount + declared_code.co_kwonlyargcount
    if declared_code.co_flags & VARIADIC:
        parameters.append(
            OpParameter(
                variable_names[keyword_end], annotations.get(variable_names[keyword_end], ""), EMPTY, variadic=True
            )
        )
    default_by_keyword = declared.__kwdefaults__ or {}
    parameters += [
        OpParameter(name, annotations.get(name, ""), default_by_keyword.get(name, EMPTY), keyword_only=True)
        for name in variable_names[declared_code.co_argcount : keyword_end]
    ]
    return tuple(parameters)


def _ellipsis_codes() -> frozenset[bytes]:
    def docstring_only() -> None:
        """Documented."""

    def bare_ellipsis() -> None: ...

    return frozenset((docstring_only.__code__.co_code, bare_ellipsis.__code__.co_code))


_ELLIPSIS = _ellipsis_codes()


def _is_ellipsis(declared: FunctionType) -> bool:
    """Whether the body is `...` alone. It compiles to the same bytes as an empty body."""
    code = declared.__code__
    return code.co_code in _ELLIPSIS and all(
        const is None or const is Ellipsis or const == declared.__doc__ for const in code.co_consts
    )


def register(name: str, declared: FunctionType, facts: Facts = NONE) -> OpSpec:
    """Adds a declaration and returns its `OpSpec`; the same module may declare a name again, as a reload does.

    Raises:
        ValueError: if another module declares the name already.
    """
    earlier_spec = OPS.get(name)
    if earlier_spec is not None and earlier_spec.declared.__module__ != declared.__module__:
        raise ValueError(f"op {name!r} is declared in {earlier_spec.declared.__module__} and in {declared.__module__}")
    OPS[name] = spec = OpSpec(name, declared, facts)
    return spec


def register_alias(name: str, function: Callable[..., Any]) -> None:
    """Makes `name` an alias of the op that `function` dispatches."""
    spec = OPS[function.__name__]
    ALIASES[name] = spec.name
    spec.aliases = (*spec.aliases, name)
