"""What calls give: of functions and classes of the file, of ops, of builtins, of methods of tensors and containers."""

import ast
from abc import abstractmethod
from collections.abc import Callable

from emberharmony.lint.inference.expressions import Expressions, carried
from emberharmony.lint.inference.kinds import BUILTINS, CONTAINER_METHODS, PLAIN_METHODS
from emberharmony.lint.inference.values import (
    LAYER,
    NONE,
    NUMBER,
    OPAQUE,
    STRING,
    Choice,
    Class,
    ClassUnit,
    Derived,
    Env,
    Function,
    FunctionUnit,
    Imported,
    Instance,
    Layer,
    Mapping,
    Other,
    Partial,
    Returning,
    Sequence,
    State,
    Tensor,
    Value,
    element_of,
    join,
    joined,
    same,
)
from emberharmony.lint.settings import Settings
from emberharmony.lint.tiers import Tier

_NESTED = 5  # calls followed into functions not analysed yet
FORWARD = ("call", "forward", "__call__")


class Arguments:
    """The arguments of one call."""

    __slots__ = ("env", "keywords", "node", "positional", "starred")

    def __init__(self, node: ast.expr, env: Env, positional: list[Value]) -> None:
        self.node = node
        self.env = env
        self.positional = positional
        self.keywords: dict[str, Value] = {}
        self.starred = False

    def first(self) -> Value:
        """Return the first positional argument, None where there is none."""
        return self.positional[0] if self.positional else None

    def everything(self) -> list[Value]:
        """Return all arguments."""
        return [*self.positional, *self.keywords.values()]

    def but_first(self) -> "Arguments":
        """Return the arguments without the first: those of a callback."""
        rest = Arguments(self.node, self.env, self.positional[1:])
        rest.keywords = self.keywords
        return rest


