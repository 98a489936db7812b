"""Metrics over many batches: sums in float64 and exact counts on the host, whatever the backend and the dtype.

`update` takes tensors of the active backend, arrays or lists, and reads their values; a loss function that is
differentiated may call it. `compute` returns a number or a NumPy array for all updates since `reset`; of nothing it is
NaN. `merge` adds what another metric has seen, as that of another process, and `state_dict` returns lists and numbers
that `json.dumps` accepts.
"""

from typing import TYPE_CHECKING

from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.nn.metrics.classification import AUC as AUC
from emberharmony.nn.metrics.classification import F1 as F1
from emberharmony.nn.metrics.classification import Accuracy as Accuracy
from emberharmony.nn.metrics.classification import ConfusionMatrix as ConfusionMatrix
from emberharmony.nn.metrics.classification import Perplexity as Perplexity
from emberharmony.nn.metrics.classification import Precision as Precision
from emberharmony.nn.metrics.classification import Recall as Recall
from emberharmony.nn.metrics.classification import TopK as TopK
from emberharmony.nn.metrics.metric import Mean as Mean
from emberharmony.nn.metrics.metric import Metric as Metric
from emberharmony.nn.metrics.regression import MAE as MAE
from emberharmony.nn.metrics.regression import MSE as MSE
from emberharmony.nn.metrics.regression import R2 as R2

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
