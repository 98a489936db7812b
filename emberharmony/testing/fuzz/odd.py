"""The tables that the fuzzer draws from: shapes, numbers, and sources of arguments that suit no or few parameters."""

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
USUAL = ("float32", "float32", "float32", "float64", "int32", "int64", "bool", "complex64")
"""The dtypes of most calls, the frequent ones repeated."""

Shapes = tuple[tuple[int, ...], ...]
SHAPES: Shapes = (
    *((3,), (2, 3), (3, 3), (2, 3, 4), (2, 3, 3), (1, 4, 4, 2), (1, 5, 2), (4,), (1,), (2, 2), (5, 1), (6,)),
    *((), (0,), (0, 3), (3, 0), (2, 0, 3), (0, 0), (1, 1, 1, 1, 1), (17,), (2, 1, 2, 1, 2)),
)
RARE: Shapes = ((2,) * 12, (1,) * 33, (1,) * 65, (1000,), (70000,), (1, 200000), (300, 300))
MIDDLE = (7, 8, 9, 16, 31, 63, 64, 65, 100, 127, 128, 255, 256, 300, 1000, *(65536, 10**6, 10**7) * 5)
"""Integers of middle size that could be lengths, most of which no shape in this file has."""


def _split_sources(text: str) -> tuple[str, ...]:
    return tuple(expression.strip() for expression in text.split(";"))


HUGE = _split_sources(
    r"""
    2**31-1 ; 2**31 ; -2**31 ; 2**31 ; -2**31 ; -2**31-1 ; 2**32 ; 2**40 ; -2**40 ; 2**53+1 ; 2**63-1 ; 2**63 ;
    -2**63 ; 2**64 ; 2**70 ; 10**400 ; -10**400
    """
)
"""Integers near the limits of 32 and 64 bits, and far larger ones."""

NUMBERS = _split_sources(
    r"""
    0.0 ; -0.0 ; 1.0 ; 0.5 ; -1.5 ; 2.0 ; 1e-7 ; 3 ; -1 ; 0 ; True ; nan ; inf ; -inf ; 1e308 ; -1e308 ; 1e-320 ;
    1e39 ; 65520.0 ; 2**31 ; 2**63 ; 2**70 ; 10**400 ; -10**400 ; 1j ; complex(inf, nan) ; np.float32(0.5) ;
    np.int8(3) ; np.float64(nan) ; np.array(0.5) ; ops.array(0.5) ; np.bool_(True)
    """
)
"""Sources of numbers of all types of Python and NumPy."""

WRONG = _split_sources(
    r"""
    None ; 'abc' ; '' ; b'ab' ; object() ; Ellipsis ; NotImplemented ; float ; lambda x: x ; np ; ops.sin ; {} ;
    {'a': 1.0} ; {1, 2} ; [] ; () ; [[]] ; [None] ; ['a', 'b'] ; [1.0, 'a'] ; [[1], [2, 3]] ; range(3) ;
    iter([1, 2]) ; slice(None) ; np.bool_(True) ; True ; 1.5 ; 2j ; nan ; [nan] ; {}.keys() ; np.array('a') ;
    np.array([1, 'a'], object) ; np.array([None]) ; np.array(['2020'], 'M8[D]') ; np.str_('a') ;
    np.zeros(2, [('a', 'f4')]) ; np.array([1.5], '>f4') ; np.array([1, 2], '>i8') ; np.longdouble(1) ;
    np.array([1.5], np.longdouble) ; np.ma.masked_array([1.0, 2.0], [0, 1]) ; np.matrix([[1.0, 2.0]]) ;
    nested_list(60) ; nested_list(2000) ; Stranger() ; Hostile() ; [Hostile()] ; 10**400 ; -2**63 ; [10**400] ; 2**64 ;
    np.int64(-1) ; np.float64(2.0) ; np.uint8(255) ; ops.array(2) ; ops.array([1, 2]) ; ops.array(True) ;
    type ; Exception() ;
    bytearray(b'ab') ; memoryview(b'abcd') ; 'float32' ; '1' ; 'a' * 10000 ; [[1.0] * 3] * 3 ; (1, 2.5, 3j)
    """
)
"""Arguments that are wrong for most parameters."""

STRINGS = _split_sources(
    r"""
    'nonsense' ; '' ; 'a' * 1000 ; 'CONSTANT' ; '\x00' ; b'valid' ; 'é' ; 0 ; None ; ['valid']
    """
)
"""Arguments for a parameter that expects the name of a mode: strings that name none, and values of other types."""

