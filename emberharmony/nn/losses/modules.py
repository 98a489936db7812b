"""The losses as modules, whose constructors take the options of the functions."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from emberharmony import Buffer
from emberharmony.core.errors import ArgumentTypeError, suggest
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.nn.locate import fault
from emberharmony.nn.losses import classification, distances, margins, regression, sequences
from emberharmony.nn.losses.operands import REDUCTIONS, require_reduction
from emberharmony.nn.module import Module

_TENSORS = ("weight", "pos_weight")
"""The names of options that are tensors and become buffers of the module, as in torch."""

_DEPRECATED = ("size_average", "reduce")


class Loss(Module):
    """The base class of losses: a call computes a function of `nn.losses` with the options of the constructor.

    A subclass names the function: `class MSELoss(Loss, function=mse)`. Options have the names and defaults of the
    function, and become attributes; those that are tensors become buffers.

    Args:
        *args: values of the options, in their order.
        **options: values of the options by name.

    Example:
        >>> from emberharmony import nn
        >>> loss = nn.HuberLoss(delta=0.5, reduction="sum")
        >>> loss
        HuberLoss(delta=0.5, reduction='sum')
        >>> loss([1.0, 4.0], [1.5, 1.0]).tolist()
        1.5
    """

    function: ClassVar[Callable[..., Tensor]]
    """The function of `nn.losses` that a call of the module computes."""

    reductions: ClassVar[tuple[str, ...]] = REDUCTIONS
    """The allowed values of the option `reduction`."""

    options: ClassVar[dict[str, inspect.Parameter]]
    """The names of the options of the loss function."""

    def __init_subclass__(cls, *, function: Callable[..., Tensor], **others: Any) -> None:
        super().__init_subclass__(**others)
        parameters = inspect.signature(function).parameters
        cls.function = staticmethod(function)
        cls.options = {
            name: parameter for name, parameter in parameters.items() if parameter.default is not parameter.empty
        }
        cls.__signature__ = inspect.Signature(list(cls.options.values()))  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **options: Any) -> None:
        name = type(self).__name__
        for option_name in options:
            if option_name not in self.options:
                hint = "; pass reduction=" if option_name in _DEPRECATED else suggest(option_name, self.options)
                raise fault(ArgumentTypeError(f"{name}() has no option {option_name!r}{hint}"))
        advice = f"{name}() is made of options alone, and then called: nn.{name}()(outputs, target)"
        try:
            bound_arguments = inspect.signature(type(self)).bind(*args, **options)
        except TypeError as error:
            has_tensors = any(hasattr(value, "shape") for value in args)
            message = advice if has_tensors else f"{name}(): {error}; pass options by name"
            raise fault(ArgumentTypeError(message)) from error
        if any(
            hasattr(value, "shape") and option not in _TENSORS for option, value in bound_arguments.arguments.items()
        ):
            raise fault(ArgumentTypeError(advice))
        bound_arguments.apply_defaults()
        require_reduction(name, bound_arguments.arguments["reduction"], self.reductions)
        for option, value in bound_arguments.arguments.items():
            setattr(self, option, Buffer(value) if option in _TENSORS and value is not None else value)

    def __call__(self, *tensors: TensorLike) -> Tensor:
        return self.function(*tensors, **{name: getattr(self, name) for name in self.options})


class CrossEntropyLoss(Loss, function=classification.cross_entropy):
    """The module of `nn.losses.cross_entropy`."""


class NLLLoss(Loss, function=classification.nll):
    """The module of `nn.losses.nll`."""


class BCELoss(Loss, function=classification.binary_cross_entropy):
    """The module of `nn.losses.binary_cross_entropy`."""


class BCEWithLogitsLoss(Loss, function=classification.binary_cross_entropy_with_logits):
    """The module of `nn.losses.binary_cross_entropy_with_logits`."""


class FocalLoss(Loss, function=classification.focal):
    """The module of `nn.losses.focal`."""


class DiceLoss(Loss, function=classification.dice):
    """The module of `nn.losses.dice`."""


class KLDivLoss(Loss, function=classification.kl_div):
    """The module of `nn.losses.kl_div`."""

    reductions = (*REDUCTIONS, "batchmean")


class MSELoss(Loss, function=regression.mse):
    """The module of `nn.losses.mse`."""


class L1Loss(Loss, function=regression.l1):
    """The module of `nn.losses.l1`."""


class SmoothL1Loss(Loss, function=regression.smooth_l1):
    """The module of `nn.losses.smooth_l1`."""


class HuberLoss(Loss, function=regression.huber):
    """The module of `nn.losses.huber`."""


class LogCoshLoss(Loss, function=regression.log_cosh):
    """The module of `nn.losses.log_cosh`."""


class GaussianNLLLoss(Loss, function=regression.gaussian_nll):
    """The module of `nn.losses.gaussian_nll`."""


class PoissonNLLLoss(Loss, function=regression.poisson_nll):
    """The module of `nn.losses.poisson_nll`."""


class HingeLoss(Loss, function=margins.hinge):
    """The module of `nn.losses.hinge`."""


class SoftMarginLoss(Loss, function=margins.soft_margin):
    """The module of `nn.losses.soft_margin`."""


class MarginRankingLoss(Loss, function=margins.margin_ranking):
    """The module of `nn.losses.margin_ranking`."""


class MultiMarginLoss(Loss, function=margins.multi_margin):
    """The module of `nn.losses.multi_margin`."""


class MultiLabelMarginLoss(Loss, function=margins.multilabel_margin):
    """The module of `nn.losses.multilabel_margin`."""


class MultiLabelSoftMarginLoss(Loss, function=margins.multilabel_soft_margin):
    """The module of `nn.losses.multilabel_soft_margin`."""


class HingeEmbeddingLoss(Loss, function=distances.hinge_embedding):
    """The module of `nn.losses.hinge_embedding`."""


class CosineEmbeddingLoss(Loss, function=distances.cosine_embedding):
    """The module of `nn.losses.cosine_embedding`."""


class TripletMarginLoss(Loss, function=distances.triplet_margin):
    """The module of `nn.losses.triplet_margin`."""


class TripletMarginWithDistanceLoss(Loss, function=distances.triplet_margin_with_distance):
    """The module of `nn.losses.triplet_margin_with_distance`."""


class CTCLoss(Loss, function=sequences.ctc):
    """The module of `nn.losses.ctc`."""
