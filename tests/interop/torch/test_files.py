"""Captured modules are read from files without PyTorch, and files that are something else are refused."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, CaptureError, UnsupportedOpError

torch: Any = pytest.importorskip("torch")

from emberharmony.interop.torch.data import graph_to_data
from tests.interop.torch import modules

PROGRAM = """
import sys
sys.modules["torch"] = None
import numpy as np
import emberharmony
net = emberharmony.load_program(sys.argv[1])
np.save(sys.argv[1] + "/found.npy", emberharmony.ops.to_numpy(net(np.load(sys.argv[1] + "/x.npy"))))
"""


@pytest.mark.fresh_process
def test_a_program_runs_where_pytorch_cannot_be_imported(tmp_path: Path) -> None:
    net, x = modules.captured("recurrent"), modules.x(3, 4).numpy()
    net.save(tmp_path)
    np.save(tmp_path / "x.npy", x)
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True, env={"EMBERHARMONY_BACKEND": "numpy"})
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), ops.to_numpy(net(x)), atol=1e-6)


@pytest.mark.parametrize("name", ["norms", "tied", "scalars"])
def test_saved_modules_are_the_same(backend: str, name: str, tmp_path: Path) -> None:
    net = modules.captured(name)
    net.save(tmp_path)
    again = emberharmony.load_program(tmp_path)
    assert {n: type(c) for n, c in again.named_buffers()} == {n: type(c) for n, c in net.named_buffers()}
    assert [n for n, _ in again.named_parameters()] == [n for n, _ in net.named_parameters()]
    for mode, graph in net.graphs.items():
        assert graph_to_data(again.graphs[mode]) == graph_to_data(graph)
    assert again.training == net.training


def test_a_captured_module_is_pickled() -> None:
    net, x = modules.captured("kinks"), modules.x(1, 4).numpy()
    again = pickle.loads(pickle.dumps(net))
    tokens = np.array([[1], [3], [0]])
    np.testing.assert_array_equal(ops.to_numpy(again(x, tokens)), ops.to_numpy(net(x, tokens)))


@pytest.mark.parametrize("name", ["lora", "quantized"])
def test_layers_in_the_place_of_captured_ones_are_saved(backend: str, name: str, tmp_path: Path) -> None:
    net, x, tokens = modules.copy_of("layers"), modules.x(2, 4, 32).numpy(), np.array([[1, 4], [0, 2]])
    if name == "lora":
        nn.add_lora(net, rank=2, dropout=0.5)
        correction = dict(net.named_parameters())["line.lora_b.weight"]
        correction.value = ops.random.normal((32, 2), seed=1)
    else:
        nn.quantize(net, bits=8, group_size=32)
    net.train(False).save(tmp_path)
    again = emberharmony.load_program(tmp_path)
    np.testing.assert_array_equal(ops.to_numpy(again(x, tokens)), ops.to_numpy(net(x, tokens)))
    places = [{n: (type(c), c.trainable) for n, c in m.named_parameters()} for m in (again, net)]
    assert places[0] == places[1]
    assert repr(list(again.members())) == repr(list(net.members()))


def test_loaded_layers_draw_masks_of_their_own(tmp_path: Path) -> None:
    nn.add_lora(modules.copy_of("no_grad"), rank=1, dropout=0.5).save(tmp_path)
    layers: Any = dict(emberharmony.load_program(tmp_path).train().members())
    masked = [ops.to_numpy(layers[name].dropout(np.ones(64, "float32"))) for name in ("a", "b")]
    assert set(masked[0]) == {0.0, 2.0}
    assert not np.array_equal(masked[0], masked[1])


def test_a_layer_that_a_program_cannot_hold_is_named(tmp_path: Path) -> None:
    net = modules.copy_of("no_grad").replace("a", nn.Sequential(nn.Linear(4, 4)))
    with pytest.raises(ArgumentError, match=r"a, a Sequential: put one of Linear, .* in its place"):
        net.save(tmp_path)


def put(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


CALL = ("modes", "train", "calls", 0)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (put("format", value="x"), CaptureError, "is not a program"),
        (put("version", value=99), CaptureError, "version 99"),
        (put("modes", value=[]), CaptureError, "modes"),
        (put(*CALL, "op", value="os.system"), UnsupportedOpError, "lacks os.system"),
        (put(*CALL, "op", value=3), CaptureError, "the operator of call 0"),
        (put(*CALL, "args", value=[{"register": 10**6}]), CaptureError, "call 0"),
        (put(*CALL, "args", value=[{"register": "__import__('os')"}]), CaptureError, "call 0"),
        (put(*CALL, "keywords", value={"x=print(1)": 1}), CaptureError, "call 0"),
        (put(*CALL, "results", value=[]), CaptureError, "call 0"),
        (put("modes", "train", "slots", 1, value=["code", "x", None, []]), CaptureError, "slots"),
        (put("modes", "train", "slots", 1, 1, value="missing"), CaptureError, "no cell 'missing'"),
        (put("modes", "train", "dtypes", 1, value="object"), CaptureError, "dtypes"),
        (put("modes", "train", "outputs", value={"register": 0}), CaptureError, "outputs"),
        (put("modes", "train", "result", value={"leaf": 9}), CaptureError, "structure"),
        (put("modes", "train", "signature", value=None), CaptureError, "signature"),
        (put("cells", value={}), CaptureError, "does not belong"),
        (put("layers", "a", "class", value="Module"), CaptureError, "layer a"),
        (put("layers", "a", "class", value="LayerNorm"), CaptureError, "layer a, a LayerNorm: .*in_features"),
        (put("layers", "a", "in_features", value=5), CaptureError, r"a, a Linear, has .*\(4, 4\)"),
        (put("layers", "a", "bias", value=False), CaptureError, "a, a Linear, has"),
    ],
)
def test_a_changed_program_is_refused(tmp_path: Path, change: Any, error: Any, says: str) -> None:
    modules.captured("no_grad").save(tmp_path)
    data = json.loads((tmp_path / "program.json").read_text())
    change(data)
    (tmp_path / "program.json").write_text(json.dumps(data))
    with pytest.raises(error, match=says):
        emberharmony.load_program(tmp_path)


def test_files_that_are_missing_or_no_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"has no program\.json"):
        emberharmony.load_program(tmp_path)
    (tmp_path / "program.json").write_text("{")
    with pytest.raises(CaptureError, match="is damaged"):
        emberharmony.load_program(tmp_path)
