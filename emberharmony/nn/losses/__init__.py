"""Losses of `torch.nn.functional`, and a few more, on every backend; each is a function and a module."""

from typing import TYPE_CHECKING

from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.nn.losses.classification import binary_cross_entropy as binary_cross_entropy
from emberharmony.nn.losses.classification import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from emberharmony.nn.losses.classification import cross_entropy as cross_entropy
from emberharmony.nn.losses.classification import dice as dice
from emberharmony.nn.losses.classification import focal as focal
from emberharmony.nn.losses.classification import kl_div as kl_div
from emberharmony.nn.losses.classification import nll as nll
from emberharmony.nn.losses.distances import cosine_embedding as cosine_embedding
from emberharmony.nn.losses.distances import hinge_embedding as hinge_embedding
from emberharmony.nn.losses.distances import triplet_margin as triplet_margin
from emberharmony.nn.losses.distances import triplet_margin_with_distance as triplet_margin_with_distance
from emberharmony.nn.losses.margins import hinge as hinge
from emberharmony.nn.losses.margins import margin_ranking as margin_ranking
from emberharmony.nn.losses.margins import multi_margin as multi_margin
from emberharmony.nn.losses.margins import multilabel_margin as multilabel_margin
from emberharmony.nn.losses.margins import multilabel_soft_margin as multilabel_soft_margin
from emberharmony.nn.losses.margins import soft_margin as soft_margin
from emberharmony.nn.losses.modules import BCELoss as BCELoss
from emberharmony.nn.losses.modules import BCEWithLogitsLoss as BCEWithLogitsLoss
from emberharmony.nn.losses.modules import CosineEmbeddingLoss as CosineEmbeddingLoss
from emberharmony.nn.losses.modules import CrossEntropyLoss as CrossEntropyLoss
from emberharmony.nn.losses.modules import CTCLoss as CTCLoss
from emberharmony.nn.losses.modules import DiceLoss as DiceLoss
from emberharmony.nn.losses.modules import FocalLoss as FocalLoss
from emberharmony.nn.losses.modules import GaussianNLLLoss as GaussianNLLLoss
from emberharmony.nn.losses.modules import HingeEmbeddingLoss as HingeEmbeddingLoss
from emberharmony.nn.losses.modules import HingeLoss as HingeLoss
from emberharmony.nn.losses.modules import HuberLoss as HuberLoss
from emberharmony.nn.losses.modules import KLDivLoss as KLDivLoss
from emberharmony.nn.losses.modules import L1Loss as L1Loss
from emberharmony.nn.losses.modules import LogCoshLoss as LogCoshLoss
from emberharmony.nn.losses.modules import Loss as Loss
from emberharmony.nn.losses.modules import MarginRankingLoss as MarginRankingLoss
from emberharmony.nn.losses.modules import MSELoss as MSELoss
from emberharmony.nn.losses.modules import MultiLabelMarginLoss as MultiLabelMarginLoss
from emberharmony.nn.losses.modules import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from emberharmony.nn.losses.modules import MultiMarginLoss as MultiMarginLoss
from emberharmony.nn.losses.modules import NLLLoss as NLLLoss
from emberharmony.nn.losses.modules import PoissonNLLLoss as PoissonNLLLoss
from emberharmony.nn.losses.modules import SmoothL1Loss as SmoothL1Loss
from emberharmony.nn.losses.modules import SoftMarginLoss as SoftMarginLoss
from emberharmony.nn.losses.modules import TripletMarginLoss as TripletMarginLoss
from emberharmony.nn.losses.modules import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from emberharmony.nn.losses.regression import gaussian_nll as gaussian_nll
from emberharmony.nn.losses.regression import huber as huber
from emberharmony.nn.losses.regression import l1 as l1
from emberharmony.nn.losses.regression import log_cosh as log_cosh
from emberharmony.nn.losses.regression import mse as mse
from emberharmony.nn.losses.regression import poisson_nll as poisson_nll
from emberharmony.nn.losses.regression import smooth_l1 as smooth_l1
from emberharmony.nn.losses.sequences import ctc as ctc

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
