"""The kinds of results of calls and of attributes, by name: of the namespace, of native libraries, of Python itself."""

import re
import sys
from functools import lru_cache

from emberlint.config.settings import Settings
from emberlint.knowledge.ops_table import ELEMENTWISE as ELEMENTWISE
from emberlint.knowledge.ops_table import REDUCTIONS, RETURNS


def word_set(text: str) -> frozenset[str]:
    """Returns the words of a text as a set."""
    return frozenset(text.split())


# Functions of other namespaces (keras.ops, the array API) and of native libraries without an op of that name here.
_TENSOR = word_set("""
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d addbmm addcdiv addcmul addmm addmv
    addr adjoint affine_grid argwhere around array_equiv as_strided as_tensor asanyarray ascontiguousarray atleast_1d
    atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bilinear binary_cross_entropy
    binary_cross_entropy_with_logits block block_diag bmm bucketize cartesian_prod cat chain_matmul chebyshev
    cholesky_solve choose clamp clone column_stack compress constant conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d convolve cosine_similarity cross_entropy degrees delete detach diag_embed
    digamma dist div dropout1d dropout2d ediff1d embedding eq expit extract fill fix flatnonzero flatten float_power
    frac from_numpy frombuffer fromfile fromfunction fromiter frompyfunc gather ge gradient grid_sample group_norm gt
    gumbel_softmax hardshrink hardsigmoid hardswish hardtanh histc huber_loss igamma index_add index_copy index_fill
    index_put index_select insert instance_norm interp interpolate intersect1d inverse invert kl_div l1_loss
    layer_norm le lerp lgamma linear local_response_norm logcumsumexp logit logsigmoid lt lu_solve masked_fill
    masked_scatter masked_select matrix_exp matvec max_pool1d max_pool2d max_pool3d mish mm mse_loss mul
    multi_head_attention multinomial mv narrow ne neg nll_loss pairwise_distance partition pdist permute piecewise
    pinverse pixel_shuffle pixel_unshuffle poly polyadd polyfit polygamma polyval prelu radians rand rand_like randn
    randn_like random random_sample randperm reduce_max reduce_mean reduce_min reduce_sum renorm rint rms_norm
    rollaxis roots row_stack sample scaled_dot_product_attention scatter_add scatter_reduce setdiff1d setxor1d sgn
    smooth_l1_loss soft_plus softmin softshrink sort_complex spacing sub swapdims t take_along_dim tanhshrink tensor
    tensorinv tensorsolve trapz trim_zeros triplet_margin_loss unflatten union1d unsqueeze unwrap upsample vecmat
    xlogy
""")
_TENSORS = word_set("""
    aminmax broadcast_tensors chunk diag_indices divmod frexp histogram2d ix_ kthvalue modf ssplit std_mean
    tensor_split topk unbind var_mean
""")
_CONSTANTS = word_set("pi e inf nan newaxis euler_gamma tau")
_DTYPE = re.compile(r"(?:u?int|float|bfloat|complex|bool)(?:\d+(?:_e\w+)?|_)?$|half$|double$|long$|cfloat$|short$")

# Functions of native libraries whose result differs in kind from that of the op of the same name.
_NATIVE = {
    "allclose": "bool",
    "array_equal": "bool",
    "array_equiv": "bool",
    "broadcast_shapes": "shape",
    "equal": "tensor",
    "iinfo": "other",
    "is_tensor": "bool",
    "load": "unknown",
    "random": "tensor",
    "save": "none",
    "seed": "none",
    "manual_seed": "none",
    "size": "number",
    "to_numpy": "tensor",
    "unique": "unknown",
}

# Names of functions that other libraries lack, or have with other results.
_EXACT = {"torch.Size": "shape", "torch.equal": "bool", "torch.is_nonzero": "bool"}

# Modules outside the namespace whose functions equal the ops of the same name: keras.random, keras.activations.
_BESIDE = word_set("random nn functional activations losses fft linalg")

TRANSFORMS = word_set("grad value_and_grad vmap vectorize vectorized_map jit compile checkpoint jacobian hessian")
CALLBACKS = word_set(
    "map tree_map scan vectorized_map vectorize associative_scan while_loop fori_loop cond apply_along_axis"
)

