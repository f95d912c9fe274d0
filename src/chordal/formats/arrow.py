"""Arrow: a row per sequence, with list columns of tokens and labels."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import IO, TYPE_CHECKING, ClassVar, final

from chordal._errors import FormatError
from chordal._optional import needed
from chordal.formats._arrow import ArrowFormat, check_growth, size_of
from chordal.formats._arrow_sizes import decompressed_sizes
from chordal.formats._files import Place, name_of

if TYPE_CHECKING:
    import pyarrow as pa


@final
class Arrow(ArrowFormat):
    """Files of Arrow (Feather, IPC), read batch by batch; see `ArrowFormat`.

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

        opened = source if hasattr(source, "read") else pa.OSFile(str(source))
        with pa.ipc.open_file(opened) as file:
            _refuse_bombs(source)
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=size)

    def _writer(self, file: IO[bytes], schema: pa.Schema) -> pa.RecordBatchWriter:
        with needed("pyarrow", "an Arrow file"):
            import pyarrow as pa

        return pa.ipc.new_file(file, schema)


def _refuse_bombs(source: Place) -> None:
    """Refuse batches that say to be far larger than the file, before they are decompressed."""
    if isinstance(source, (str, PathLike)):
        with open(source, "rb") as file:
            _refuse_bombs(file)
        return
    try:
        sizes = list(decompressed_sizes(source))
    except ValueError as error:
        what = f"not a file of arrow that can be read: {error}"
        raise FormatError(name_of(source), what) from None
    for n in sizes:
        check_growth(name_of(source), "bytes, decompressed", n, size_of(source))
