"""A data set under a model as one page of HTML to browse: `page`; ``chordal explore`` writes it.

`_answers` asks the model about the data, `_shapes` says how examples look, `_weights` takes what
explanations need, `_summary` counts, `_blocks` packs all of it, and `_joining` puts it into the
page of the folder `page`.
"""

from chordal.explore._page import page

__all__ = ["page"]
