"""Parquet: a row per sequence, with list columns of tokens and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, ClassVar, final

from chordal._optional import needed
from chordal.formats._arrow import ArrowFormat
from chordal.formats._files import Place

if TYPE_CHECKING:
    import pyarrow as pa


@final
class Parquet(ArrowFormat):
    """Files of Parquet, read by their row groups; see `ArrowFormat`.

    Examples
    --------
    >>> from chordal.formats import Record
    >>> import io
    >>> file = io.BytesIO()
    >>> Parquet().write([Record([["in"], ["Rome"]], ["O", "B-LOC"])], file)
    1
    >>> next(Parquet().batches(io.BytesIO(file.getvalue())))
    ([[['in'], ['Rome']]], [['O', 'B-LOC']], None)
    """

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq")

    def _tables(self, source: Place, size: int) -> Iterator[pa.RecordBatch]:
        with needed("pyarrow", "a Parquet file"):
            import pyarrow.parquet as pq

        with pq.ParquetFile(source) as file:
            names = file.schema_arrow.names
            wanted = [name for name in (self.tokens, self.labels, self.weight) if name in names]
            yield from file.iter_batches(size, columns=wanted or names)

    def _writer(self, file: IO[bytes], schema: pa.Schema) -> pa.RecordBatchWriter:
        with needed("pyarrow", "a Parquet file"):
            import pyarrow.parquet as pq

        return pq.ParquetWriter(file, schema)