class Calls(Expressions):
    """Evaluates calls."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.nested = 0
        self._by_callee: dict[type, Callable[[Value, Arguments], Value]] = {
            Imported: self._call_imported,
            Function: self._call_function,
            Class: self._call_class,
            Instance: self._call_instance,
            Partial: lambda callee, given: self.apply(callee.function, given),  # type: ignore[union-attr]
            Derived: self._call_derived,
            Returning: lambda callee, given: callee.result,  # type: ignore[union-attr]
            Choice: lambda callee, given: joined([self.apply(one, given) for one in callee.options]),  # type: ignore[union-attr]
            Layer: self._call_layer,
            Other: lambda callee, given: callee if callee is not OPAQUE else None,
        }

    @abstractmethod
    def analyse(self, unit: FunctionUnit) -> None:
        """Analyse the body of a function."""

    @abstractmethod
    def grown(self, container: Sequence | Mapping) -> None:
        """Note that a container holds something new."""

    def _Call(self, node: ast.Call, env: Env) -> Value:
        function = node.func
        base: Value = None
        if type(function) is ast.Attribute:
            base = self.evaluate(function.value, env)
            if isinstance(base, Tensor | Sequence | Mapping):
                given = self._arguments(node, env)
                return self._container_method(base, function.attr, given)
            callee = self.attribute(base, function)
            self.values[function] = callee
        else:
            callee = self.evaluate(function, env)
            if callee is None and type(function) is ast.Name:
                bound, _ = self.lookup(function.id, env)
                if not bound and function.id in BUILTINS:
                    return self._call_builtin(BUILTINS[function.id], function.id, self._arguments(node, env))
        given = self._arguments(node, env)
        if callee is None:
            return self._call_unknown(base, given)
        return self.apply(callee, given)

    def _arguments(self, node: ast.Call, env: Env) -> Arguments:
        given = Arguments(node, env, [self.evaluate(one, env) for one in node.args])
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, env)
            if keyword.arg is not None:
                given.keywords[keyword.arg] = value
        given.starred = any(type(one) is ast.Starred for one in node.args)
        return given

    def apply(self, callee: Value, given: Arguments) -> Value:
        """Return what a call of a value gives."""
        call = self._by_callee.get(type(callee))
        return None if call is None else call(callee, given)

    # Functions and classes of this file

    def _call_function(self, callee: Value, given: Arguments) -> Value:
        assert isinstance(callee, Function)
        unit = callee.unit
        self._pass(unit, [*callee.given, *given.positional], given, skip_first=callee.bound is not None)
        if isinstance(callee.bound, Instance | Class) and unit.owner is not None:
            override = callee.bound.unit.methods.get(unit.name, unit)
            unit = override if override.kind == unit.kind else unit
        return self.result(unit)

    def result(self, unit: FunctionUnit) -> Value:
        """Return what a function gives, analysing it first where that has not been done."""
        if self.unit is not None:
            unit.readers.add(self.unit)
        if unit.declared is None and unit.state is State.NEW and self.nested < _NESTED:
            self.nested += 1
            self.analyse(unit)
            self.nested -= 1
        value = unit.declared
        if value is None:
            value = Sequence(joined(unit.yields)) if unit.yields else joined(unit.returns) if unit.returns else None
        return value.carried(f"`{unit.name}` returns it", unit.node) if isinstance(value, Tensor) else value

    def call_method(self, instance: Instance, name: str, arguments: list[Value], node: ast.expr) -> Value:
        """Return what a method of a class of this file gives; None where there is none of that name."""
        unit = instance.unit.method(name)
        if unit is None:
            return None
        return self._call_function(Function(unit, instance), Arguments(node, Env(None, self.unit), arguments))

    def _pass(self, unit: FunctionUnit, positional: list[Value], given: Arguments, skip_first: bool) -> None:
        """Tell a function what it is called with."""
        spec = unit.node.args
        names = [one.arg for one in (*spec.posonlyargs, *spec.args)]
        if skip_first:
            names = names[1:]
        if not given.starred:
            for name, value in zip(names, positional, strict=False):
                self._give(unit, name, value)
            if spec.vararg is not None and len(positional) > len(names):
                self._give(unit, spec.vararg.arg, Sequence(joined(positional[len(names) :])))
        for name, value in given.keywords.items():
            self._give(unit, name, value)

    def _give(self, unit: FunctionUnit, name: str, value: Value) -> None:
        if isinstance(value, Tensor):
            value = value.carried(f"`{unit.name}` is called with it as `{name}`", value.node)
        if name not in unit.given:
            unit.given[name] = value
            changed = value is not None
        else:
            old = unit.given[name]
            new = join(old, value)
            changed = not same(old, new)
            unit.given[name] = new
        if changed and unit.state is not State.NEW:
            self.dirty[unit] = None

    def _call_class(self, callee: Value, given: Arguments) -> Value:
        assert isinstance(callee, Class)
        unit = callee.unit
        if unit.is_tensor:
            return Tensor(Tier.B, f"`{unit.node.name}` is a subclass of a tensor type", given.node)
        start = unit.method("__init__") or unit.method("__new__")
        if start is not None:
            self._pass(start, given.positional, given, skip_first=True)
        elif unit.is_record:
            self._fill(unit, given)
        return Instance(unit)

    def _fill(self, unit: ClassUnit, given: Arguments) -> None:
        fields = [name for one in reversed(unit.lineage()) for name in one.fields]
        for name, value in (*zip(fields, given.positional, strict=False), *given.keywords.items()):
            if name not in unit.declared:
                self.learn(unit, name, carried(value, given.node, f"a field of `{unit.node.name}`"))

    def _call_instance(self, callee: Value, given: Arguments) -> Value:
        assert isinstance(callee, Instance)
        names = FORWARD if callee.unit.is_module else ("__call__",)
        for name in names:
            unit = callee.unit.method(name)
            if unit is not None:
                return self._call_function(Function(unit, callee), given)
        return self._call_layer(callee, given) if callee.unit.is_module else None

    def _call_layer(self, callee: Value, given: Arguments) -> Value:
        tensors = [one for one in given.everything() if isinstance(one, Tensor)]
        if tensors:
            return tensors[0].carried("a layer is called with it, and gives a tensor", given.node)
        return Tensor(Tier.C, "a layer gives a tensor", given.node)

    def _call_unknown(self, base: Value, given: Arguments) -> Value:
        """A method or layer that is not in sight, called with a tensor inside a module class."""
        inside = self.unit is not None and self.unit.owner is not None and self.unit.owner.is_module
        tensor = given.first()
        if inside and isinstance(tensor, Tensor) and (base is None or isinstance(base, Instance | Sequence)):
            return Tensor(Tier.C, "called with a tensor inside a module class", given.node, tensor)
        return None

    # Imported functions

    def _call_imported(self, callee: Value, given: Arguments) -> Value:
        assert isinstance(callee, Imported)
        origin = callee.origin
        kind = self.kinds.returned(origin)
        if kind == "tensor":
            node = given.node
            if isinstance(node, ast.Call) and node.args and self.kinds.is_elementwise(origin):
                self.hint(node.args[0], given.env, f"handed to `{origin}`")
            return Tensor(Tier.A, f"`{origin}` returns a tensor", given.node)
        if kind == "tensors":
            return Sequence(Tensor(Tier.B, f"`{origin}` returns tensors", given.node))
        if kind in _SIMPLE:
            self._contradict_numbers(kind, given)
            return _SIMPLE[kind]
        if kind == "layer":
            return LAYER
        special = getattr(self, f"_special_{kind}", None)
        return None if special is None else special(origin, given)

    def _contradict_numbers(self, kind: str, given: Arguments) -> None:
        """What `math.f(x)` is given, a convention must not call a tensor."""
        if kind == "number" and isinstance(given.node, ast.Call):
            for one in given.node.args:
                if type(one) is ast.Name and given.env.vars.get(one.id, NONE) is None:
                    self.contradict(one.id)

    def _special_argument(self, origin: str, given: Arguments) -> Value:
        return element_of(given.first()) if origin.endswith(("choice", "heappop")) else given.first()

    def _special_cast(self, origin: str, given: Arguments) -> Value:
        node = given.node
        return self.annotations.resolve(node.args[0], given.env) if isinstance(node, ast.Call) and node.args else None

    def _special_partial(self, origin: str, given: Arguments) -> Value:
        callee = given.first()
        if isinstance(callee, Function):
            offset = callee.bound is not None
            self._pass(callee.unit, [*callee.given, *given.positional[1:]], given, skip_first=offset)
            return Function(callee.unit, callee.bound, (*callee.given, *given.positional[1:]))
        return Partial(callee)

    def _special_reduce(self, origin: str, given: Arguments) -> Value:
        elements = element_of(given.positional[1]) if len(given.positional) > 1 else None
        start = given.positional[2] if len(given.positional) > 2 else elements
        result = self._callback(given.first(), [join(start, elements), elements], given)
        return join(start, result)

    def _special_sequence(self, origin: str, given: Arguments) -> Value:
        return self._call_builtin("sequence", "list", given)

    def _special_mapping(self, origin: str, given: Arguments) -> Value:
        return self._call_builtin("mapping", "dict", given)

    def _special_defaultdict(self, origin: str, given: Arguments) -> Value:
        factory = given.first()
        node = given.node
        if factory is None and isinstance(node, ast.Call) and node.args and type(node.args[0]) is ast.Name:
            return Mapping(element={"list": Sequence(items=[]), "set": Sequence(items=[])}.get(node.args[0].id, NUMBER))
        return Mapping(element=self._callback(factory, [], given))

    def _special_counter(self, origin: str, given: Arguments) -> Value:
        return Mapping(element=NUMBER)

    def _special_chain(self, origin: str, given: Arguments) -> Value:
        return Sequence(joined([element_of(one) for one in given.positional]))

    def _special_flatten(self, origin: str, given: Arguments) -> Value:
        return Sequence(element_of(element_of(given.first())))

    def _special_repeat(self, origin: str, given: Arguments) -> Value:
        return Sequence(carried(given.first(), given.node))

    def _special_pairwise(self, origin: str, given: Arguments) -> Value:
        return Sequence(Sequence(element_of(given.first())))

    def _special_zip(self, origin: str, given: Arguments) -> Value:
        return self._call_builtin("zip", "zip", given)

    def _special_filter(self, origin: str, given: Arguments) -> Value:
        return self._call_builtin("filter", "filter", given)

    def _special_starmap(self, origin: str, given: Arguments) -> Value:
        rows = element_of(given.positional[1]) if len(given.positional) > 1 else None
        items = rows.items if isinstance(rows, Sequence) and rows.items is not None else []
        return Sequence(self._callback(given.first(), items, given))

    def _special_binary(self, origin: str, given: Arguments) -> Value:
        tensors = [one for one in given.positional if isinstance(one, Tensor)]
        return tensors[0] if tensors and STRING not in given.positional else None

    _special_unary = _special_binary

    def _special_transform(self, origin: str, given: Arguments) -> Value:
        function = given.first()
        if function is None and not given.positional:  # @vmap(in_axes=0)
            return Partial(None)
        return Derived(origin.rpartition(".")[2], function)

    def _special_callback(self, origin: str, given: Arguments) -> Value:
        """`ops.map(f, xs)`, `ops.scan(f, ...)`: functions handed to ops are called with tensors."""
        last = origin.rpartition(".")[2]
        tensor = Tensor(Tier.B, f"`{origin}` calls it with tensors", given.node)
        for one in given.positional:
            if isinstance(one, Function) and last != "cond":
                spec = one.unit.node.args
                self._callback(one, [tensor] * len(spec.args), given)
        if last == "cond":
            return joined([self._callback(one, [], given) for one in given.positional[1:3]])
        return Tensor(Tier.B, f"`{origin}` returns tensors", given.node)

    def _call_derived(self, callee: Value, given: Arguments) -> Value:
        assert isinstance(callee, Derived)
        inner = self.apply(callee.function, given)
        if callee.kind in ("grad", "jacobian", "hessian"):
            return Tensor(Tier.B, f"what `{callee.kind}` makes gives gradients", given.node)
        if callee.kind == "value_and_grad":
            return Sequence(items=[inner, Tensor(Tier.B, "a gradient", given.node)])
        return inner

    def _callback(self, function: Value, values: list[Value], given: Arguments) -> Value:
        return self.apply(function, Arguments(given.node, given.env, values))

    # Builtins

    def _call_builtin(self, kind: str, name: str, given: Arguments) -> Value:
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        result: Value = getattr(self, f"_builtin_{kind}")(name, given)
        return result

    def _builtin_range(self, name: str, given: Arguments) -> Value:
        if isinstance(given.node, ast.Call):
            for one in given.node.args:
                if type(one) is ast.Name:
                    self.contradict(one.id)
        return Sequence(NUMBER)

    def _builtin_sequence(self, name: str, given: Arguments) -> Value:
        value = given.first()
        if not given.positional:
            return Sequence(items=[])
        if isinstance(value, Sequence):
            return Sequence(items=[*value.items]) if value.items is not None else Sequence(value.element)
        return Sequence(element_of(value))

    def _builtin_zip(self, name: str, given: Arguments) -> Value:
        return Sequence(Sequence(items=[element_of(one) for one in given.positional]))

    def _builtin_enumerate(self, name: str, given: Arguments) -> Value:
        return Sequence(Sequence(items=[NUMBER, element_of(given.first())]))

    def _builtin_map(self, name: str, given: Arguments) -> Value:
        values = [element_of(one) for one in given.positional[1:]]
        node = given.node
        if given.first() is None and isinstance(node, ast.Call) and node.args and type(node.args[0]) is ast.Name:
            kind = BUILTINS.get(node.args[0].id, "unknown")
            return Sequence(_SIMPLE.get(kind))
        return Sequence(carried(self._callback(given.first(), values, given), node))

    def _builtin_filter(self, name: str, given: Arguments) -> Value:
        element = element_of(given.positional[1]) if len(given.positional) > 1 else None
        self._callback(given.first(), [element], given)
        return Sequence(element)

    def _builtin_sum(self, name: str, given: Arguments) -> Value:
        return element_of(given.first(), "the sum of its parts", given.node)

    def _builtin_extreme(self, name: str, given: Arguments) -> Value:
        if len(given.positional) > 1:
            return joined(given.positional)
        return element_of(given.first(), f"the {name} of its parts", given.node)

    def _builtin_arithmetic(self, name: str, given: Arguments) -> Value:
        tensors = [one for one in given.positional if isinstance(one, Tensor)]
        if not tensors:
            return NUMBER if given.first() is NUMBER else None
        return Sequence(tensors[0].carried("`divmod` of it", given.node)) if name == "divmod" else tensors[0]

    def _builtin_next(self, name: str, given: Arguments) -> Value:
        return element_of(given.first())

    def _builtin_mapping(self, name: str, given: Arguments) -> Value:
        first = given.first()
        mapping = Mapping()
        if isinstance(first, Mapping):
            mapping = Mapping(dict(first.by_key), first.element)
            mapping.key = first.key
        elif isinstance(first, Sequence) and isinstance(first.element, Sequence):
            pair = first.element
            mapping.put(None, pair.items[1] if pair.items is not None and len(pair.items) == 2 else pair.element)
        for key, value in given.keywords.items():
            mapping.put(key, carried(value, given.node))
        return mapping

    def _builtin_getattr(self, name: str, given: Arguments) -> Value:
        node = given.node
        if not (isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant)):
            return None
        attribute = ast.Attribute(node.args[0], str(node.args[1].value), ast.Load())
        return self.attribute(given.first(), ast.copy_location(attribute, node))

    def _builtin_super(self, name: str, given: Arguments) -> Value:
        owner = None if self.unit is None else self.unit.owner
        if owner is None:
            return None
        above = ClassUnit(owner.node)
        above.bases, above.is_module, above.foreign = owner.bases, owner.is_module, owner.foreign
        return Instance(above)

    # Methods of tensors and containers

    def _container_method(self, base: Value, name: str, given: Arguments) -> Value:
        if isinstance(base, Tensor):
            return self._tensor_method(base, name, given)
        assert isinstance(base, Sequence | Mapping)
        before = base.element
        result = (
            _mapping_method(base, name, given) if isinstance(base, Mapping) else _sequence_method(base, name, given)
        )
        if not same(before, base.element):
            self.grown(base)
        return result

    def _tensor_method(self, base: Tensor, name: str, given: Arguments) -> Value:
        if name in PLAIN_METHODS or name.startswith("is_"):
            return NUMBER
        function = given.node.func if isinstance(given.node, ast.Call) else None
        if isinstance(function, ast.Attribute):
            attribute = self.attribute(base, function)
            if isinstance(attribute, Other):  # t.size()
                return attribute
            if attribute is None and type(function.value) is ast.Name and self._contradicted(function.value.id):
                return None
        result = base.carried(f"`.{name}()` of a tensor", given.node)
        return Sequence(result) if name in CONTAINER_METHODS else result

    def _contradicted(self, name: str) -> bool:
        return self.unit is not None and name in self.unit.contrary


_SIMPLE: dict[str, Value] = {
    "number": NUMBER,
    "bool": NUMBER,
    "dtype": NUMBER,
    "shape": NUMBER,
    "string": STRING,
    "none": NONE,
    "other": OPAQUE,
}


def _sequence_method(base: Sequence, name: str, given: Arguments) -> Value:
    values = [carried(one, given.node) for one in given.positional]
    if name in ("append", "appendleft", "add", "insert", "push"):
        base.add(values[-1] if values else None)
        return NONE
    if name in ("extend", "update", "extendleft"):
        base.add(element_of(values[0]) if values else None)
        return NONE
    if name in ("pop", "popleft", "get", "__next__"):
        return base.element
    if name in ("index", "count", "sort", "reverse", "remove", "clear", "discard"):
        return NUMBER
    return base if name in ("copy", "union", "intersection", "difference", "__iter__") else None


def _mapping_method(base: Mapping, name: str, given: Arguments) -> Value:
    values = [carried(one, given.node) for one in given.positional]
    node = given.node
    key = (
        node.args[0].value
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        else None
    )
    if name == "items":
        return Sequence(Sequence(items=[base.key, base.element]))
    if name == "values":
        return Sequence(base.element)
    if name == "keys":
        return Sequence(base.key)
    if name in ("get", "pop"):
        held = base.by_key.get(key, base.element) if key is not None else base.element
        return join(held, values[1]) if len(values) > 1 else held
    if name == "setdefault":
        if len(values) > 1:
            base.put(key, values[1])
        return base.by_key.get(key, base.element)
    if name == "popitem":
        return Sequence(items=[base.key, base.element])
    if name == "update":
        for one in values:
            base.put(None, one.element if isinstance(one, Mapping) else None)
        for keyword, value in given.keywords.items():
            base.put(keyword, carried(value, node))
        return NONE
    return base if name == "copy" else None
