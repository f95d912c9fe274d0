"""Parquet: a row per sequence, with list columns of tokens and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, ClassVar, final

from chordal._optional import needed
from chordal.formats._arrow import ArrowFormat, check_growth, size_of
from chordal.formats._files import Place, name_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


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
            self._check_columns(names, name_of(source))
            wanted = [name for name in (self.tokens, self.labels, self.weight) if name in names]
            _refuse_bombs(file.metadata, name_of(source), size_of(source))
            yield from file.iter_batches(size, columns=wanted)

    def _writer(self, file: IO[bytes], schema: pa.Schema) -> pa.RecordBatchWriter:
        with needed("pyarrow", "a Parquet file"):
            import pyarrow.parquet as pq

        return pq.ParquetWriter(file, schema)


def _refuse_bombs(metadata: pq.FileMetaData, name: str, size: int) -> None:
    """Refuse what is far larger than its file, by the footer: runs of one value cost nothing."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    columns = [group.column(k) for group in groups for k in range(group.num_columns)]
    check_growth(name, "values", sum(own.num_values for own in columns), size)
    grown = sum(own.total_uncompressed_size for own in columns)
    check_growth(name, "bytes, decompressed", grown, size)