# Modules of the standard library whose functions return numbers, and those whose functions return no tensors.
_NUMERIC = word_set("math cmath time statistics numbers random")
_PLAIN = word_set("""
    array argparse base64 bisect calendar csv datetime decimal difflib enum fractions glob hashlib inspect io ipaddress
    itertools.count json locale logging os pathlib platform pprint re secrets shutil socket string struct subprocess
    sys tempfile textwrap threading traceback types unicodedata urllib uuid warnings zlib zoneinfo
""")
_OBJECTS = word_set("datetime decimal fractions ipaddress pathlib uuid zoneinfo")  # their calls return instances
_PASS_ON = word_set("""
    copy.copy copy.deepcopy dataclasses.replace typing.assert_type typing.final random.choice heapq.heappop
    asyncio.run asyncio.wait_for asyncio.shield
""")
_STDLIB = {
    "importlib.import_module": "import",
    "functools.partial": "partial",
    "functools.partialmethod": "partial",
    "functools.reduce": "reduce",
    "typing.cast": "cast",
    "typing_extensions.cast": "cast",
    "collections.deque": "sequence",
    "collections.OrderedDict": "mapping",
    "collections.defaultdict": "defaultdict",
    "collections.Counter": "counter",
    "collections.namedtuple": "record",
    "typing.NamedTuple": "record",
    "itertools.chain": "chain",
    "itertools.chain.from_iterable": "flatten",
    "itertools.accumulate": "sequence",
    "itertools.islice": "sequence",
    "itertools.cycle": "sequence",
    "itertools.takewhile": "filter",
    "itertools.dropwhile": "filter",
    "itertools.filterfalse": "filter",
    "itertools.repeat": "repeat",
    "itertools.zip_longest": "zip",
    "itertools.groupby": "groups",
    "itertools.product": "zip",
    "itertools.pairwise": "pairwise",
    "itertools.combinations": "pairwise",
    "itertools.permutations": "pairwise",
    "itertools.starmap": "starmap",
    "operator.itemgetter": "unknown",
    "operator.attrgetter": "unknown",
}
OPERATOR_BINARY = word_set(
    "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift iadd isub imul itruediv lt le eq ne ge gt"
)
OPERATOR_UNARY = word_set("neg pos abs invert inv")

BUILTINS = {
    **dict.fromkeys(word_set("len int float hash id ord"), "real"),
    **dict.fromkeys(word_set("bool complex isinstance issubclass callable hasattr any all"), "number"),
    **dict.fromkeys(word_set("str repr format ascii chr input bin hex oct bytes bytearray"), "string"),
    **dict.fromkeys(word_set("print setattr delattr exec breakpoint"), "none"),
    **dict.fromkeys(word_set("open object type slice vars dir globals locals compile memoryview"), "other"),
    **dict.fromkeys(word_set("list tuple set frozenset iter aiter reversed sorted"), "sequence"),
    **dict.fromkeys(word_set("min max"), "extreme"),
    **dict.fromkeys(word_set("abs round pow divmod"), "arithmetic"),
    **dict.fromkeys(word_set("next anext"), "next"),
    "range": "range",
    "zip": "zip",
    "enumerate": "enumerate",
    "map": "map",
    "filter": "filter",
    "sum": "sum",
    "dict": "mapping",
    "getattr": "getattr",
    "super": "super",
}

