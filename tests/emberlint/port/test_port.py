"""`emberlint port`: what it rewrites, what it leaves and marks, and the command."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from emberlint.cli import main
from emberlint.port import port
from emberlint.port.report import report_lines
from emberlint.port.rewrite import MARK
from tests.emberlint.port.porting import parsed, ported


@pytest.mark.parametrize(
    "before, after",
    [
        ("torch.softmax(x, dim=-1)", "ops.softmax(x, axis=-1)"),
        ("F.softmax(x, dim=-1)", "ops.softmax(x, axis=-1)"),
        ("torch.sum(x, dim=1, keepdim=True)", "ops.sum(x, axis=1, keepdims=True)"),
        ("torch.cat([x, y], dim=0)", "ops.concatenate([x, y], axis=0)"),
        ("torch.clamp(x, 0, 1)", "ops.clip(x, 0, 1)"),
        ("torch.clamp(x, min=0)", "ops.clip(x, x_min=0)"),
        ("torch.zeros(2, 3)", "ops.zeros((2, 3))"),
        ("torch.zeros((2, 3), dtype=torch.float64)", "ops.zeros((2, 3), dtype=ops.float64)"),
        ("torch.arange(0, len(x), 2)", "ops.arange(0, len(x), 2)"),
        ("x.unsqueeze(0).permute(1, 0, 2)", "ops.transpose(ops.expand_dims(x, 0), (1, 0, 2))"),
        ("x.view(-1)", "ops.reshape(x, (-1,))"),
        ("x.reshape((2, -1))", "ops.reshape(x, (2, -1))"),
        ("(x + y).sum(-1)", "ops.sum((x + y), -1)"),
        ("x.std()", "ops.std(x, correction=1)"),
        ("x.to(torch.float32)", "ops.cast(x, ops.float32)"),
        ("torch.sum(x, # why\n    dim=0)", "ops.sum(x, # why\n    axis=0)"),
        ("torch.sum((x), dim=(0))", "ops.sum((x), axis=(0))"),
        ("torch.matmul(torch.sin(x), y)", "ops.matmul(ops.sin(x), y)"),
        ("np.std(x, 0, ddof=1)", "ops.std(x, 0, correction=1)"),
        ("np.zeros((2, 3))", 'ops.zeros((2, 3), dtype="float64")'),
        ("np.zeros((2, 3),)", 'ops.zeros((2, 3), dtype="float64")'),
        ("np.zeros(3, dtype=float)", "ops.zeros(3, dtype=ops.float64)"),
        ("np.array([1.0], dtype=np.float64)", "ops.array([1.0], dtype=ops.float64)"),
        ("np.array(x, np.float64, copy=False)", "ops.convert_to_tensor(x, ops.float64, copy=False)"),
        ("np.empty(3)", 'ops.empty(3, dtype="float64")'),
        ("np.zeros(3, dtype=y)", "ops.zeros(3, dtype=y)"),
        ("np.where(x > 0)", "ops.nonzero(x > 0)"),
        ("a.flatten()", "ops.reshape(a, shape=(-1,), copy=True)"),
        ("torch.max(x, dim=1)[0]", "ops.max(x, axis=1)"),
        ("torch.sort(x, dim=1).indices", "ops.argsort(x, axis=1)"),
        ("x.max(1, keepdim=True).values", "ops.max(x, 1, keepdims=True)"),
        ("x.permute(*y)", "ops.transpose(x, (*y,))"),
        ("x.masked_fill(mask, 0.5)", "ops.where(x2=x, condition=mask, x1=0.5)"),
        ("y.unsqueeze(0).contiguous()", "ops.copy(ops.expand_dims(y, 0))"),
        ("y.detach().cpu()", 'ops.to_device(ops.stop_gradient(y), device="cpu")'),
        ("x.to('cpu')", "ops.to_device(x, 'cpu')"),
        ("x.to(y.device)", "ops.to_device(x, y.device)"),
        ("x.dim(), x.size()", "ops.ndim(x), ops.shape(x)"),
        ("y.expand(2, len(x))", "ops.broadcast_to(y, (2, len(x)))"),
        ("x.expand(*y.shape)", "ops.broadcast_to(x, (*y.shape,))"),
        ("x.expand(max(len(y), len(mask)))", "ops.broadcast_to(x, max(len(y), len(mask)))"),
        ("y.transpose(-1, -2)", "ops.swapaxes(y, -1, -2)"),
        ("x.type(torch.LongTensor)", 'ops.convert_to_tensor(x, ops.int64, device="cpu")'),
        ("x.type(torch.float64)", "ops.cast(x, ops.float64)"),
        ("x[y.type(torch.LongTensor)]", 'x[ops.convert_to_tensor(y, ops.int64, device="cpu")]'),
        ("y.to(torch.float64) * x", "ops.cast(y, ops.float64) * x"),
        ("x.shape == torch.Size([])", "x.shape == tuple([])"),
        ("torch.tensor([1.0, 2.0])", "ops.array([1.0, 2.0])"),
        ("np.clip(x, a_min=0, a_max=1)", "ops.clip(x, x_min=0, x_max=1)"),
        ("np.einsum('ij,jk->ik', x, y)", "ops.einsum('ij,jk->ik', x, y)"),
        ("np.pi * x", "ops.pi * x"),
        ("a.astype(np.float32).sum(axis=0)", "ops.sum(ops.astype(a, ops.float32), axis=0)"),
        ("a.reshape(2, -1)", "ops.reshape(a, (2, -1))"),
        ("np.where(x > 0, é, 0.0), np.sin(x)", "ops.where(x > 0, é, 0.0), ops.sin(x)"),
    ],
)
def test_what_is_exact_is_rewritten(before: str, after: str) -> None:
    if "np." in before or before.startswith("a."):
        head = "import numpy as np\nfrom emberharmony import Tensor, ops\n\n"
        define = "def f(x, y, a: np.ndarray, é):\n    return {}, np.nditer(x)\n"
    else:
        head = "import torch\nimport torch.nn.functional as F\nfrom emberharmony import Tensor, ops\n\n"
        define = "def f(x: torch.Tensor, y, mask):\n    return {}, torch.compile, F.grid_sample\n"
    result = ported(head + define.format(before))
    assert after in result.after
    assert not any(use.native in before for use in result.remaining)


@pytest.mark.parametrize(
    "call, reason",
    [
        ("np.sum(x, out=y)", "no argument like `out=`"),
        ("np.sum(*x)", "known only at run time"),
        ("np.sum(x, **y)", "known only at run time"),
        ("np.sqrt(2.0)", "float32 for Python numbers"),
        ("np.mean([1.0, 2.0])", "float32 for Python numbers"),
        ("np.arange(0.0, 1.0, 0.1)", "name the dtype"),
        ("np.array([1.0, 2.0])", "name the dtype"),
        ("np.zeros(3, dtype=str)", "has no neutral form"),
        ("np.zeros(3, dtype='f4')", "has no neutral form"),
        ("np.nditer(x)", "no op is known"),
        ("np.random.rand(3)", "ops.random.uniform draws other numbers, because no op continues the stream"),
        ("np.linalg.svd(x)", "ops.svd fixes the signs of vectors in another way"),
        ("np.put(x, y, 1)", "ops.set_item returns a new tensor, where the native function writes into its argument"),
        ("np.tril(x)", "ops.tril is not known to give the same values and dtypes for all arguments"),
        ("map(np.sin, x)", "passed as a value"),
        ("f'{np.sin(x)}'", "f-string"),
        ("ops.exp(y).view(y)", "in some libraries only"),
        ("torch.ones(1).to(y)", "in some libraries only"),
        ("torch.max(x, dim=0)", "no parameter `dim`"),
        ("torch.abs(x).expand(-1, 3)", "may be -1"),
        ("torch.abs(x).expand(y)", "may be -1"),
        ("y.transpose(0, 1)", "may be a native tensor"),
        ("torch.Size(x)", "no op is known"),
    ],
)
def test_what_is_not_exact_is_left_and_marked(call: str, reason: str) -> None:
    source = f"import numpy as np\nimport torch\nfrom emberharmony import ops\n\n\ndef f(x, y):\n    return {call}\n"
    result = ported(source)
    assert any(reason in use.reason for use in result.remaining), result
    use = next(use for use in result.remaining if reason in use.reason)
    lines = result.after.splitlines()
    assert lines[use.line - 2].startswith(f"    {MARK} {use.native}: ")
    assert call.partition("(")[0].rpartition(".")[2] in lines[use.line - 1]


@pytest.mark.parametrize(
    "doc, result",
    [
        ('"""Length.\n\n    Returns\n    -------\n    d : float\n        Length.\n    """', "np.sqrt(x)"),
        ('"""Both.\n\n    Returns\n    -------\n    (a, b): (float, float)\n    """', "x, np.sqrt(x)"),
        ('"""Length.\n\n    Returns:\n        NumPy float: the length.\n    """', "np.sqrt(x) if y else x"),
        ('"""Length.\n\n    :rtype: float\n    """', "np.sqrt(x)"),
    ],
    ids=["numpy", "a tuple", "google", "sphinx"],
)
def test_a_result_that_a_docstring_calls_a_number_is_left(doc: str, result: str) -> None:
    source = f"import numpy as np\n\n\ndef length(x, y):\n    {doc}\n    return {result}\n"
    (use,) = ported(source).remaining
    assert "`length` promises a number" in use.reason
    assert not ported(source.replace("float", "float or array")).remaining


def test_a_result_that_an_annotation_calls_a_number_is_left_also_through_a_name() -> None:
    source = "import numpy as np\n\n\ndef f(x) -> float:\n    y = np.sum(x)\n    z = np.abs(y)\n    return z\n"
    result = ported(source)
    assert [use.native for use in result.remaining] == ["numpy.abs"]
    assert not ported(source.replace("float", "np.ndarray")).remaining


def test_an_array_of_a_parameter_that_may_be_none_is_left() -> None:
    source = "import numpy as np\n\n\ndef f(x=None):\n    {}\n    x = np.array(x, dtype=np.float32)\n    return x\n"
    assert any("may be None" in use.reason for use in ported(source.format("pass")).remaining)
    for test in ("if x is None:\n        return 0", "x = [1] if not x else x", "x = [1.0]"):
        assert not ported(source.format(test)).remaining


SOURCE = '''"""Doc."""
import numpy as np
import torch
from numpy.linalg import norm  # lengths


class A:
    @property
    def p(self, x: np.ndarray) -> np.ndarray:
        # a comment
        if np.any(x):
            return x
        elif np.nditer(x):
            return torch.ones(3).view(x)
        return torch.sin(x).unsqueeze(0).contiguous(), norm(x), np.sin(np.foo(x)), x.sum(axis=0), np.sqrt(2.0)
'''


def test_a_second_port_changes_nothing() -> None:
    once = ported(SOURCE)
    twice = ported(once.after)
    assert once.after != SOURCE
    assert twice.after == once.after
    assert twice.ported == ()
    assert [use.native for use in twice.remaining] == [use.native for use in once.remaining]


def test_comments_stay_and_unused_imports_go() -> None:
    after = ported("import numpy as np\n\n\ndef f(x: np.ndarray):\n    return np.sin(x)  # why\n").after
    assert "import numpy" not in after
    assert "# why" in after
    assert "def f(x: Tensor):" in after
    assert after.count("from emberharmony import") == 1
    assert "# lengths" in ported(SOURCE).after


def test_a_name_that_is_bound_to_something_else_is_left() -> None:
    source = "import numpy as np\n\nops = 1\n\n\ndef f(x):\n    return np.sin(x)\n"
    result = ported(source)
    assert "np.sin(x)" in result.after
    assert "bound to something else" in result.remaining[0].reason


def test_a_method_of_pytorch_is_ported_beside_one_of_that_name_with_other_arguments() -> None:
    source = "import torch\n\n\nclass C:\n    def tile(self, x, n):\n        return x.tile(n){}\n"
    assert "ops.tile(x, n)" in ported(source.format("")).after
    assert "n.tile(x, n)" in ported(source.format(", n.tile(x, n)")).after  # which may be the class's own


def test_the_methods_of_a_parameter_without_annotation_are_left_and_listed() -> None:
    source = "import torch\n\n\ndef f(x):\n    return x.view(x), x.sum()\n"
    result = ported(source)
    assert [(use.native, use.line) for use in result.remaining] == [(".view", 7), (".sum", 7)]
    assert result.remaining[1].reason == "`x` may be a native tensor"
    assert result.remaining[1].advice == "annotate it, or write ops.sum"
    assert ported(result.after).after == result.after


@pytest.mark.parametrize(
    "receiver", ["(x + 1)", "(1 - x[0])", "(-x)", "(x > 0)", "x[1:]", "y", "(y * n)", "(n < x)"], ids=str
)
def test_the_methods_of_what_is_computed_from_such_a_parameter_are_listed(receiver: str) -> None:
    source = f"import numpy as np\n\n\ndef f(x, n: int):\n    y = x ** 2\n    return {receiver}.any(axis=0)\n"
    result = ported(source)
    (use,) = result.remaining
    assert (use.native, use.reason) == (".any", f"`{receiver.strip('()')}` may be a native tensor")
    assert use.advice == f"annotate {'it' if receiver == 'y' else 'its names'}, or write ops.any"
    assert ported(result.after).after == result.after


@pytest.mark.parametrize(
    "line",
    [
        "x.copy()",
        "x.count(1)",
        "x.mean(1, 2, 3, 4, 5, 6, 7)",
        "x.no_method()",
        "self.sum()",
        "x.y.sum()",
        "x.sum",
        "(n + 1).sum()",
        "('a' * n).sum()",
        "g(x).sum()",
        "n[0].sum()",
    ],
)
def test_what_may_be_no_method_of_a_tensor_is_not_listed(line: str) -> None:
    source = f"import numpy as np\n\n\nclass C:\n    def f(self, x, n: int):\n        return {line}\n"
    assert not ported(source).remaining
    assert not ported("def f(x):\n    return x.sum()\n").remaining  # no library of arrays
    assert not ported("import numpy as np\n\n\ndef f(x: str):\n    return x.sum()\n").remaining


def test_a_type_that_may_be_one_of_tensors_or_a_dtype_is_left() -> None:
    source = "import torch\n\n\ndef f(x: torch.Tensor, y):\n    return x.type(y)\n"
    assert "x.type(y)" in ported(source).after
    assert "ops.cast(x, y.dtype)" in ported(source.replace("(y)", "(y.dtype)")).after
    assert "ops.cast(x, dtype)" in ported(source.replace("(y)", "(dtype)").replace("y)", "dtype=None)")).after
    tensors = source.replace("(y)", "(dtype)").replace("\n\n\ndef", "\n\ndtype = torch.cuda.FloatTensor\n\n\ndef")
    assert "x.type(dtype)" in ported(tensors).after


def test_only_functions_are_compiled_that_are_no_modules() -> None:
    source = (
        "import torch\n\n\n@torch.compile\ndef f(x):\n    return x\n\n\nclass M(torch.nn.Module):\n    @torch.compile\n"
        "    def forward(self, x):\n        return x\n\n\n"
        "a = torch.compile(f), torch.compile(M()), torch.compile(mode='a')\n"
    )
    result = ported(source)
    assert result.after.count("@ops.compile") == 1
    assert "ops.compile(f), torch.compile(M()), torch.compile(mode='a')" in result.after
    reasons = " ".join(use.reason for use in result.remaining if use.native == "torch.compile")
    assert all(one in reasons for one in ("a method is given its object", "may be a module", "like `mode=`"))
    assert ported(result.after).after == result.after


@pytest.mark.parametrize(
    "returned, is_ported", [("mx.sum(x)", True), ("x * x", True), ("mx.sum(x), x", False), ("g(x)", False)]
)
def test_gradients_of_mlx_are_ported_if_the_function_returns_no_tuple(returned: str, is_ported: bool) -> None:
    source = f"import mlx.core as mx\n\n\ndef f(x):\n    return {returned}\n\n\nh = mx.value_and_grad(f)\n"
    result = ported(source)
    assert ("h = ops.value_and_grad(f)" in result.after) == is_ported
    assert any("may return a tuple" in use.reason for use in result.remaining) != is_ported
    assert "may return a tuple" in ported(source.replace("(f)", "(y)")).after


def test_the_functions_of_mlx_are_ported() -> None:
    result = ported("import mlx.core as xp\n\n\ndef f(x):\n    return xp.sum(x, axis=0), xp.no_such_function(3)\n")
    assert "ops.sum(x, axis=0)" in result.after
    assert [use.native for use in result.remaining] == ["mlx.core.no_such_function"]


def test_numpy_is_host_code_beside_another_library_on_a_second_port_too() -> None:
    values = "torch.sin(x), np.asarray(x.numpy(), dtype=x.dtype)"
    source = f"import numpy as np\nimport torch\n\n\ndef f(x):\n    return {values}\n"
    once = ported(source)
    assert "import torch" not in once.after
    assert "ops.sin(x), np.asarray(ops.to_numpy(x), dtype=x.dtype)" in once.after
    assert ported(once.after).after == once.after
    assert port(parsed(once.after), parsed).after == once.after
    unmarked = port(parsed(source), parsed)
    assert MARK not in unmarked.after
    assert port(parsed(unmarked.after), parsed).after == unmarked.after


def test_a_call_whose_native_error_is_caught_is_left() -> None:
    handler = "    except (ValueError, np.linalg.LinAlgError):\n        return np.sin(x)\n"
    body = f"    try:\n        return np.linalg.inv(x)\n{handler}"
    after = ported(f"import numpy as np\n\n\ndef f(x):\n{body}").after
    assert "return np.linalg.inv(x)" in after
    assert "return ops.sin(x)" in after


def test_a_copy_of_what_may_be_any_list_is_left() -> None:
    body = "    if isinstance(x, (list, np.ndarray)):\n        return np.copy(x)\n    return np.copy(x)\n"
    after = ported(f"import numpy as np\n\n\ndef f(x):\n{body}").after
    assert after.count("np.copy(x)") == 1
    assert after.count("ops.copy(x)") == 1


def test_a_dtype_that_a_native_call_may_be_given_is_left() -> None:
    source = (
        "import torch\n\nKINDS = {'float': torch.float64}\n\n\ndef f(x):\n    return torch.zeros(3, dtype=torch.int32)"
    )
    assert "{'float': ops.float64}" in ported(source + "\n").after
    after = ported(source + ", torch.compile(KINDS)\n").after
    assert "{'float': torch.float64}" in after
    assert "dtype=ops.int32" in after


@pytest.mark.parametrize(
    "call", ["np.sqrt(2.0)", "np.array([1.0, 2.0])", "np.arange(0.0, 1.0, 0.1)", "np.mean([1, 2])"]
)
def test_with_the_default_float_of_numpy_its_calls_on_numbers_are_ported(call: str) -> None:
    source = f"import numpy as np\n\nx = {call}\n"
    assert ported(source).ported == ()
    assert port(parsed(source), parsed, "float64").remaining == ()


def test_carriage_returns_are_kept() -> None:
    after = ported("import numpy as np\r\n\r\n\r\ndef f(x):\r\n    return np.sin(x), np.nditer(x)\r\n").after
    assert after.count("\n") == after.count("\r\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with one file to port, and makes it the current folder."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "a.py").write_text(
        "import numpy as np\n\n\ndef f(x):\n    return np.sin(x), np.nditer(x)\n"
    )
    (tmp_path / "library" / "wrong.py").write_text("import numpy as np\nf(\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["port", *words])


def test_the_command_writes_and_reports(project: Path) -> None:
    result = run("library")
    after = (project / "library" / "a.py").read_text()
    assert result.exit_code == 0
    assert "ops.sin(x)" in after
    assert "1 of 2 native uses ported (50%); 1 of 1 files change" in result.stdout
    assert "library/a.py:6: numpy.nditer: no op is known to equal this call (compose it from ops, or" in result.stdout
    assert MARK not in after
    assert "wrong.py: skipped" in result.stderr
    again = run("--check", "library")
    assert again.exit_code == 0
    assert (project / "library" / "a.py").read_text() == after
    assert [one.name for one in (project / "library").iterdir() if one.name.startswith(".")] == []
    run("--mark", "library")
    assert (project / "library" / "a.py").read_text().count(MARK) == 1
    assert run("--check", "library").exit_code == 0  # which keeps the comments of the port before


def test_annotations_with_the_same_type_are_one_line_and_one_comment() -> None:
    source = "import numpy as np\n\n\ndef f(x: np.random.Generator, y: np.nditer, a: np.flatiter, b: np.flatiter):\n"
    source += "    z: np.random.Generator = x\n"
    result = ported(source)
    assert result.after.count(MARK) == 3
    lines = [one for one in report_lines({"a.py": result}) if "numpy" in one]
    assert lines == [
        "a.py:7: numpy.random.Generator: no type of ops is known to equal it, in 2 annotations: lines 7, 8",
        "a.py:7: numpy.nditer: no type of ops is known to equal it",
        "a.py:7: numpy.flatiter: no type of ops is known to equal it, in 2 annotations: line 7",
    ]


@pytest.mark.parametrize("call", ["np.linalg.svd(x)", "np.random.rand(3)", "np.tril(x)", "torch.manual_seed(0)"])
def test_a_reason_and_its_advice_do_not_contradict_each_other(call: str) -> None:
    (use,) = ported(f"import numpy as np, torch\n\n\ndef f(x):\n    return {call}\n").remaining
    assert (use.advice, "ops." in use.reason) == ("see its docstring", True)


@pytest.mark.parametrize("option", ["--diff", "--check"])
def test_a_dry_run_writes_nothing(project: Path, option: str) -> None:
    before = (project / "library" / "a.py").read_text()
    result = run(option, "library")
    assert result.exit_code == (option == "--check")
    assert ("+    return ops.sin(x), np.nditer(x)" in result.stdout) == (option == "--diff")
    assert (project / "library" / "a.py").read_text() == before


def test_the_report_as_json(project: Path) -> None:
    document = json.loads(run("--check", "--format", "json", "library").stdout)
    (file,) = document["files"]
    assert file["path"] == "library/a.py"
    assert file["changed"] is True
    assert file["ported"] == [{"native": "numpy.sin", "kind": "call", "line": 5}]
    assert [one["native"] for one in file["remaining"]] == ["numpy.nditer"]


def test_the_report_as_html_is_escaped_and_loads_nothing(project: Path) -> None:
    (project / "library" / "b.py").write_text("import numpy as np\n\n\ndef f(x):\n    return np.sum(x, out=x['<b>'])\n")
    page = run("--check", "--format", "html", "library").stdout
    assert "<td>numpy.nditer</td>" in page
    assert "1 of 3 native uses ported" in page
    assert "<b>" not in page
    assert "http" not in page
    assert page.count("<table>") == page.count("</table>") == 2


def test_a_file_that_is_named_is_ported_whatever_its_role(project: Path) -> None:
    (project / "library" / "numpy_backend.py").write_text("import numpy as np\n\n\ndef f(x):\n    return np.sin(x)\n")
    assert "1 of 2 native uses" in run("--check", "library").stdout
    assert "1 of 1 native uses" in run("--check", "library/numpy_backend.py").stdout
