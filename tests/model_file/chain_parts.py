"""Files of small chain models taken apart, to be damaged and put together again."""

import json
import struct

import numpy as np

from chordal._container import _checksum

X = [[["a", "b"], ["b"], ["c"]], [["c", "a"], ["é"]]]
Y = [["A", "B", "A"], ["C", "A"]]
COLUMNS = [[["x", "1"], ["y", "2"], ["x", "3"]], [["z", "1"], ["y", "2"]]]
DENSE = [np.arange(6.0).reshape(3, 2) / 7, np.ones((2, 2))]
TEMPLATE = "U:%x[0,0]\nB\nB:%x[0,1]"
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "<u1"}
KINDS = {"attributes": X, "template": COLUMNS, "dense": DENSE}


class Parts:
    """A model file taken apart; `bytes` puts it together with a right checksum."""

    def __init__(self, raw):
        length = struct.unpack("<Q", raw[:8])[0]
        table = json.loads(raw[8 : 8 + length])
        self.metadata = table.pop("__metadata__")
        self.facts = json.loads(self.metadata["model"])
        body = raw[8 + length :]
        self.arrays = {}
        for name, entry in table.items():
            begin, end = entry["data_offsets"]
            self.arrays[name] = np.frombuffer(body[begin:end], DTYPES[entry["dtype"]]).copy()

    def bytes(self, change_table=lambda table: None, body=None):
        names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
        table, at = {}, 0
        for name, array in sorted(self.arrays.items(), key=lambda item: -item[1].itemsize):
            table[name] = {
                "dtype": names[array.dtype],
                "shape": [array.size],
                "data_offsets": [at, at + array.nbytes],
            }
            at += array.nbytes
        blocks = [self.arrays[name] for name in table]
        change_table(table)
        text = self.facts if isinstance(self.facts, str) else json.dumps(self.facts)
        metadata = {**self.metadata, "model": text, "checksum": _checksum(text, table, blocks)}
        header = json.dumps({"__metadata__": metadata, **table}).encode()
        header += b" " * (-(8 + len(header)) % 64)
        body = b"".join(block.tobytes() for block in blocks) if body is None else body
        return struct.pack("<Q", len(header)) + header + body


def state(model, X):
    """All that a model answers from."""
    return (
        model.weights_.tobytes(),
        model.layout_["transitions"].kept.tobytes(),
        [array.tobytes() for array in model.layout_["node"].rows.arrays().values()],
        model.classes_.tolist(),
        [np.asarray(marginals).tobytes() for marginals in model.predict_marginals(X)],
        repr(model.fit_report_),
        repr(model),
    )
