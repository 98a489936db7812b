"""Resolves names: the bindings of a name, and the dotted origin of an expression (`np.sin` is `numpy.sin`)."""

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

from emberlint.source.imports import origin_base
from emberlint.source.scopes import COMPREHENSIONS, SCOPE_NODES, Binding, Scope, is_inside, unpacked_value
from emberlint.source.tree import Tree

BLOCKED = (ast.stmt, ast.ExceptHandler, ast.match_case)  # the types of nodes of which blocks consist
IMPORTERS = frozenset({"importlib.import_module", "importlib.__import__", "lazy_loader.load", "pytest.importorskip"})
_IMPORTING = frozenset(one.partition(".")[0] for one in IMPORTERS)
TYPING_FLAGS = frozenset({"typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"})
_NAMING = frozenset((ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.BoolOp, ast.NamedExpr))  # may have an origin
_OWN = ("self", "cls")
_DEPTH = 12  # how many aliases of aliases to follow; ends cycles

Block: TypeAlias = tuple[ast.AST | None, str]


class Placed(NamedTuple):
    """A binding with its line and its block."""

    line: int
    block: Block
    binding: Binding


class Names:
    """The scopes and bindings of a module, which tell what each of its names refers to."""

    def __init__(self, tree: Tree, module: str = "", is_package: bool = False) -> None:
        self.tree = tree
        self.package = module if is_package else module.rpartition(".")[0]
        self.root = Scope(tree.module, None)
        self._scopes: dict[ast.AST, Scope] = {tree.module: self.root}
        self._attributes: dict[tuple[ast.AST, str], list[ast.expr]] | None = None
        self._placed: dict[tuple[Scope, str], list[Placed]] = {}
        self._memo: dict[ast.AST, tuple[str, ...]] = {}
        self._bound_names: set[str] = set()  # all names that are bound in any scope
        self._inner_names: set[str] = set()  # names that are bound in a scope inside the module's
        self._tops: set[str] = set()  # the top-level names of the modules imported
        self._valued: list[tuple[str, ast.expr]] = []  # names with the bound values that may have an origin
        # the names bound by imports in any scope, with the top-level modules
        self._sources: dict[str, set[str]] = {"__import__": {"importlib"}}
        self._naming: dict[frozenset[str] | None, set[str]] = {}
        self._functions: set[str] = set()  # the names bound by `def` in any scope
        for node in tree.nodes(ast.Global, ast.Nonlocal):
            scope = self.scope(node)
            scope.declared.update(dict.fromkeys(node.names, type(node).__name__.lower()))
        for target, name, binding in self._bindings():
            self._bind(target, name, binding)

    # Construction of the scopes

    def _bind(self, scope: Scope, name: str, binding: Binding) -> None:
        if scope.declared.get(name) == "global":
            scope = self.root
        elif scope.declared.get(name) == "nonlocal" and scope.parent is not None:
            scope = scope.parent
        self._bound_names.add(name)
        if scope is not self.root:
            self._inner_names.add(name)
        if name in scope.bindings:
            scope.bindings[name].append(binding)
        else:
            scope.bindings[name] = [binding]
        if binding.origin is not None:
            top_name = binding.origin.partition(".")[0]
            self._tops.add(top_name)
            self._sources.setdefault(name, set()).add(top_name)
        elif binding.value is not None and type(binding.value) in _NAMING:
            self._valued.append((name, binding.value))
        elif binding.kind == "function":
            self._functions.add(name)

    def _bindings(self) -> Iterator[tuple[Scope, str, Binding]]:
        tree = self.tree
        for node in tree.nodes(ast.Import):
            for alias in node.names:
                origin = alias.name if alias.asname else alias.name.partition(".")[0]
                yield self.scope(node), alias.asname or origin, Binding("import", alias, origin=origin)
        for import_statement in tree.nodes(ast.ImportFrom):
            origin_prefix = origin_base(import_statement, self.package)
            for alias in import_statement.names:
                yield (
                    self.scope(import_statement),
                    alias.asname or alias.name,
                    Binding("import", alias, origin=f"{origin_prefix}.{alias.name}"),
                )
        for function in tree.nodes(ast.FunctionDef, ast.AsyncFunctionDef):
            yield self.scope(function), function.name, Binding("function", function)
        for class_node in tree.nodes(ast.ClassDef):
            yield self.scope(class_node), class_node.name, Binding("class", class_node)
        for argument in tree.nodes(ast.arg):
            owner = tree.parents[tree.parents[argument]]
            yield self._scope_at(owner), argument.arg, Binding("parameter", argument)
        for name in tree.nodes(ast.Name):
            if type(name.ctx) is not ast.Load:
                yield self._target_scope(name), name.id, self._stored_binding(name)
            elif name.id == "__import__":
                self._tops.add("importlib")
        for handler in tree.nodes(ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
            if handler.name:
                yield self.scope(handler), handler.name, Binding("other", handler)
        for mapping_pattern in tree.nodes(ast.MatchMapping):
            if mapping_pattern.rest:
                yield self.scope(mapping_pattern), mapping_pattern.rest, Binding("other", mapping_pattern)

    def _target_scope(self, name: ast.Name) -> Scope:
        scope = self.scope(name)
        if type(self.tree.parents.get(name)) is ast.NamedExpr:
            while isinstance(scope.node, COMPREHENSIONS) and scope.parent is not None:
                scope = scope.parent
        return scope

    def _stored_binding(self, name: ast.Name) -> Binding:
        parent = self.tree.parents[name]
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return Binding("value", name, parent.value)
        if isinstance(parent, (ast.Tuple, ast.List)):
            return Binding("element", name, unpacked_value(name, parent, self.tree.parents.get(parent)))
        if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)):
            return Binding("element", name)
        return Binding("other", name)

    # Scopes of nodes

    def scope(self, node: ast.AST) -> Scope:
        """Returns the scope in which `node` is evaluated."""
        parents, scopes = self.tree.parents, SCOPE_NODES
        child, ancestor = node, parents.get(node)
        child_scope = None
        while ancestor is not None:
            if type(ancestor) in scopes and is_inside(ancestor, child, child_scope):
                return self._scopes.get(ancestor) or self._scope_at(ancestor)
            child_scope, child, ancestor = child, ancestor, parents.get(ancestor)
        return self.root

    def _scope_at(self, node: ast.AST) -> Scope:
        scope = self._scopes.get(node)
        if scope is None:
            scope = self._scopes[node] = Scope(node, self.scope(node))
        return scope

    def lookup(self, name: ast.Name) -> tuple[Scope, list[Binding]] | None:
        """Returns the scope that binds a name and its bindings there, or None for a builtin or unknown name."""
        return self._lookup(name.id, self.scope(name)) if name.id in self._bound_names else None

    def _lookup(self, identifier: str, first_scope: Scope) -> tuple[Scope, list[Binding]] | None:
        enclosing_scope: Scope | None = first_scope
        while enclosing_scope is not None:
            if enclosing_scope.declared.get(identifier) == "global":
                enclosing_scope = self.root
            bindings = enclosing_scope.bindings.get(identifier)
            if bindings is not None and (enclosing_scope is first_scope or not enclosing_scope.is_class):
                return enclosing_scope, bindings
            enclosing_scope = enclosing_scope.parent
        return None

    def bindings(self, name: ast.Name) -> list[Binding]:
        """Returns the bindings that may be in effect where `name` is read."""
        identifier = name.id
        if identifier not in self._inner_names:
            module_bindings = self.root.bindings.get(identifier, [])
            if len(module_bindings) < 2:
                return module_bindings
        own_scope = self.scope(name)
        scope_bindings = self._lookup(identifier, own_scope)
        if scope_bindings is None:
            return []
        binding_scope, bindings = scope_bindings
        if len(bindings) == 1 or own_scope is not binding_scope:
            return bindings
        return self._reaching_bindings(binding_scope, name)

    def _reaching_bindings(self, scope: Scope, use: ast.Name) -> list[Binding]:
        """Returns the bindings before a use, without those that a later binding overwrites.

        A later binding overwrites the earlier ones if its block also contains the use.
        """
        enclosing_blocks = {
            self._enclosing_block(ancestor) for ancestor in self.tree.ancestors(use) if isinstance(ancestor, BLOCKED)
        }
        latest_bindings = self._latest_bindings(scope, use.id)
        first_index = bisect_left(latest_bindings, -use.lineno, key=lambda one: -one.line)
        reaching_bindings: list[Binding] = []
        for index in range(first_index if first_index < len(latest_bindings) else 0, len(latest_bindings)):
            reaching_bindings.append(latest_bindings[index].binding)
            if latest_bindings[index].block in enclosing_blocks:
                break
        return reaching_bindings

    def _latest_bindings(self, scope: Scope, name: str) -> list[Placed]:
        cached_bindings = self._placed.get((scope, name))
        if cached_bindings is None:
            cached_bindings = [self._placed_binding(binding) for binding in scope.bindings[name]]
            cached_bindings.sort(key=lambda one: -one.line)
            self._placed[scope, name] = cached_bindings
        return cached_bindings

    def _placed_binding(self, binding: Binding) -> Placed:
        return Placed(
            getattr(binding.node, "lineno", 0), self._enclosing_block(self._enclosing_statement(binding.node)), binding
        )

    def _enclosing_block(self, statement: ast.AST) -> Block:
        """Returns the statement that contains another, and the branch of it that the other is in."""
        return self.tree.parents.get(statement), self._branch_by_statement.get(statement, "")

    @cached_property
    def _branch_by_statement(self) -> dict[ast.AST, str]:
        """The branch (`orelse` or `finalbody`) of each statement that is not in the first branch of its parent."""
        nodes_of = self.tree.nodes
        branching_statements = (*nodes_of(ast.If, ast.Try, ast.TryStar), *nodes_of(ast.For, ast.AsyncFor, ast.While))
        block_names = (
            (branching_statement, name)
            for branching_statement in branching_statements
            for name in ("orelse", "finalbody")
            if getattr(branching_statement, name, None)
        )
        return {
            statement: name
            for branching_statement, name in block_names
            for statement in getattr(branching_statement, name)
        }

    def _enclosing_statement(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, ast.stmt) and node in self.tree.parents:
            node = self.tree.parents[node]
        return node

    # Origins of expressions

    def origin(self, node: ast.expr) -> str | None:
        """Returns the dotted origin of an expression that names something imported, or None."""
        origins = self.origins(node)
        return origins[0] if origins else None

    def origins(self, node: ast.expr) -> tuple[str, ...]:
        """Returns every origin that an expression may have."""
        cached_origins = self._memo.get(node)
        if cached_origins is None:
            self._memo[node] = ()  # ends the recursion: a name defined by itself has no other origin
            cached_origins = self._memo[node] = self._find_origins(node)
        return cached_origins

    def names_leading_to(self, tops: frozenset[str] | None) -> set[str]:
        """Returns the names, and the attributes of `self` as `.x`, that may have an origin in some scope.

        They are bound by an import, or to an expression that starts with such a name. To ask this of the name that an
        expression starts with is much quicker than to look for its origin, and most expressions have none.

        Args:
            tops: The top-level modules of the origins in question; None means any.
        """
        leading_names = self._naming.get(tops)
        if leading_names is None:
            leading_names = self._naming[tops] = self._add_bound_names(
                {name for name, top_names in self._sources.items() if tops is None or not tops.isdisjoint(top_names)}
            )
        return leading_names

    def _add_bound_names(self, names: set[str]) -> set[str]:
        """Returns the given names, and those that are bound to expressions with them."""
        class_bindings = [scope.bindings for scope in self._scopes.values() if scope.is_class]
        names.update([f".{name}" for body in class_bindings for name in names & body.keys()])
        values_by_attribute = self._values_by_attribute().items() if names or self.can_import else ()
        pending_values = [
            *self._valued,
            *((f".{name}", value) for (_, name), values in values_by_attribute for value in values),
        ]
        size_before = -1
        while size_before != len(names):
            size_before = len(names)
            pending_values = [(name, value) for name, value in pending_values if name not in names]
            names.update([name for name, value in pending_values if self.may_have_origin(value, names)])
        return names

    def may_have_origin(self, node: ast.expr, naming: set[str]) -> bool:
        """Returns whether an expression may have an origin, if only the names in `naming` have one."""
        attribute_name = ""
        while isinstance(node, ast.Attribute):
            attribute_name = node.attr
            node = node.value
        if type(node) is ast.Name:
            return node.id in naming or (node.id in _OWN and f".{attribute_name}" in naming)
        if type(node) is ast.Call:
            function = node.func
            if type(function) is not ast.Name:
                return self.can_import
            if function.id == "getattr" and node.args and self.may_have_origin(node.args[0], naming):
                return True
            return self.can_import or function.id in self._functions
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.may_have_origin(node.value, naming)
        if isinstance(node, ast.IfExp):
            return self.may_have_origin(node.body, naming) or self.may_have_origin(node.orelse, naming)
        return isinstance(node, ast.BoolOp) and any(self.may_have_origin(value, naming) for value in node.values)

    def _find_origins(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(node, ast.Name):
            if node.id not in self.names_leading_to(None):
                return ()
            if node.id == "__import__":
                return ("importlib.__import__",)
            bindings = self.bindings(node)
            if len(bindings) == 1:
                return self._origins_of_binding(bindings[0])
            return _distinct_origins(origin for binding in bindings for origin in self._origins_of_binding(binding))
        if isinstance(node, ast.Attribute):
            base_origins = self.origins(node.value)
            if base_origins:
                return tuple([f"{base_origin}.{node.attr}" for base_origin in base_origins])
            if not _is_attribute_of_self(node) or f".{node.attr}" not in self.names_leading_to(None):
                return ()
            stored_values = self.stored_attribute(node)
            imported_origins = self._imported_attribute(node)
            return _distinct_origins(
                (*imported_origins, *(origin for value in stored_values for origin in self.origins(value)))
            )
        if isinstance(node, ast.Call):
            return self._call_origins(node)
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.origins(node.value)
        if isinstance(node, ast.IfExp):
            return _distinct_origins((*self.origins(node.body), *self.origins(node.orelse)))
        if isinstance(node, ast.BoolOp):
            return _distinct_origins(origin for value in node.values for origin in self.origins(value))
        return ()

    def _origins_of_binding(self, binding: Binding) -> tuple[str, ...]:
        if binding.origin is not None:
            return (binding.origin,)
        return self.origins(binding.value) if binding.value is not None and type(binding.value) in _NAMING else ()

    def _call_origins(self, node: ast.Call) -> tuple[str, ...]:
        """Returns the origins of a call that imports, gets an attribute by name, or returns a module."""
        function = node.func
        if isinstance(function, ast.Name) and function.id == "getattr" and len(node.args) >= 2:
            attribute_name = self.constant(node.args[1])
            return (
                tuple(f"{base_origin}.{attribute_name}" for base_origin in self.origins(node.args[0]))
                if attribute_name
                else ()
            )
        imported_origin = self.imported_module(node)
        if imported_origin is not None:
            # __import__("a.b") returns a, import_module("a.b") returns a.b.
            is_import_call = isinstance(function, ast.Name) and function.id == "__import__"
            return (imported_origin.partition(".")[0] if is_import_call else imported_origin,)
        if isinstance(function, ast.Name):
            for binding in self.bindings(function):
                if isinstance(binding.node, ast.FunctionDef):
                    return self._returned_modules(binding.node)
        return ()

    def _returned_modules(self, function: ast.FunctionDef) -> tuple[str, ...]:
        """Returns the modules that a function returns; lazy imports are usually written this way."""
        module_origins: list[str] = []
        for statement in function.body:
            if isinstance(statement, ast.Return) and isinstance(statement.value, (ast.Name, ast.Call)):
                origins = self.origins(statement.value)
                module_origins.extend(
                    origin for origin in origins if "." not in origin or isinstance(statement.value, ast.Call)
                )
        return _distinct_origins(module_origins)

    def imported_module(self, node: ast.Call) -> str | None:
        """Returns the module named by `importlib.import_module("…")`, `__import__("…")` or a lazy loader, or None."""
        function = node.func
        if not (
            isinstance(function, (ast.Name, ast.Attribute))
            and self.may_have_origin(function, self.names_leading_to(_IMPORTING))
        ):
            return None
        module_argument = (
            node.args[0]
            if node.args
            else next((keyword.value for keyword in node.keywords if keyword.arg == "name"), None)
        )
        if module_argument is None or not any(origin in IMPORTERS for origin in self.origins(function)):
            return None
        module_name = self.constant(module_argument)
        return module_name if module_name and not module_name.startswith(".") else None

    @cached_property
    def can_import(self) -> bool:
        """Whether the file may import modules by calls."""
        return not self._tops.isdisjoint(_IMPORTING)

    def owner(self, node: ast.Attribute) -> ast.ClassDef | None:
        """Returns the class whose instance has the attribute `self.x`, or None."""
        if not _is_attribute_of_self(node):
            return None
        return next((ancestor for ancestor in self.tree.ancestors(node) if isinstance(ancestor, ast.ClassDef)), None)

    def stored_attribute(self, node: ast.Attribute) -> list[ast.expr]:
        """Returns the values assigned to `self.x` in its class, or else in its bases in this file.

        In `self.old = self.x` before `self.x = new`, the value comes from a base.
        """
        owner = self.owner(node)
        function = self._enclosing_function(node)
        for class_node in () if owner is None else self._class_and_bases(owner):
            assigned_values = self._values_by_attribute().get((class_node, node.attr), [])
            earlier_values = [
                value
                for value in assigned_values
                if value.lineno <= node.lineno or self._enclosing_function(value) is not function
            ]
            if earlier_values:
                return earlier_values
        return []

    def _enclosing_function(self, node: ast.AST) -> ast.AST | None:
        return next((ancestor for ancestor in self.tree.ancestors(node) if isinstance(ancestor, ast.FunctionDef)), None)

    def _class_and_bases(self, kind: ast.ClassDef) -> list[ast.ClassDef]:
        """Returns a class and its bases in this file, the nearest first."""
        class_and_bases = [kind]
        for class_ in class_and_bases:
            base_names = [base.id for base in class_.bases if isinstance(base, ast.Name)]
            base_nodes = [binding.node for name in base_names for binding in self.root.bindings.get(name, ())]
            class_and_bases.extend(
                node for node in base_nodes if isinstance(node, ast.ClassDef) and node not in class_and_bases
            )
        return class_and_bases

    def is_imported(self, node: ast.Attribute) -> bool:
        """Returns whether `self.x` is bound by an import in the body of the class."""
        return bool(self._imported_attribute(node))

    def _imported_attribute(self, node: ast.Attribute) -> tuple[str, ...]:
        """Returns the origins of the imports in the class body that bind the name of `self.x`."""
        owner = self.owner(node)
        bindings = [] if owner is None else self._scope_at(owner).bindings.get(node.attr, [])
        return tuple(binding.origin for binding in bindings if binding.origin is not None)

    def _values_by_attribute(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
        if self._attributes is None:
            values_by_attribute: dict[tuple[ast.AST, str], list[ast.expr]] = {}
            for assignment in self.tree.nodes(ast.Assign, ast.AnnAssign):
                assignment_targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
                for target in assignment_targets:
                    name = _attribute_name(target, self.tree.parents.get(assignment))
                    if not name or assignment.value is None:
                        continue
                    owner = next(
                        (
                            ancestor
                            for ancestor in self.tree.ancestors(assignment)
                            if isinstance(ancestor, ast.ClassDef)
                        ),
                        None,
                    )
                    if owner is not None:
                        values_by_attribute.setdefault((owner, name), []).append(assignment.value)
            self._attributes = values_by_attribute
        return self._attributes

    # Constants and context

    def constant(self, node: ast.expr, depth: int = 0) -> str | None:
        """Returns the string value of an expression, or None; follows concatenation and names bound once."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left_constant, right_constant = self.constant(node.left, depth), self.constant(node.right, depth)
            return left_constant + right_constant if left_constant is not None and right_constant is not None else None
        if isinstance(node, ast.Name) and depth < _DEPTH:
            bindings = self.bindings(node)
            if len(bindings) == 1 and bindings[0].kind == "value" and bindings[0].value is not None:
                return self.constant(bindings[0].value, depth + 1)
        return None

    def is_typing_only(self, node: ast.AST) -> bool:
        """Returns whether a node is under `if TYPE_CHECKING:`, so that it never runs."""
        child = node
        for ancestor in self.tree.ancestors(node):
            if isinstance(ancestor, ast.If) and child in ancestor.body and self._is_typing_flag(ancestor.test):
                return True
            child = ancestor
        return False

    def _is_typing_flag(self, test: ast.expr) -> bool:
        if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
            return True
        return isinstance(test, ast.Attribute) and self.origin(test) in TYPING_FLAGS


def _is_attribute_of_self(node: ast.Attribute) -> bool:
    """Returns whether an expression is `self.x` or `cls.x`."""
    return isinstance(node.value, ast.Name) and node.value.id in _OWN


def _distinct_origins(origins: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(origins))


def _attribute_name(target: ast.expr, block: ast.AST | None) -> str | None:
    if isinstance(target, ast.Attribute) and _is_attribute_of_self(target):
        return target.attr
    return target.id if isinstance(target, ast.Name) and isinstance(block, ast.ClassDef) else None