# Attributes and methods of tensors.
TENSOR_ATTRIBUTES = word_set("T mT H mH real imag grad data flat at value values indices")
PLAIN_ATTRIBUTES = word_set("""
    shape ndim dtype device size itemsize nbytes strides requires_grad is_cuda is_leaf is_sparse layout name names
    backend base flags ctypes grad_fn path trainable
""")
# Methods that module classes inherit: those that create a weight, and those that register a tensor under a name.
WEIGHT_METHODS = word_set("add_weight add_variable add_parameter create_parameter param")
KEEPING_METHODS = word_set("register_buffer register_parameter")
PLAIN_METHODS = word_set("""
    item tolist dim numel stride element_size data_ptr get_device devices ndimension nelement storage_offset tobytes
    tofile dump dumps backward register_hook retain_grad allclose equal type storage untyped_storage get_shape
    __len__ __repr__ __str__ __bool__ __float__ __int__ __hash__
""")
FRAME_METHODS = word_set("""
    groupby iterrows itertuples merge join fillna dropna set_index reset_index sort_values sort_index value_counts apply
    applymap pivot pivot_table melt rename reindex assign query describe to_csv to_frame to_dict
""")  # of pandas, whose frames NumPy's functions return if they are given one
CONTAINER_METHODS = word_set("split chunk unbind nonzero tensor_split topk svd qr unstack hsplit vsplit dsplit")
TEXT_METHODS = word_set("""
    append appendleft encode decode endswith extend format isdigit items join keys lower lstrip popitem rstrip
    setdefault splitlines startswith strip strftime timestamp title total_seconds update upper write read readline
""")

# Names that by convention hold numbers, flags or text.
_PLAIN_NAMES = word_set("""
    i j d n num size dim dims count length rank axis axes shape dtype device name path mode training train
    deterministic inference causal verbose debug flag lr learning_rate rate momentum eps epsilon alpha beta gamma sigma
    mu tau temperature temp scale factor degree order steps epoch epochs step seed rng generator depth width height
    heads channels stride padding kernel groups threshold limit start stop end low high base exponent text string word
    title config cfg options kwargs args ctx context fn func callback reduction period frequency freq duration delay
    timeout interval amount price cost total ratio
""")
_PLAIN_PATTERN = re.compile(
    r"(?:[ndk]|num|is|has|use|return|with|should|do|max|min|epoch|step|apply|needs?)_\w+|n[A-Z]\w*|\w+_(?:sizes?|dims?|count"
    r"|len|length|rate|ratio|idx|index|ids?|num|steps|epochs|names?|shape|axis|key|path|type|mode|fn|func|rank|prob|eps"
    r"|scale|factor|power|fmt)"
)


@lru_cache(maxsize=1 << 14)
def is_plain_name(name: str) -> bool:
    """Returns whether a name by convention holds a number, a flag or text."""
    stripped_name = name.lstrip("_")
    return stripped_name in _PLAIN_NAMES or _PLAIN_PATTERN.fullmatch(stripped_name) is not None