FUNCTIONS = _split_sources(
    r"""
    lambda x: ops.sum(ops.square(x)) ; lambda x: x ; lambda *xs: xs[0] ; lambda *xs: None ; lambda *xs: 'a' ;
    lambda x, y: ops.add(x, y) ; lambda c, x: (ops.add(c, x), c) ; lambda *xs: (ops.ones((2,)), 3) ; ops.sin ;
    lambda: ops.ones((2,)) ; lambda x: ops.less(x, 3) ; lambda *xs: {'a': xs} ; lambda x: [x, [x]] ; Below(2) ;
    lambda *xs: ops.reshape(xs[-1], (-1,)) ; lambda *xs: ops.zeros((0, 2)) ; lambda *xs: 10**400
    """
)
"""Sources of functions with various parameters and results."""

KEYS = _split_sources(
    r"""
    0 ; -1 ; 9 ; 2**70 ; slice(None, None, -1) ; slice(1, 1) ; slice(-2**70, 2**70, 2**63) ; None ; ... ;
    (0, ...) ; (..., None, 0) ; (slice(0, 2), -1) ; [0, 0] ; [] ; [[0], [1]] ; True ; np.array([True, False]) ;
    (None,) * 40 ; (0,) * 9 ; np.array(0) ; (slice(None), [0, 1]) ; 1.0 ; 'a' ; (..., ...) ; [[]] ; (True, 0)
    """
)
"""Keys of an indexing, `x[key]`."""

LENGTHS = _split_sources(
    r"""
    (-1,) ; (2, -1) ; (2**31, 2**31) ; (2**40,) ; (10**400,) ; (2**63, 0) ; (1,) * 33 ; (1,) * 65 ; (2.0,) ;
    ('a',) ; [2, 3] ; np.array([2, 3]) ; (np.int64(2), 3) ; ops.array([2])
    """
)
"""Shapes in other forms, and shapes that no memory can hold."""

INTEGERS = _split_sources(
    r"""
    True ; 2.0 ; 1.5 ; np.int64(2) ; np.array(1) ; ops.array(1) ; nan ; inf ; '1'
    """
)
"""Integers of other types, and values that could be mistaken for one."""

BOOLEANS = _split_sources(
    r"""
    True ; True ; False ; False ; 1 ; np.bool_(True) ; None ; 'yes' ; ops.array(True)
    """
)
"""Arguments for a parameter that expects a bool."""

DTYPES_WRITTEN = _split_sources(
    r"""
    float ; int ; bool ; complex ; ops.int8 ; np.float64 ; np.dtype('>i4') ; 'nonsense' ; 'U1' ; 3
    """
)
"""Sources of dtypes in unusual forms, such as strings and classes of NumPy."""

DEVICES = _split_sources(
    r"""
    'cpu' ; 'cpu' ; None ; 'nonsense' ; '' ; 3 ; 'cpu:1'
    """
)
"""Sources of devices, and of values that are no device."""

GENERATORS = _split_sources(
    r"""
    ops.random.Generator(3) ; ops.random.Generator(0) ; None ; 3
    """
)
"""Sources of random numbers."""

MAPPINGS = _split_sources(
    r"""
    {} ; {'a': 2} ; {'b': 0} ; {1: 2} ; None
    """
)
"""Sources of mappings from the names of axes to lengths."""

NORMS = _split_sources(
    r"""
    'backward' ; 'ortho' ; 'forward' ; None ; 'nonsense'
    """
)
"""Norms of Fourier transforms."""

LONG = _split_sources(
    r"""
    tensor(np.arange(10**6)) ; tensor(np.arange(10**6) % 7) ; tensor(np.ones((10**6,), 'float32'))
    """
)
"""Tensors so long that an op which reads as many elements of a shorter one is killed by a signal."""

SPECIAL = _split_sources("nan ; inf ; -inf ; 0 ; -0.0 ; 1e30 ; -1 ; 99 ; 2**31 ; -2**63 ; 1e-40")
"""Special numbers that replace one element of an array."""

NOT_FINITE = _split_sources("nan ; inf ; -inf")
OUTSIDE = (99, -99, 10**6, 2**31, -(2**31), 2**63 - 1, -(2**63))
"""Indices that are out of bounds for the usual shapes."""

BOUNDS = _split_sources("-1 ; 0 ; 3 ; 7 ; True ; 2.0 ; None ; 'a' ; Below(3)")
"""Numbers of iterations for loops over a function of the program; see `values.is_bounded`."""
