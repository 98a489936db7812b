"""Checkpoints of every optimizer and wrapper that commit 149b161f has written go on with the steps that it made next.

`tests/optim/resumed/write.py` wrote the files with a checkout of that commit:
`PYTHONPATH=CHECKOUT python tests/optim/resumed/write.py BACKEND`.
"""

import inspect

import numpy as np
import pytest

from emberharmony import io, ops, optim
from emberharmony.optim.wrappers.averaging import Average
from emberharmony.optim.wrappers.wrapper import Wrapper
from tests.optim.resumed.write import FOLDER, STEPS, Training

WRITTEN = ("numpy", "torch", "mlx")
OTHERS = (optim.Optimizer, Wrapper, Average)


def test_every_optimizer_and_wrapper_is_in_the_files() -> None:
    kinds = {kind for _, kind in inspect.getmembers(optim, inspect.isclass)}
    with ops.use_backend("numpy"):
        tested = {type(optimizer) for optimizer in Training().optimizer.values()}
    bases = (optim.Optimizer, optim.LBFGS, Wrapper, Average)
    wanted = {kind for kind in kinds if issubclass(kind, bases) and kind not in OTHERS}
    assert wanted <= tested


@pytest.mark.filterwarnings("ignore::emberharmony.errors.CheckpointWarning")  # of other versions of libraries
@pytest.mark.parametrize("writer", WRITTEN)
def test_a_checkpoint_of_an_older_version_goes_on(writer: str, backend: str) -> None:
    if writer != backend and "numpy" not in (writer, backend):
        pytest.skip("tensors of other backends are read as those of NumPy are")
    training = Training()
    checkpoint = io.Checkpoint(FOLDER / writer)
    assert checkpoint.restore(model=training.model, optimizer=training.optimizer) == STEPS
    expected = io.load(FOLDER / writer / "next.safetensors")
    found = training.train(STEPS)
    assert found.keys() == expected.keys()
    for name, x in found.items():
        wanted = ops.to_numpy(expected[name])
        np.testing.assert_allclose(ops.to_numpy(x), wanted, rtol=4e-6, atol=4e-6, err_msg=name)
