"""Features: linear maps from weights to potentials, and their adjoints."""

from chordal._blocks import unit_of
from chordal.features._arrays import ArrayInput
from chordal.features._base import Input, RowFeatures, Rows, WeightKeys
from chordal.features._entries import RowEntries, packed_flags
from chordal.features._occurrences import Occurrences
from chordal.features.attribute_features import AttributeFeatures
from chordal.features.attributes import AttributeInput, VocabularyInput
from chordal.features.batch import Batch, Cliques
from chordal.features.clique_template import (
    TABLES,
    CliqueTemplate,
    TableLayout,
    check_described,
    check_templates,
    itself,
)
from chordal.features.columns import Columns
from chordal.features.dense import DenseFeatures, DenseInput
from chordal.features.items import Items
from chordal.features.layout import Layout, Shard, Sums, TemplateLayout
from chordal.features.matching import matching_potentials
from chordal.features.reader import Reader, input_for, length_of
from chordal.features.sparse import SparseInput
from chordal.features.template import FeatureTemplate, TemplateInput
from chordal.features.weights import layout_of, transferred

__all__ = [
    "TABLES",
    "ArrayInput",
    "AttributeFeatures",
    "AttributeInput",
    "Batch",
    "CliqueTemplate",
    "Cliques",
    "Columns",
    "DenseFeatures",
    "DenseInput",
    "FeatureTemplate",
    "Input",
    "Items",
    "Layout",
    "Occurrences",
    "Reader",
    "RowEntries",
    "RowFeatures",
    "Rows",
    "Shard",
    "SparseInput",
    "Sums",
    "TableLayout",
    "TemplateInput",
    "TemplateLayout",
    "VocabularyInput",
    "WeightKeys",
    "check_described",
    "check_templates",
    "input_for",
    "itself",
    "layout_of",
    "length_of",
    "matching_potentials",
    "packed_flags",
    "transferred",
    "unit_of",
]
