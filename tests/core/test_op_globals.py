"""One module writes into the globals of the ops, and all others ask it to."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import emberharmony
from emberharmony import ops
from emberharmony.core import op_globals
from emberharmony.core.state.commits import commit

PACKAGE = Path(emberharmony.__file__).parent
DOORS = {"publish", "publish_type", "set_flag", "set_flag_steps"}
MAKERS = {"FunctionType", "exec"}
"""What may be given the namespace itself: it becomes the globals of a new function."""


def other_uses(source: str) -> Iterator[ast.expr]:
    """Yields the places that use `op_globals` in another way than to read a name or to call a door."""
    allowed: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == op_globals.__name__:
            assert {alias.name for alias in node.names} <= DOORS
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert not any(alias.name.endswith("op_globals") and alias.asname for alias in node.names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            allowed |= {id(part) for argument in node.args for part in ast.walk(argument)}
        reads = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr != "__dict__"
        if reads and isinstance(node.value, ast.Name):  # type: ignore[union-attr]
            allowed.add(id(node.value))  # type: ignore[union-attr]
        if isinstance(node, ast.Name) and node.id == "op_globals" and id(node) not in allowed:
            yield node


def test_no_other_module_writes_into_the_globals() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{node.lineno}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.name != "op_globals.py" and "op_globals" in (text := file.read_text(encoding="utf-8"))
        for node in other_uses(text)
    ]
    assert not found, f"use op_globals.publish or op_globals.set_flag in {found}"


@pytest.mark.parametrize(
    "source",
    [
        "op_globals.flag = True",
        "op_globals.flag |= True",
        "del op_globals.flag",
        "op_globals.__dict__['flag'] = True",
        "op_globals.__dict__.update(flag=True)",
        "vars(op_globals)['flag'] = True",
        "setattr(op_globals, 'flag', True)",
        "commit([assigned(op_globals, 'flag', True)])",
        "space = op_globals.__dict__",
        "space = op_globals",
    ],
)
def test_each_way_to_write_is_found(source: str) -> None:
    assert list(other_uses(source))


@pytest.mark.parametrize(
    "source",
    [
        "op_globals.publish(flag=True)",
        "op_globals.set_flag('flag', True)",
        "x = op_globals.float32_default",
        "FunctionType(code, op_globals.__dict__, name)",
        "exec(code, op_globals.__dict__, space)",
    ],
)
def test_what_is_allowed_is_not_found(source: str) -> None:
    assert not list(other_uses(source))


def test_core_alone_publishes_no_name_of_a_backend() -> None:
    program = (
        "import emberharmony.core.dispatch, emberharmony.core.selection\n"
        "from emberharmony.core import op_globals\n"
        "names = vars(op_globals)\n"
        "assert 'untransformed' not in names and 'wide_unseen' not in names, names\n"
        "assert not [name for name in names if name.startswith(('numpy', 'torch', 'mlx'))], names\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_flag_must_be_published_before_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError, match="not_published"):
        op_globals.set_flag("not_published", True)
    with pytest.raises(KeyError, match="publish"):  # a function, not a flag
        op_globals.set_flag("publish", True)
    monkeypatch.setattr(op_globals, "tested_flag", None, raising=False)
    op_globals.publish(tested_flag=True)
    op_globals.set_flag("tested_flag", False)
    assert vars(op_globals)["tested_flag"] is False
    commit(op_globals.set_flag_steps("tested_flag", True))
    assert vars(op_globals)["tested_flag"] is True


def test_a_type_is_published_while_all_its_flags_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tested_type", "tested_flag", "other_flag"):
        monkeypatch.setattr(op_globals, name, None, raising=False)
    monkeypatch.setattr(op_globals, "_TYPES", {})
    op_globals.publish(tested_flag=True, other_flag=False)
    op_globals.publish_type("tested_type", dict, "tested_flag", "other_flag")
    assert vars(op_globals)["tested_type"] is None
    for flag, value, expected in [
        ("other_flag", True, dict),
        ("tested_flag", False, None),
        ("other_flag", False, None),
        ("tested_flag", True, None),
        ("other_flag", True, dict),
    ]:
        op_globals.set_flag(flag, value)
        assert vars(op_globals)["tested_type"] is expected


def test_steps_made_before_another_flag_changes_do_not_bring_the_type_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tested_type", "tested_flag", "other_flag"):
        monkeypatch.setattr(op_globals, name, None, raising=False)
    monkeypatch.setattr(op_globals, "_TYPES", {})
    op_globals.publish(tested_flag=False, other_flag=True)
    op_globals.publish_type("tested_type", dict, "tested_flag", "other_flag")
    steps = op_globals.set_flag_steps("tested_flag", True)
    op_globals.set_flag("other_flag", False)
    commit(steps)
    assert vars(op_globals)["tested_flag"] is True
    assert vars(op_globals)["tested_type"] is None


def test_a_float_function_of_integers_follows_the_default_float(backend: str) -> None:
    before = ops.default_float()
    x = ops.convert_to_tensor([1, 2])
    try:
        for name in ("float16", "float32", "float16", "float32"):
            ops.set_default_float(name)
            assert ops.dtype(ops.sin(x)).name == ops.dtype(ops.sqrt(x)).name == name
    finally:
        ops.set_default_float(before)


def test_the_default_float_and_its_flag_change_together() -> None:
    before = ops.default_float()
    try:
        ops.set_default_float("float64")
        assert not op_globals.float32_default
        ops.set_default_float("float32")
        assert op_globals.float32_default
    finally:
        ops.set_default_float(before)
