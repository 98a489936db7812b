"""What of `torch.nn` is left out, and why: options of constructors, and classes.

`docs/layers.md` shows these tables, and tests hold them against `torch.nn` and `nn`.
"""

from collections.abc import Mapping

_IN_PLACE = (
    "torch's forward changes the table itself, which a transform or a frozen table must not see; rescale the rows that "
    "are too long after the step"
)
_TABLE = {
    "max_norm": _IN_PLACE,
    "norm_type": _IN_PLACE,
    "sparse": "no backend has sparse gradients for all optimizers; the gradient is a dense tensor",
    "_weight": "private; `from_pretrained` and `load_state_dict` take a table",
}
_DEPRECATED = "torch deprecates it in favour of `min_val` and `max_val`"
_INDICES = {"return_indices": "no op gives the indices of adaptive windows"}
_FUSED = "an option of a kernel of torch; the results are the same"
_LAZY = "`None` as the number of features or channels, and `nn.build`"
_RANDOM_WINDOWS = "its windows are drawn at random by a rule that only PyTorch has"
_WITH_WEIGHTS = "it has weights of its own, so it is a layer; compose `nn.Linear` and `nn.CrossEntropyLoss`"

EVERYWHERE: Mapping[str, str] = {
    "device": "tensors are made on the default device, and `Module.to` moves them",
    "inplace": "no function of ours changes its argument",
    "size_average": "torch deprecates it in favour of `reduction`",
    "reduce": "torch deprecates it in favour of `reduction`",
}
"""The options that no class of ours has."""

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "AdaptiveMaxPool1d": _INDICES,
    "AdaptiveMaxPool2d": _INDICES,
    "AdaptiveMaxPool3d": _INDICES,
    "Embedding": {**_TABLE, "_freeze": "private; `freeze` does it"},
    "EmbeddingBag": _TABLE,
    "Hardtanh": {"min_value": _DEPRECATED, "max_value": _DEPRECATED},
    "TransformerEncoder": {"enable_nested_tensor": _FUSED, "mask_check": _FUSED},
}
"""The options that a class of ours lacks, by class."""

CLASSES: Mapping[str, str] = {
    "AdaptiveLogSoftmaxWithLoss": _WITH_WEIGHTS,
    "Container": "torch deprecates it in favour of `Module`",
    "CosineSimilarity": "`ops.sum` of the product of two `ops.normalize`; the loss is `CosineEmbeddingLoss`",
    "CrossMapLRN2d": "an older form of `LocalResponseNorm`",
    "FractionalMaxPool2d": _RANDOM_WINDOWS,
    "FractionalMaxPool3d": _RANDOM_WINDOWS,
    **{f"Lazy{kind}{n}d": _LAZY for kind in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm") for n in (1, 2, 3)},
    "LazyLinear": _LAZY,
    "LinearCrossEntropyLoss": _WITH_WEIGHTS,
    "LinearCrossEntropyOptions": "the options of `LinearCrossEntropyLoss`",
    "NLLLoss2d": "torch deprecates it in favour of `NLLLoss`",
    "PairwiseDistance": "`ops.vector_norm` of a difference, or `ops.cdist` for all pairs",
    "RNNBase": "the base of torch's recurrent layers",
    "RNNCellBase": "the base of torch's cells",
    "SyncBatchNorm": "it needs several processes",
    "UninitializedBuffer": "the buffers of lazy layers",
    "UninitializedParameter": "`nn.build` finds the shapes of parameters; they have no class of their own in `nn`",
}
"""The classes of torch that we lack, by name."""
