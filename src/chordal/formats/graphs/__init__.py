"""Graphs in JSON Lines: one graph per line, an object with its nodes, edges and labels.

Other formats contain labelled sequences. `read_graphs` and `write_graphs` are for `GraphCRF` and
`TypedGraphCRF`.
"""

from chordal.formats.graphs._reading import Graph, read_graphs
from chordal.formats.graphs._writing import write_graphs

__all__ = ["Graph", "read_graphs", "write_graphs"]
