"""Converts captured graphs to JSON data and back; data that is no graph raises an error."""

import keyword
import math
from collections.abc import Mapping
from typing import Any

from emberharmony.core.dtypes import ALL
from emberharmony.core.errors import CaptureError, brief
from emberharmony.interop.torch.graph import FLOAT, Graph, Slot
from emberharmony.interop.torch.structure import Signature, Template
from emberharmony.transforms.program import Program, ProgramCall, Register

_DTYPES = frozenset({*(dtype.name for dtype in ALL), FLOAT})
_KINDS = frozenset({"dtype", "cell", "constant", "layer", "input"})


def graph_to_data(graph: Graph) -> dict[str, Any]:
    """Converts a captured graph to data that JSON can write."""
    calls = []
    for call, line in zip(graph.program.calls, graph.lines, strict=True):
        call_data: dict[str, Any] = {"op": call.function, "args": _to_plain_data(call.args)}
        call_data["results"] = list(map(int, call.results))
        call_data |= {"keywords": {k: _to_plain_data(v) for k, v in call.keywords}} if call.keywords else {}
        call_data |= {"several": True} if call.several else {}
        call_data |= {"line": line} if line else {}
        calls.append(call_data)
    return {
        "slots": [[slot.kind, slot.target, slot.dtype, list(slot.shape)] for slot in graph.slots],
        "dtypes": list(graph.dtypes),
        "calls": calls,
        "outputs": _to_plain_data(graph.program.outputs),
        "written": list(graph.written),
        "signature": graph.signature.to_data(),
        "result": graph.result,
        "reference": graph.reference,
    }


def _to_plain_data(value: Any) -> Any:
    if value.__class__ is Register:
        return {"register": int(value)}
    if isinstance(value, (list, tuple)):
        return [_to_plain_data(item) for item in value]
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def graph_of_data(data: Any) -> Graph:
    """Converts JSON data to the captured graph that it describes.

    Raises:
        CaptureError: if the data is not that of a graph; the message has the place.
    """
    reader = _Reader(data)
    return reader.read_graph()


class _Reader:
    def __init__(self, data: Any) -> None:
        self.data = _require_mapping(data, "a graph")

    def read_graph(self) -> Graph:
        data = self.data
        slots = [_read_slot(slot_data) for slot_data in _require_list(data.get("slots"), "slots")]
        dtypes = [_read_dtype(dtype_data) for dtype_data in _require_list(data.get("dtypes"), "dtypes")]
        _require_undamaged(bool(slots) and slots[0].kind == "dtype" and len(dtypes) >= len(slots), "slots", slots[:1])
        self.known = set(range(len(slots)))
        self.count = len(dtypes)
        calls, lines = [], []
        for call_number, call_data in enumerate(_require_list(data.get("calls"), "calls")):
            entry = _require_mapping(call_data, f"call {call_number}")
            calls.append(self._read_call(call_number, entry))
            lines.append(_require_text(entry.get("line", ""), f"the line of call {call_number}"))
        outputs = self._read_value(data.get("outputs"), "outputs")
        _require_undamaged(isinstance(outputs, list), "outputs", outputs)
        written_names = [_require_text(name, "written") for name in _require_list(data.get("written"), "written")]
        result_template = _read_template(data.get("result"), len(outputs) - len(written_names))
        signature = Signature.from_data(data.get("signature"))
        for template in signature.arguments.values():
            _read_template(template, len(slots))
        reference = data.get("reference")
        _require_undamaged(reference is None or isinstance(reference, str), "reference", reference)
        program = Program(len(slots), tuple(calls), tuple(outputs))
        return Graph(program, slots, dtypes, lines, written_names, signature, result_template, reference)

    def _read_call(self, place: int, entry: Mapping[str, Any]) -> ProgramCall:
        location = f"call {place}"
        name = _require_text(entry.get("op"), f"the operator of {location}")
        args = self._read_value(_require_list(entry.get("args"), location), location)
        keywords = _require_mapping(entry.get("keywords", {}), location)
        for parameter_name in keywords:  # names become part of generated Python source
            _require_undamaged(
                isinstance(parameter_name, str)
                and parameter_name.isidentifier()
                and not keyword.iskeyword(parameter_name),
                location,
                parameter_name,
            )
        keyword_arguments = tuple(
            (parameter_name, self._read_value(value, location)) for parameter_name, value in keywords.items()
        )
        result_registers = [
            Register(_require_number(each, self.count, location))
            for each in _require_list(entry.get("results"), location)
        ]
        has_several_results = entry.get("several", False)
        _require_undamaged(
            isinstance(has_several_results, bool) and (has_several_results or len(result_registers) == 1),
            location,
            has_several_results,
        )
        _require_undamaged(self.known.isdisjoint(result_registers), location, result_registers)
        self.known.update(result_registers)
        return ProgramCall(name, tuple(args), tuple(result_registers), keyword_arguments, has_several_results)

    def _read_value(self, value: Any, where: str) -> Any:
        if isinstance(value, list):
            return [self._read_value(item, where) for item in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        tagged_value = _require_mapping(value, where)
        _require_undamaged(len(tagged_value) == 1, where, value)
        tag, content = next(iter(tagged_value.items()))
        if tag == "register":
            register = _require_number(content, self.count, where)
            _require_undamaged(register in self.known, where, value)
            return Register(register)
        if tag == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if tag == "complex" and isinstance(content, list) and len(content) == 2:
            return complex(*[float(component) for component in content if isinstance(component, (int, float))])
        raise _damage_error(where, value)


def _damage_error(where: str, value: Any) -> CaptureError:
    return CaptureError(f"the program is damaged: {where} has {brief(value)}")


def _require_undamaged(holds: bool, where: str, value: Any) -> None:
    if not holds:
        raise _damage_error(where, value)


def _require_mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _damage_error(where, value)
    return value


def _require_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _damage_error(where, value)
    return value


def _require_text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _damage_error(where, value)
    return value


def _require_number(value: Any, count: int, where: str) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise _damage_error(where, value)
    return value


def _read_dtype(value: Any) -> str | None:
    _require_undamaged(value is None or value in _DTYPES, "dtypes", value)
    return None if value is None else str(value)


def _read_slot(value: Any) -> Slot:
    slot_fields = _require_list(value, "slots")
    _require_undamaged(len(slot_fields) == 4 and slot_fields[0] in _KINDS, "slots", value)
    slot_kind, target, dtype, shape = slot_fields
    lengths = _require_list(shape, "slots")
    _require_undamaged(all(isinstance(n, str) or (type(n) is int and n >= 0) for n in lengths), "slots", value)
    return Slot(slot_kind, _require_text(target, "slots"), _read_dtype(dtype), tuple(lengths))


def _read_template(value: Any, count: int) -> Template:
    """Returns a template of results after a check that its leaf numbers are below a count."""
    template_data = _require_mapping(value, "a structure")
    if "leaf" in template_data:
        _require_number(template_data["leaf"], count, "a structure")
    elif "constant" not in template_data:
        item_templates = _require_list(template_data.get("items"), "a structure")
        _require_undamaged(template_data.get("kind") in ("list", "tuple", "dict", "record"), "a structure", value)
        keys = template_data.get("keys")
        _require_undamaged(
            keys is None or (isinstance(keys, list) and len(keys) == len(item_templates)), "a structure", value
        )
        _require_undamaged((keys is None) == (template_data["kind"] in ("list", "tuple")), "a structure", value)
        for item in item_templates:
            _read_template(item, count)
    return dict(template_data)
