"""Features: linear maps from weights to potentials, and their adjoints."""

from chordal._blocks import unit_of
from chordal.features._base import Input, RowFeatures, WeightKeys
from chordal.features.arrays import ArrayInput, DenseFeatures, DenseInput, SparseInput
from chordal.features.attributes import AttributeFeatures, AttributeInput, VocabularyInput
from chordal.features.batch import Batch, Cliques, LabelCounts, Occurrences, Rows
from chordal.features.clique_template import (
    PATTERNS,
    TABLES,
    Beside,
    CliqueTemplate,
    TableLayout,
    check_described,
    check_templates,
    itself,
    types_of,
)
from chordal.features.entries import RowEntries, packed_flags
from chordal.features.joining import (
    fitted_to,
    head_of,
    joined_batches,
    joined_targets,
    outlined,
)
from chordal.features.layout import Layout, Shard, Squares, Sums, transferred
from chordal.features.merging import known_columns, merged_readers, renumbered_batch
from chordal.features.parts import Part, Parts
from chordal.features.reader import Reader, input_for, length_of
from chordal.features.seen import Seen, layout_from, layout_of, merged, seen_in
from chordal.features.shared import SharedFeatures, SharedInput, SharedRows
from chordal.features.spilling import Spilled, fetch, release
from chordal.features.template import TemplateInput
from chordal.features.template_layout import TemplateLayout
from chordal.features.vectors import VectorInput

__all__ = [
    "PATTERNS",
    "TABLES",
    "ArrayInput",
    "AttributeFeatures",
    "AttributeInput",
    "Batch",
    "Beside",
    "CliqueTemplate",
    "Cliques",
    "DenseFeatures",
    "DenseInput",
    "Input",
    "LabelCounts",
    "Layout",
    "Occurrences",
    "Part",
    "Parts",
    "Reader",
    "RowEntries",
    "RowFeatures",
    "Rows",
    "Seen",
    "Shard",
    "SharedFeatures",
    "SharedInput",
    "SharedRows",
    "SparseInput",
    "Spilled",
    "Squares",
    "Sums",
    "TableLayout",
    "TemplateInput",
    "TemplateLayout",
    "VectorInput",
    "VocabularyInput",
    "WeightKeys",
    "check_described",
    "check_templates",
    "fetch",
    "fitted_to",
    "head_of",
    "input_for",
    "itself",
    "joined_batches",
    "joined_targets",
    "known_columns",
    "layout_from",
    "layout_of",
    "length_of",
    "merged",
    "merged_readers",
    "outlined",
    "packed_flags",
    "release",
    "renumbered_batch",
    "seen_in",
    "transferred",
    "types_of",
    "unit_of",
]
