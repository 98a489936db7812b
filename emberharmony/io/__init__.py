"""Files of tensors in the format safetensors, and checkpoints: checked before use, written as a whole or not at all.

The reader and the writer are our own; the package `safetensors` is only a reference in the tests. It does not give the
place of a tensor in the file, which a mapping needs, so a layer over it would have to parse and check the header again
itself.
"""

from typing import TYPE_CHECKING

from emberharmony.core.docstrings.docstring import document_all
from emberharmony.core.errors import CheckpointError as CheckpointError
from emberharmony.core.errors import CheckpointWarning as CheckpointWarning
from emberharmony.core.errors import WeightFileError as WeightFileError
from emberharmony.core.names.lazy import lazy_getattr_and_dir
from emberharmony.io.checking import Report as Report
from emberharmony.io.checking import check as check
from emberharmony.io.checkpoints.checkpoint import Checkpoint as Checkpoint
from emberharmony.io.header import TensorInfo as TensorInfo
from emberharmony.io.layouts import convert as convert
from emberharmony.io.layouts import load_model as load_model
from emberharmony.io.layouts import save as save
from emberharmony.io.loading import load as load
from emberharmony.io.tensor_file import TensorFile as TensorFile
from emberharmony.io.tensor_file import open as open

if TYPE_CHECKING:
    from emberharmony.io.checkpoints.ranks import RankCheckpoint as RankCheckpoint

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "CheckpointWarning",
    "RankCheckpoint",
    "Report",
    "TensorFile",
    "TensorInfo",
    "WeightFileError",
    "check",
    "convert",
    "load",
    "load_model",
    "open",
    "save",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_getattr_and_dir(__name__, {"RankCheckpoint": "emberharmony.io.checkpoints.ranks"})
    document_all(__all__, globals())
