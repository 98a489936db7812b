"""Files of tensors made byte by byte: valid ones, and more than a hundred kinds of damaged and hostile ones."""

import json
import struct

F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
EIGHT = struct.pack("<2f", 1.0, 2.0)
DEEP = 100_000


def packed(header: object, data: bytes = EIGHT, pad: bool = False) -> bytes:
    """Returns a file with a header, given as JSON's value, as text or as bytes."""
    text = header if isinstance(header, (str, bytes)) else json.dumps(header)
    raw = text.encode() if isinstance(text, str) else text
    if pad:
        raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + data


def one(**changes: object) -> bytes:
    """Returns a file with one tensor whose entry has other fields; None leaves a field out."""
    return packed({"a": {name: value for name, value in (F32 | changes).items() if value is not None}})


def text(entry: str, data: bytes = EIGHT) -> bytes:
    return packed('{"a":' + entry + "}", data)


def two(first: list[int], second: list[int], size: int) -> bytes:
    tensors = {
        name: {"dtype": "U8", "shape": [max(0, end - begin)], "data_offsets": [begin, end]}
        for name, (begin, end) in (("a", first), ("b", second))
    }
    return packed(tensors, bytes(size))


def many(count: int, more: object = None) -> dict[str, object]:
    """Returns a header with many tensors of no bytes, and one of eight; it is read in several pieces."""
    entry = {"dtype": "F32", "shape": [0, 7], "data_offsets": [0, 0]}
    return {"first": F32} | {f"layer.{i}": entry if more is None else entry | {"x": more} for i in range(count)}


LONG = json.dumps(many(2000), separators=(",", ":"))


