"""The functions that compute ATen operators by ops, one file for each category; the import registers them."""

from emberharmony.interop.torch.aten import activation as activation
from emberharmony.interop.torch.aten import algebra as algebra
from emberharmony.interop.torch.aten import attention as attention
from emberharmony.interop.torch.aten import convolution as convolution
from emberharmony.interop.torch.aten import creation as creation
from emberharmony.interop.torch.aten import elementwise as elementwise
from emberharmony.interop.torch.aten import indexing as indexing
from emberharmony.interop.torch.aten import losses as losses
from emberharmony.interop.torch.aten import normalization as normalization
from emberharmony.interop.torch.aten import numbers as numbers
from emberharmony.interop.torch.aten import pooling as pooling
from emberharmony.interop.torch.aten import products as products
from emberharmony.interop.torch.aten import random as random
from emberharmony.interop.torch.aten import recurrent as recurrent
from emberharmony.interop.torch.aten import reduction as reduction
from emberharmony.interop.torch.aten import shape as shape
from emberharmony.interop.torch.aten import statistics as statistics
from emberharmony.interop.torch.aten.table import find_function as find_function
