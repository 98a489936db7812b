"""Metrics of classes: shares of right predictions, of each class and over thresholds, and perplexity."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError
from emberharmony.core.types import HostArray, TensorLike
from emberharmony.nn.metrics.metric import Metric, quotient, to_host_array
from emberharmony.nn.options import choice_option, length_option

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import metrics as host
else:
    host = Deferred("emberharmony.backend.shared.neural.metrics")


class Accuracy(Metric):
    """The share of predictions that are the target.

    Args:
        axis: the axis of the classes, if predictions are scores.
        threshold: the score from which on (exclusively) class 1 is predicted, if there is one score for each target.
        ignore_index: a class id whose positions do not count; None counts all.

    Example:
        >>> from emberharmony import nn
        >>> accuracy = nn.metrics.Accuracy()
        >>> accuracy.update([[0.1, 0.9], [0.8, 0.2]], [1, 1])
        >>> accuracy.compute()
        0.5
    """

    def __init__(self, *, axis: int = -1, threshold: float = 0.5, ignore_index: int | None = None) -> None:
        self.axis, self.threshold, self.ignore_index = axis, threshold, ignore_index
        super().__init__()

    def initial(self) -> dict[str, Any]:
        return {"right": 0, "count": 0}

    def update(self, predictions: TensorLike, target: TensorLike) -> None:
        """Counts the right predictions of a batch, given as scores of classes, scores of one class, or class ids.

        Args:
            predictions: scores with an axis of classes, one score for each target, or class ids.
            target: class ids, integers in the shape of the predictions without the axis of classes.

        Raises:
            ShapeError: if the shapes do not fit.
        """
        target_ids = to_host_array("target", target)
        predicted_ids = host.predicted_classes(
            to_host_array("predictions", predictions), target_ids, self.axis, self.threshold
        )
        is_counted = target_ids == target_ids if self.ignore_index is None else target_ids != self.ignore_index
        self.add_sums(
            {"right": int(((predicted_ids == target_ids) & is_counted).sum()), "count": int(is_counted.sum())}
        )

    def compute(self) -> float:
        return quotient(self._state["right"], self._state["count"])


class TopK(Metric):
    """The share of targets that are among the k classes with the highest scores; of equal scores the first comes first.

    Args:
        k: how many of the highest scores count; an answer is right if the label is among them.
        axis: the axis of the classes.

    Example:
        >>> from emberharmony import nn
        >>> top = nn.metrics.TopK(2)
        >>> top.update([[0.5, 0.2, 0.3], [0.5, 0.2, 0.3]], [1, 2])
        >>> top.compute()
        0.5
    """

    def __init__(self, k: int, *, axis: int = -1) -> None:
        self.k, self.axis = length_option("k", k), axis
        super().__init__()

    def initial(self) -> dict[str, Any]:
        return {"right": 0, "count": 0}

    def update(self, scores: TensorLike, target: TensorLike) -> None:
        """Counts the targets of a batch that are among the classes with the k highest scores.

        Args:
            scores: scores with an axis of classes.
            target: class ids, integers in the shape of the scores without the axis of classes.

        Raises:
            IndexOutOfBoundsError: if an id is not a class.
            ShapeError: if the shapes do not fit.
        """
        target_ranks = host.target_ranks(to_host_array("scores", scores), to_host_array("target", target), self.axis)
        self.add_sums({"right": int((target_ranks < self.k).sum()), "count": int(target_ranks.size)})

    def compute(self) -> float:
        return quotient(self._state["right"], self._state["count"])


class ConfusionMatrix(Metric):
    """How often each class (rows) was predicted as each class (columns).

    Args:
        num_classes: the number of classes.
        normalize: "true" divides each row by its sum, "pred" each column, "all" everything; None leaves the counts.
        axis, threshold: see `Accuracy`.

    Example:
        >>> from emberharmony import nn
        >>> matrix = nn.metrics.ConfusionMatrix(2)
        >>> matrix.update([0, 1, 1], [0, 0, 1])
        >>> matrix.compute().tolist()
        [[1, 1], [0, 1]]
    """

    def __init__(
        self, num_classes: int, *, normalize: str | None = None, axis: int = -1, threshold: float = 0.5
    ) -> None:
        self.num_classes = length_option("num_classes", num_classes)
        self.normalize = None if normalize is None else choice_option("normalize", normalize, ("true", "pred", "all"))
        self.axis, self.threshold = axis, threshold
        super().__init__()

    def initial(self) -> dict[str, Any]:
        return {"counts": host.confusion_matrix(host.zeros(0), host.zeros(0), self.num_classes)}

    def update(self, predictions: TensorLike, target: TensorLike) -> None:
        """Adds a batch of predictions and targets to the counts; see `Accuracy.update` for the predictions.

        Args:
            predictions: scores with an axis of classes, one score for each target, or class ids.
            target: class ids, integers in the shape of the predictions without the axis of classes.

        Raises:
            IndexOutOfBoundsError: if an id is not a class.
            ShapeError: if the shapes do not fit.
        """
        target_ids = host.checked_ids("target", to_host_array("target", target), self.num_classes)
        predicted_ids = host.predicted_classes(
            to_host_array("predictions", predictions), target_ids, self.axis, self.threshold
        )
        predicted_ids = host.checked_ids("predictions", predicted_ids, self.num_classes)
        self.add_sums({"counts": host.confusion_matrix(predicted_ids, target_ids, self.num_classes)})

    def compute(self) -> HostArray:
        confusion_counts: HostArray = self._state["counts"]
        if self.normalize is None:
            return confusion_counts.copy()
        axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
        return host.ratio(confusion_counts, confusion_counts.sum(axis, keepdims=True), 0.0)


class _Ratio(ConfusionMatrix):
    """The base of Precision, Recall and F1: ratios of the counts of right and wrong predictions of each class."""

    def __init__(
        self,
        average: str | None = "binary",
        *,
        num_classes: int = 2,
        zero_division: float = 0.0,
        axis: int = -1,
        threshold: float = 0.5,
    ) -> None:
        if average is not None:
            choice_option("average", average, ("binary", "micro", "macro"))
        if average == "binary" and num_classes != 2:
            raise ArgumentError(
                f"{type(self).__name__}(): average='binary' is for 2 classes, not {num_classes}; pass average='micro', "
                f"'macro' or None"
            )
        self.average, self.zero_division = average, zero_division
        super().__init__(num_classes, axis=axis, threshold=threshold)

    def compute(self) -> Any:
        confusion_counts = self._state["counts"]
        true_positives = confusion_counts.diagonal()
        false_positive, false_negative = (
            confusion_counts.sum(0) - true_positives,
            confusion_counts.sum(1) - true_positives,
        )
        if self.average == "micro":
            true_positives, false_positive, false_negative = (
                true_positives.sum(),
                false_positive.sum(),
                false_negative.sum(),
            )
        numerator, denominator = self.numerator_and_denominator(true_positives, false_positive, false_negative)
        ratios = host.ratio(numerator, denominator, self.zero_division)
        if self.average == "binary":
            return float(ratios[1])
        if self.average == "macro":
            is_seen = confusion_counts.sum(0) + confusion_counts.sum(1) > 0
            return quotient(float(ratios[is_seen].sum()), int(is_seen.sum()))
        return ratios if self.average is None else float(ratios)

    @staticmethod
    def numerator_and_denominator(right: Any, false_positive: Any, false_negative: Any) -> tuple[Any, Any]:
        """Returns numerator and denominator of the metric from the counts of right and wrong predictions."""
        raise NotImplementedError


class Precision(_Ratio):
    """The share of right predictions among the predictions of a class.

    Args:
        average: "binary" is that of class 1; "micro" counts all classes together; "macro" is the mean over the classes
            that occur in predictions or targets; None returns that of each class.
        num_classes: the number of classes.
        zero_division: the value where the denominator is 0.
        axis, threshold: see `Accuracy`.

    Example:
        >>> from emberharmony import nn
        >>> precision = nn.metrics.Precision()
        >>> precision.update([0.9, 0.8, 0.1, 0.7], [1, 0, 1, 1])
        >>> round(precision.compute(), 4)
        0.6667
    """

    @staticmethod
    def numerator_and_denominator(right: Any, false_positive: Any, false_negative: Any) -> tuple[Any, Any]:
        return right, right + false_positive


class Recall(_Ratio):
    """The share of the examples of a class that were predicted as such; for the arguments see `Precision`.

    Args:
        average: "binary" is that of class 1; "micro" counts all classes together; "macro" is the mean over the classes
            that occur in predictions or targets; None returns that of each class.
        zero_division: the value where the denominator is 0.

    Example:
        >>> from emberharmony import nn
        >>> recall = nn.metrics.Recall("macro", num_classes=3)
        >>> recall.update([0, 1, 2, 2], [0, 1, 1, 2])
        >>> round(recall.compute(), 4)
        0.8333
    """

    @staticmethod
    def numerator_and_denominator(right: Any, false_positive: Any, false_negative: Any) -> tuple[Any, Any]:
        return right, right + false_negative


class F1(_Ratio):
    """The harmonic mean of precision and recall; for the arguments see `Precision`.

    Args:
        average: "binary" is that of class 1; "micro" counts all classes together; "macro" is the mean over the classes
            that occur in predictions or targets; None returns that of each class.
        zero_division: the value where the denominator is 0.

    Example:
        >>> from emberharmony import nn
        >>> score = nn.metrics.F1(None, num_classes=3)
        >>> score.update([0, 1, 2, 2], [0, 1, 1, 2])
        >>> score.compute().round(4).tolist()
        [1.0, 0.6667, 0.6667]
    """

    @staticmethod
    def numerator_and_denominator(right: Any, false_positive: Any, false_negative: Any) -> tuple[Any, Any]:
        return 2 * right, 2 * right + false_positive + false_negative


class AUC(Metric):
    """The area under the curve of the rates of true and false positives (ROC) for two classes; it keeps all scores.

    It is the share of pairs of a positive and a negative example whose scores are in the right order, and half of the
    share of those whose scores are equal. Without one of the classes it is NaN.

    Example:
        >>> from emberharmony import nn
        >>> area = nn.metrics.AUC()
        >>> area.update([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
        >>> area.compute()
        0.75
    """

    growing: ClassVar[tuple[str, ...]] = ("scores", "target")

    def initial(self) -> dict[str, Any]:
        return {"scores": host.zeros(0), "target": host.checked_ids("target", host.zeros(0), 2)}

    def update(self, scores: TensorLike, target: TensorLike) -> None:
        """Stores a batch of scores and of labels, 1 for positive examples and 0 for others.

        Args:
            scores: a score for each example, of any shape; a higher one means positive.
            target: 1 for positive examples and 0 for others, in the same shape.

        Raises:
            IndexOutOfBoundsError: if a target is neither 0 nor 1.
            ShapeError: if the shapes differ.
        """
        host_scores, target_labels = (
            to_host_array("scores", scores),
            host.checked_ids("target", to_host_array("target", target), 2),
        )
        host.require_shape("scores", host_scores, target_labels.shape, "that of target")
        self.add_sums({"scores": host_scores.ravel().astype("float64"), "target": target_labels.ravel()})

    def add_sums(self, sums: Mapping[str, Any]) -> None:
        self._state = {name: host.concatenate(value, sums[name]) for name, value in self._state.items()}

    def compute(self) -> float:
        return host.area_under_curve(self._state["scores"], self._state["target"])


class Perplexity(Metric):
    """The exponential of the mean cross-entropy of logits with class ids, computed in float64.

    Args:
        axis: the axis of the classes.
        ignore_index: a class id whose positions do not count.

    Example:
        >>> from emberharmony import nn
        >>> perplexity = nn.metrics.Perplexity()
        >>> perplexity.update([[0.0, 0.0], [3.0, 3.0]], [0, 1])
        >>> round(perplexity.compute(), 4)
        2.0
    """

    def __init__(self, *, axis: int = -1, ignore_index: int = -100) -> None:
        self.axis, self.ignore_index = axis, ignore_index
        super().__init__()

    def initial(self) -> dict[str, Any]:
        return {"log_likelihood": 0.0, "count": 0}

    def update(self, logits: TensorLike, target: TensorLike) -> None:
        """Adds the log-likelihoods of a batch of class ids under logits to the sum.

        Args:
            logits: logits with an axis of classes.
            target: class ids, integers in the shape of the logits without the axis of classes.

        Raises:
            IndexOutOfBoundsError: if an id is not a class.
            ShapeError: if the shapes do not fit.
        """
        likelihood_sum, target_count = host.log_likelihood_sum(
            to_host_array("logits", logits), to_host_array("target", target), self.axis, self.ignore_index
        )
        self.add_sums({"log_likelihood": likelihood_sum, "count": target_count})

    def compute(self) -> float:
        mean_loss = quotient(-self._state["log_likelihood"], self._state["count"])
        return math.exp(mean_loss) if not mean_loss > 709.0 else math.inf
