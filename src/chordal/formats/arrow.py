"""Arrow: a row per sequence, with list columns of tokens and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, ClassVar, final

from chordal._optional import needed
from chordal.formats._arrow import ArrowFormat
from chordal.formats._files import Place

if TYPE_CHECKING:
    import pyarrow as pa


@final
class Arrow(ArrowFormat):
    """Files of Arrow (Feather, IPC), which are mapped into memory; see `ArrowFormat`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"tokens": [["in", "Rome"]], "tags": [["O", "B-LOC"]]})
    >>> next(Arrow(labels="tags").batches(table))
    ([[['in'], ['Rome']]], [['O', 'B-LOC']], None)
    """

    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather", ".ipc")

    def _tables(self, source: Place, size: int) -> Iterator[pa.RecordBatch]:
        with needed("pyarrow", "an Arrow file"):
            import pyarrow as pa

        opened = source if hasattr(source, "read") else pa.memory_map(str(source))
        with pa.ipc.open_file(opened) as file:
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=size)

    def _writer(self, file: IO[bytes], schema: pa.Schema) -> pa.RecordBatchWriter:
        with needed("pyarrow", "an Arrow file"):
            import pyarrow as pa

        return pa.ipc.new_file(file, schema)
