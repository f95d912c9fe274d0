"""Text in files, and feature templates that turn it into attributes."""

from chordal.text.columns import Columns
from chordal.text.feature_template import FeatureTemplate
from chordal.text.items import Items

__all__ = ["Columns", "FeatureTemplate", "Items"]
