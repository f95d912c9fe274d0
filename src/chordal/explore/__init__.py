"""A data set under a model as one page of HTML to browse: `page`; ``chordal explore`` writes it.

`_subjects` chooses the kind of page: sequences, grids, rows, rows of labels or graphs, each in its
module `_of_…`. `_answers` asks the model about the data, and `_summary` counts. `_shapes` says how
examples look; `_weights`, `_unary` and `_links` hold what explanations need. `_packing` and
`_blocks` compress all of it, and `_joining` puts it into the page of the folder `page`.
"""

from chordal.explore._page import page

__all__ = ["page"]