class Kinds:
    """The kinds of dotted origins, such as op, constant or module class, under the settings of a run."""

    def __init__(self, settings: Settings) -> None:
        self.functions = dict(settings.functions)
        self.namespaces = tuple(f"{namespace}." for namespace in settings.namespaces)
        self.facades = frozenset(namespace.partition(".")[0] for namespace in settings.namespaces)
        self.backends = frozenset(settings.backends)
        self.tensor_types = frozenset(settings.tensor_types)
        self.module_classes = frozenset(settings.module_classes)
        layer_modules = {class_.rpartition(".")[0] for class_ in settings.module_classes}
        self.layer_packages = tuple(f"{layer}." for layer in layer_modules if "." in layer)
        self.roots = (
            self.facades
            | self.backends
            | {
                dotted_name.partition(".")[0]
                for dotted_name in (*settings.tensor_types, *settings.module_classes, *self.functions)
            }
        )
        self._kind_by_origin: dict[str, str] = {}
        self._constants: dict[str, bool] = {}

    def is_in_tensor_library(self, origin: str) -> bool:
        """Returns whether an origin is in a library of tensors: a facade, a backend, or one with configured types."""
        return origin.partition(".")[0] in self.roots

    def is_op(self, origin: str) -> bool:
        """Returns whether an origin is in a configured namespace."""
        return origin.startswith(self.namespaces)

    def namespace(self, origin: str) -> str:
        """Returns the configured namespace of an op."""
        return max((namespace for namespace in self.namespaces if origin.startswith(namespace)), key=len).rstrip(".")

    def is_elementwise(self, origin: str) -> bool:
        """Returns whether an origin is an elementwise op."""
        return origin.rpartition(".")[2] in ELEMENTWISE and self.is_op(origin)

    def is_reduction(self, origin: str) -> bool:
        """Returns whether an origin is an op that sums, averages or multiplies its argument."""
        return origin.rpartition(".")[2] in REDUCTIONS and self.is_op(origin)

    def is_constant(self, origin: str) -> bool:
        """Returns whether an origin names a number or a dtype."""
        is_known_constant = self._constants.get(origin)
        if is_known_constant is None:
            is_known_constant = self._constants[origin] = self._is_constant(origin)
        return is_known_constant

    def _is_constant(self, origin: str) -> bool:
        root_package, _, _ = origin.partition(".")
        last_name = origin.rpartition(".")[2]
        if root_package in self.facades or root_package in self.backends:
            return last_name in _CONSTANTS or _DTYPE.match(last_name) is not None
        return root_package == "math" and last_name in _CONSTANTS

    def is_tensor_type(self, origin: str) -> bool:
        """Returns whether an origin is a configured tensor type, or a parameter type next to a module class."""
        if origin in self.tensor_types:
            return True
        return origin.rpartition(".")[2] in ("Parameter", "Variable") and self.is_in_tensor_library(origin)

    def is_module_class(self, origin: str) -> bool:
        """Returns whether an origin is a class whose instances are called with tensors."""
        if origin in self.module_classes:
            return True
        last_name = origin.rpartition(".")[2]
        if origin.startswith(self.layer_packages):
            return last_name[:1].isupper()
        # The name `Model` alone proves little: database tables and forms are called so too.
        is_class_name = self.is_in_tensor_library(origin) and last_name.endswith(("Model", "Cell"))
        return is_class_name or (last_name.endswith(("Module", "Layer")) and not is_stdlib(origin))

    def result_kind(self, origin: str) -> str:
        """Returns the kind of the result of calling an origin, or `unknown`."""
        result_kind = self._kind_by_origin.get(origin)
        if result_kind is None:
            result_kind = self._kind_by_origin[origin] = self._find_result_kind(origin)
        return result_kind

    def _find_result_kind(self, origin: str) -> str:
        if origin in self.functions:
            return self.functions[origin]
        if origin in _EXACT:
            return _EXACT[origin]
        root_package, _, path_in_library = origin.partition(".")
        last_name = origin.rpartition(".")[2]
        if self.is_tensor_type(origin):
            return "tensor"
        if self.is_op(origin):
            return _kind_of_name(last_name)
        if origin.startswith(self.layer_packages) or root_package in self.facades or root_package in self.backends:
            if last_name[:1].isupper():
                return "layer" if self.is_module_class(origin) else "unknown"
            if last_name in TRANSFORMS:
                return "transform"
            if root_package in self.backends:
                return _NATIVE.get(last_name) or _kind_of_name(last_name)
            parent_modules = path_in_library.split(".")[:-1]
            return _kind_of_name(last_name) if parent_modules and _BESIDE.issuperset(parent_modules) else "unknown"
        return _stdlib_kind(origin, root_package, last_name)


def is_stdlib(origin: str) -> bool:
    """Returns whether an origin is in the standard library."""
    return origin.partition(".")[0] in sys.stdlib_module_names


def _kind_of_name(name: str) -> str:
    result_kind = RETURNS.get(name)
    if result_kind is not None:
        return result_kind
    if name in TRANSFORMS:
        return "transform"
    if name in CALLBACKS:
        return "callback"
    if name in _TENSOR:
        return "tensor"
    if name in _TENSORS:
        return "tensors"
    return "dtype" if _DTYPE.match(name) else "unknown"


def _stdlib_kind(origin: str, root: str, last: str) -> str:
    if origin in _STDLIB:
        return _STDLIB[origin]
    if origin in _PASS_ON:
        return "argument"
    if root == "operator" and last in OPERATOR_BINARY:
        return "binary"
    if root == "operator" and last in OPERATOR_UNARY:
        return "unary"
    if origin in ("random.sample", "random.choices", "heapq.nlargest", "heapq.nsmallest"):
        return "sequence"
    if root in _NUMERIC:
        return "real" if root == "math" and not last.startswith("is") else "number"
    if root in _OBJECTS:
        return "object"
    return "other" if root in _PLAIN else "unknown"