VALID: dict[str, bytes] = {
    "one tensor": packed({"a": F32}),
    "padded with spaces": packed({"a": F32}, pad=True),
    "much padding": packed(json.dumps({"a": F32}) + " " * 5000),
    "no tensors": packed({}, b""),
    "metadata only": packed({"__metadata__": {"x": "y"}}, b""),
    "metadata null": packed({"__metadata__": None, "a": F32}),
    "empty metadata": packed({"__metadata__": {}, "a": F32}),
    "unpadded header": packed('{ "a":' + json.dumps(F32) + "}"),
    "scalar": packed({"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}, EIGHT[:4]),
    "empty tensor": packed({"a": {"dtype": "F32", "shape": [0, 3], "data_offsets": [0, 0]}}, b""),
    "empty between": two([0, 4], [4, 4], 4),
    "other order": two([4, 8], [0, 4], 8),
    "escaped name": packed('{"\\u00e9\\n\\"[{":' + json.dumps(F32) + "}"),
    "name in UTF-8": packed(json.dumps({"größe 🙂": F32}, ensure_ascii=False)),
    "escaped pair": packed('{"\\ud83d\\ude42":' + json.dumps(F32) + "}"),
    "empty name": packed({"": F32}),
    "name of brackets": packed({"[[[[{{{{" * 100: F32}),
    "name of backslashes": packed({'\\\\"[{' * 100 + "\\": F32}),
    "name with a minus": packed({"layer-0": F32}),
    "name of digits": packed({"1" * 30: F32}),
    "unknown field": one(extra={"x": [1, -2, 3.5, None]}),
    "unknown field with a long number": text('{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":' + "9" * 5000 + "}"),
    "bool beyond 1": packed({"a": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, b"\x00\x05"),
    "many axes": one(shape=[1] * 20 + [2]),
    "spaces beyond a piece": packed(json.dumps({"a": F32}) + " " * 100_000),
    "other white space": packed(json.dumps({"a": F32}, indent=1) + "\t\n\r "),
    "metadata behind": packed({"a": F32, "__metadata__": {"x": "y"}}),
    "long metadata": packed({"__metadata__": {"x": '{"a":[1]},' * 20_000}, "a": F32}),
    "long metadata behind": packed({"a": F32, "__metadata__": {"x": '{"a":[1]},' * 20_000}}),
    "name with a null character": packed({"a\0b": F32}),
    "name with a delete character": packed({"a\x7f": F32}),
    "escaped slash": packed('{"a\\/b":' + json.dumps(F32) + "}"),
    "long name": packed({"n" * 100_000: F32}),
    "other order of fields": packed('{"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}}'),
    "empty at the end": two([0, 8], [8, 8], 8),
    "empty with a large length": packed({"a": {"dtype": "F32", "shape": [0, 2**30], "data_offsets": [0, 0]}}, b""),
    "nested unknown field": text('{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":' + "[" * 60 + "]" * 60 + "}"),
    "many entries": packed(many(2000)),
    "many entries with objects": packed(many(500, {"x": {"y": {}, "z": 1}, "s": "},{}," * 9})),
    "NaN and infinity": packed({"a": F32}, struct.pack("<2f", float("nan"), float("-inf"))),
}

_BAD_DTYPES = ("f32", "F16 ", "", "F128", "BOOL\0", "FLOAT", "<f4", "F3")
_BAD_SHAPES = ([-1], [2.0], ["2"], [None], [True], [[2]], [2, -1], 2, "2", None, {"0": 2}, [{}], [3], [2, 2], [], [0])
_BAD_OFFSETS = (
    *([0], [0, 8, 8], [], [8, 0], [-8, 0], [0, 8.0], ["0", "8"], [False, 8], [None, 8], 8, "0,8", {"0": 8}, [0, 9]),
    *([0, 7], [0, 4], [0, 16], [0, 2**63], [0, 2**64], [2**64 - 8, 2**64], [1, 9], [[0, 8]], [0, [8]], [4, 8]),
)
_NOT_JSON = (
    *('{"a"', "{", "{}x", "{}{}", "{},", "{'a':1}", '{"a":1,}', "{a:1}", '{"a":01}', '{"a":+1}', '{"a":.5}', "{}\0"),
    *('{"a":NaN}', '{"a":Infinity}', '{"a":-Infinity}', '{"a":undefined}', '{"a\n":1}', '{"a":"\\x"}', '{"a":"\\u12"}'),
    *('{"a":True}', '{"a":1}//', "{}\ufeff", '{"a" 1}', '{"\\ud800":1}', '{"a":{"x":"\\udc00"}}', "{" * 9, '{"a":[}]}'),
)
_DEEP = (
    *('{"a":' + "[" * DEEP, '{"a":' + "[" * DEEP + "]" * DEEP + "}", '{"a":' * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP),
    *('{"a":' + "[[],[" * DEEP, '{"[":' * DEEP, '{"\\"":' * DEEP, '{"a":[1,' + '{"b":[' * DEEP),
)

HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "header_size"),
    **{f"{n} bytes": (b"\x02\0\0\0\0\0\0\0"[:n], "header_size") for n in (1, 7, 8)},
    "size of 2**64 - 1": (b"\xff" * 8 + b"{}", "header_size"),
    "size of 2**63": (struct.pack("<Q", 2**63) + b"{}", "header_size"),
    "size beyond the file": (struct.pack("<Q", 3) + b"{}", "header_size"),
    "size beyond 100 MB": (struct.pack("<Q", 100_000_001) + b"{}", "header_size"),
    "size in big-endian order": (struct.pack(">Q", 2) + b"{}", "header_size"),
    "no header": (struct.pack("<Q", 0), "header_json"),
    "no header, but data": (struct.pack("<Q", 0) + EIGHT, "header_json"),
    "size in the middle of the header": (struct.pack("<Q", 20) + packed({"a": F32})[8:], "header_json"),
    **{f"begins with {c!r}": (packed(c + json.dumps({"a": F32})), "header_json") for c in (" ", "\n", "\0", "\ufeff")},
    **{f"is {value}": (packed(value, b""), "header_json") for value in ("[]", "null", "1", '"a"', "true", "")},
    **{f"not UTF-8: {raw!r}": (packed(b'{"' + raw + b'":1}'), "header_utf8")
       for raw in (b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x28\xa1")},
    "no name after the last comma, in the second piece": (packed(LONG[:-1] + ",}"), "header_json"),
    "two commas in the second piece": (packed(LONG[:-1] + "," + LONG.replace("layer", "x")), "header_json"),
    "text behind the second piece": (packed(LONG + "}"), "header_json"),
    "no end of the second piece": (packed(LONG[:-1]), "header_json"),
    "not UTF-8 in the second piece": (packed(LONG[:-1].encode() + b',"\xff":1}'), "header_utf8"),
    "a tensor twice, in two pieces": (packed(LONG[:-1] + ',"first":' + json.dumps(F32) + "}"), "duplicate"),
    "an entry of more than 1 MB": (packed({"a": F32 | {"x": "y" * 2**20}}), "header_json"),
    "an entry of many values": (packed({"a": F32 | {"x": [1] * 140_000}}), "header_json"),
    "metadata of many values": (packed({"__metadata__": {str(i): "" for i in range(140_000)}}, b""), "header_json"),
    "a name in single quotes": (packed("{'a':{}}", b""), "header_json"),
    "a comment": (packed("{/**/}", b""), "header_json"),
    "a tensor named __metadata__": (packed({"__metadata__": F32}), "metadata"),
    "offsets of another name": (packed({"a": {"dtype": "F32", "shape": [2], "offsets": [0, 8]}}), "entry"),
    "a string as entry": (packed({"a": F32, "b": "text"}), "entry"),
    "an unknown field twice": (text('{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1,"x":2}'), "duplicate"),
    "scalar of no bytes": (one(shape=[], data_offsets=[0, 0]), "offsets"),
    "length 2**64 - 1 and 2 and 0": (one(shape=[2**64 - 1, 2, 0], data_offsets=[0, 0]), "overflow"),
    "in UTF-16": (packed(json.dumps({"a": F32}).encode("utf-16-le")), "header_json"),
    **{f"not JSON: {value[:20]!r}": (packed(value, b""), "header_json") for value in _NOT_JSON},
    **{f"nested: {i}": (packed(value, b""), "header_json") for i, value in enumerate(_DEEP)},
    "a tensor twice": (packed('{"a":%s,"a":%s}' % ((json.dumps(F32),) * 2)), "duplicate"),
    "a tensor twice, once escaped": (packed('{"a":%s,"\\u0061":%s}' % ((json.dumps(F32),) * 2)), "duplicate"),
    "metadata twice": (packed('{"__metadata__":{},"__metadata__":{}}', b""), "duplicate"),
    "a name of metadata twice": (packed('{"__metadata__":{"x":"1","x":"2"}}', b""), "duplicate"),
    "dtype twice": (text('{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}'), "duplicate"),
    "shape twice": (text('{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}'), "duplicate"),
    "offsets twice": (text('{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}'), "duplicate"),
    **{f"metadata is {value}": (packed(f'{{"__metadata__":{value}}}', b""), "metadata")
       for value in ("[]", "1", '"x"', "true", '{"x":1}', '{"x":null}', '{"x":{}}', '{"x":["y"]}')},
    **{f"tied: {value}": (packed({"__metadata__": {"emberharmony.tied": value}, "a": F32}), "metadata")
       for value in ("", "[]", '{"b":1}', '{"b":"c"}', '{"a":"a"}', "{" * 9, '{"b":"b"}')},
    **{f"entry is {value}": (text(value), "entry")
       for value in ("[]", "1", "null", '"F32"', '["F32",[2],[0,8]]', "{}")},
    **{f"entry lacks {name}": (one(**{name: None}), "entry") for name in F32},
    "entry of other case": (packed({"a": {"DType": "F32", "Shape": [2], "Data_offsets": [0, 8]}}), "entry"),
    **{f"dtype {value!r}": (one(dtype=value), "dtype") for value in _BAD_DTYPES},
    **{f"dtype {value}": (text(f'{{"dtype":{value},"shape":[2],"data_offsets":[0,8]}}'), "dtype")
       for value in ("1", "null", "[]", "{}", '["F32"]')},
    **{f"shape {value}": (text(f'{{"dtype":"F32","shape":{json.dumps(value)},"data_offsets":[0,8]}}'), "shape")
       for value in _BAD_SHAPES[:12]},
    **{f"shape {value} of 8 bytes": (one(shape=value), "offsets") for value in _BAD_SHAPES[12:]},
    "shape -0": (text('{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}', b""), "shape"),
    "shape 2e0": (text('{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}'), "shape"),
    "shape of 5000 digits": (text('{"dtype":"F32","shape":[%s],"data_offsets":[0,8]}' % ("9" * 5000)), "shape"),
    "shape of a million digits": (text('{"dtype":"F32","shape":[%s],"data_offsets":[0,8]}' % ("9" * 10**6)), "shape"),
    "length 2**64": (one(shape=[2**64]), "shape"),
    "product 2**64": (one(shape=[2**32, 2**32]), "overflow"),
    "product of four": (one(shape=[65536] * 4), "overflow"),
    "product 2**64 before a zero": (one(shape=[2**32, 2**32, 0]), "overflow"),
    "product modulo 2**64 is 2": (one(shape=[2**63 + 1, 2]), "overflow"),
    "bits beyond 2**64": (one(shape=[2**60]), "overflow"),
    "100,000 axes of 2": (one(shape=[2] * 100_000), "overflow"),
    "half a byte": (packed({"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}, b"\0"), "shape"),
    "six bits": (packed({"a": {"dtype": "F6_E2M3", "shape": [1], "data_offsets": [0, 1]}}, b"\0"), "shape"),
    **{f"offsets {value}": (text(f'{{"dtype":"F32","shape":[2],"data_offsets":{json.dumps(value)}}}'), "offsets")
       for value in _BAD_OFFSETS if value not in ([1, 9], [2**64 - 8, 2**64])},
    "offsets of 5000 digits": (text('{"dtype":"F32","shape":[2],"data_offsets":[0,%s]}' % ("9" * 5000)), "offsets"),
    "offsets -0": (text('{"dtype":"F32","shape":[2],"data_offsets":[-0,8]}'), "offsets"),
    "offsets 1e400": (text('{"dtype":"F32","shape":[2],"data_offsets":[0,1e400]}'), "offsets"),
    "shifted": (packed({"a": F32 | {"data_offsets": [1, 9]}}, bytes(9)), "hole"),
    "no data": (packed({"a": F32}, b""), "truncated"),
    "a byte too few": (packed({"a": F32}, EIGHT[:7]), "truncated"),
    "a byte too many": (packed({"a": F32}, EIGHT + b"\0"), "hole"),
    "data without tensors": (packed({}, EIGHT), "hole"),
    "offset far away": (packed({"a": F32 | {"data_offsets": [2**40, 2**40 + 8]}}), "truncated"),
    "terabytes": (one(shape=[2**40], data_offsets=[0, 2**42]), "truncated"),
    "hole": (two([0, 4], [5, 8], 8), "hole"),
    "hole at the begin": (two([1, 4], [4, 8], 8), "hole"),
    "overlap": (two([0, 5], [4, 8], 8), "overlap"),
    "same bytes": (two([0, 8], [0, 8], 8), "overlap"),
    "one inside another": (two([0, 8], [2, 4], 8), "overlap"),
    "empty inside another": (two([0, 8], [4, 4], 8), "overlap"),
    "empty after the end": (two([0, 4], [8, 8], 4), "truncated"),
    "overlap bomb": (packed({str(i): F32 for i in range(5000)}), "overlap"),
}  # fmt: skip

FOREIGN: dict[str, tuple[bytes, str]] = {
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
    "HTML": (b"<!DOCTYPE html><html><body>404</body></html>", "HTML"),
    "HTML in lower case": (b"\n<html><body>404</body></html>", "HTML"),
    "zip": (b"PK\x03\x04" + bytes(60), "zip"),
    "pickle": (b"\x80\x04\x95\x10\0\0\0\0\0\0\0}q\0.", "pickle"),
    "npy": (b"\x93NUMPY\x01\0v\0{'descr': '<f4'}", "numpy.load"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(40), "h5py"),
    "gguf": (b"GGUF" + bytes(40), "GGUF"),
    "gzip": (b"\x1f\x8b\x08\0" + bytes(range(40)), "gzip"),
    "index": (b'{"weight_map": {}}', "index"),
    "zeros": (bytes(100), "zeros"),
}
