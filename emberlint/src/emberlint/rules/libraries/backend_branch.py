"""EMB105: code that branches on the name of the active backend."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Safety
from emberlint.rule import Example, Rule
from emberlint.source.backend_name import GETTERS, VARIABLES, BackendNames
from emberlint.source.source_file import SourceFile

LOOKUPS = frozenset({"get", "pop", "setdefault"})
TESTS = frozenset({"startswith", "endswith", "find", "index", "count", "__eq__"})
WORDS = (*GETTERS, *VARIABLES, ".backend()", ".current()", "backend import")
GUIDE = Fix(Safety.GUIDED, "move the difference into an op: a composite that the backends concerned override")


class BackendBranch(Rule):
    """Finds the active backend's name compared, matched, used as an index or tested."""

    code = "EMB105"
    name = "backend-branch"
    message = "{how} the active backend's name, so the code differs between backends"
    why = (
        "A branch on the backend's name puts an implementation in the wrong place: every other backend, including "
        "those of third parties, runs the `else`. Logging the name or setting it is clean."
    )
    min_tier = Tier.B
    VALID = (
        Example("from emberharmony import ops\n\nprint(f'running on {ops.get_backend()}')\n"),
        Example("from emberharmony import ops\n\nbefore = ops.get_backend()\nops.set_backend(before)\n"),
        Example("import matplotlib\n\nif matplotlib.get_backend() == 'agg':\n    pass\n"),
        Example("def f(backend):\n    return backend == 'redis'\n"),
        Example(
            "from emberharmony import ops\n\n"
            "if ops.get_backend() not in ops.available_backends():\n    raise ValueError\n"
        ),
        Example("from emberharmony import ops\n\nlog = {'backend': ops.get_backend()}\n"),
    )
    INVALID = (
        Example("from emberharmony import ops\n\nif ops.get_backend() == 'torch':\n    pass\n"),
        Example("from emberharmony import ops\n\nname = ops.get_backend()\nfast = name in ('mlx', 'torch')\n"),
        Example(
            "from emberharmony import ops\n\nclass A:\n    def __init__(self):\n        self.at = ops.get_backend()\n"
            "\n    def f(self):\n        return 1 if self.at != 'numpy' else 2\n"
        ),
        Example("from emberharmony import ops\n\nmatch ops.get_backend():\n    case 'mlx':\n        pass\n"),
        Example("from emberharmony import ops\n\nEPS = {'numpy': 1e-12, 'torch': 1e-6}[ops.get_backend()]\n"),
        Example("from emberharmony import ops\n\nEPS = {'numpy': 1e-12}.get(ops.get_backend(), 1e-6)\n"),
        Example("from emberharmony.ops import get_backend\n\nif get_backend().lower().startswith('t'):\n    pass\n"),
        Example("import keras\n\nif keras.backend.backend() == 'jax':\n    pass\n"),
        Example("from emberharmony import backend\n\nif backend.current().name == 'mlx':\n    pass\n"),
        Example(
            "from emberharmony import ops\n\ndef f():\n    return ops.get_backend()\n\nif f() == 'mlx':\n    pass\n"
        ),
        Example("import os\n\nif os.environ['KERAS_BACKEND'] == 'torch':\n    pass\n"),
    )

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yields a finding for each place where the name decides the control flow."""
        if not any(file.mentions(word) for word in WORDS):
            return
        backend_names = BackendNames(file)
        for node, use_verb in self._control_flow_uses(file, backend_names):
            is_direct = any(
                isinstance(node, ast.Call) and backend_names.is_backend_name(node) for node in ast.walk(node)
            )
            yield self.finding(file, node, tier=Tier.A if is_direct else Tier.B, how=use_verb, fix=GUIDE)

    def _control_flow_uses(self, file: SourceFile, names: BackendNames) -> Iterator[tuple[ast.expr, str]]:
        for comparison in file.index.nodes(ast.Compare):
            compared_nodes = (comparison.left, *comparison.comparators)
            compares_none = any(
                isinstance(compared_node, ast.Constant) and compared_node.value is None
                for compared_node in compared_nodes
            )
            if (
                not compares_none
                and not any(map(_lists_all_backends, compared_nodes))
                and any(names.is_backend_name(compared_node) for compared_node in compared_nodes)
            ):
                yield comparison, "compares"
        for match in file.index.nodes(ast.Match):
            if names.is_backend_name(match.subject):
                yield match.subject, "matches"
        for subscript in file.index.nodes(ast.Subscript):
            if names.is_backend_name(subscript.slice):
                yield subscript, "indexes by"
        for call in file.index.nodes(ast.Call):
            yield from self._lookup_calls(file, names, call)
        for branch in file.index.nodes(ast.If, ast.While, ast.IfExp):
            if names.is_backend_name(branch.test):
                yield branch.test, "tests"
        for negation in file.index.nodes(ast.UnaryOp):
            if isinstance(negation.op, ast.Not) and names.is_backend_name(negation.operand):
                yield negation, "tests"

    def _lookup_calls(self, file: SourceFile, names: BackendNames, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
        function = call.func
        if isinstance(function, ast.Attribute):
            if function.attr in TESTS and names.is_backend_name(function.value):
                yield call, "tests"
            elif function.attr in LOOKUPS and call.args and names.is_backend_name(call.args[0]):
                yield call, "indexes by"
        elif (
            isinstance(function, ast.Name)
            and function.id == "getattr"
            and any(map(names.is_backend_name, call.args[1:2]))
        ):
            yield call, "indexes by"


def _lists_all_backends(node: ast.expr) -> bool:
    """Returns whether an expression lists all backends: a test whether one of them is there is no branch."""
    if not isinstance(node, ast.Call):
        return False
    function_name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return bool(function_name.endswith("backends"))
