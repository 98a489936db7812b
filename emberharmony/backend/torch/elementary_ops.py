"""Elementary and special functions, on PyTorch."""

import torch

from emberharmony.backend.torch.dtypes import promotion


class TorchElementaryOps:
    """Holds the ops of `ops/elementary.py`."""

    exp = staticmethod(promotion.unary(torch.exp))
    expm1 = staticmethod(promotion.unary(torch.expm1))
    exp2 = staticmethod(promotion.unary(torch.exp2))
    log = staticmethod(promotion.unary(torch.log))
    log1p = staticmethod(promotion.unary(torch.log1p))
    log2 = staticmethod(promotion.unary(torch.log2))
    log10 = staticmethod(promotion.unary(torch.log10))
    sin = staticmethod(promotion.unary(torch.sin))
    cos = staticmethod(promotion.unary(torch.cos))
    tan = staticmethod(promotion.unary(torch.tan))
    arcsin = staticmethod(promotion.unary(torch.arcsin))
    arccos = staticmethod(promotion.unary(torch.arccos))
    arctan = staticmethod(promotion.unary(torch.arctan))
    sinh = staticmethod(promotion.unary(torch.sinh))
    cosh = staticmethod(promotion.unary(torch.cosh))
    tanh = staticmethod(promotion.unary(torch.tanh))
    arcsinh = staticmethod(promotion.unary(torch.arcsinh))
    arccosh = staticmethod(promotion.unary(torch.arccosh))
    arctanh = staticmethod(promotion.unary(torch.arctanh))
    logaddexp = staticmethod(promotion.binary(torch.logaddexp, inexact=True, weak=False))
    erf = staticmethod(promotion.unary(torch.erf))
    erfc = staticmethod(promotion.unary(torch.erfc))
    erfinv = staticmethod(promotion.unary(torch.erfinv))
