"""Text as files hold it, and the templates that make attributes of it."""

from chordal.text.columns import Columns
from chordal.text.feature_template import FeatureTemplate
from chordal.text.items import Items

__all__ = ["Columns", "FeatureTemplate", "Items"]
