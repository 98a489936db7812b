"""Files of tensors, in the format safetensors: each is checked before it is used, and written as a whole or not at all."""

from emberharmony.core.errors import WeightFileError as WeightFileError
from emberharmony.io.header import TensorInfo as TensorInfo
from emberharmony.io.tensor_file import TensorFile as TensorFile
from emberharmony.io.tensor_file import open as open

__all__ = ["TensorFile", "TensorInfo", "WeightFileError", "open"]
