"""MSRC: 591 photographs of things of 23 kinds, as pixels and as graphs of superpixels."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from chordal.datasets._files import found
from chordal.datasets._image_folders import by_colour, divided, labelled_folder
from chordal.datasets._images import LabelledImages, labelled_images
from chordal.datasets._npz import arrays_of, items, require

SOURCE = "the images of MSRC's object class recognition, version 2"
NAMES = ("msrc_v2_quarter.npz", "MSRC_ObjCategImageDatabase_v2/Images", "Images")
COLOURS = {
    "void": (0, 0, 0),
    "building": (128, 0, 0),
    "grass": (0, 128, 0),
    "tree": (128, 128, 0),
    "cow": (0, 0, 128),
    "horse": (128, 0, 128),
    "sheep": (0, 128, 128),
    "sky": (128, 128, 128),
    "mountain": (64, 0, 0),
    "aeroplane": (192, 0, 0),
    "water": (64, 128, 0),
    "face": (192, 128, 0),
    "car": (64, 0, 128),
    "bicycle": (192, 0, 128),
    "flower": (64, 128, 128),
    "sign": (192, 128, 128),
    "bird": (0, 64, 0),
    "book": (128, 64, 0),
    "chair": (0, 192, 0),
    "road": (128, 64, 128),
    "cat": (0, 192, 128),
    "dog": (128, 192, 128),
    "body": (64, 64, 0),
    "boat": (192, 64, 0),
}


@dataclass(frozen=True)
class MSRCSuperpixels:
    """Images as graphs: superpixels that touch are neighbours.

    Attributes
    ----------
    X : list of float64 arrays [n_superpixels, 51]
    y : list of uint8 arrays [n_superpixels]
        The place in `class_names`; 0 is void: the label is unknown.
    edges : list of int64 arrays [n_edges, 2]
    boundary : list of float64 arrays [n_edges]
        How many pixels long the boundary between both is.
    area : list of int64 arrays [n_superpixels]
        How many pixels a superpixel has.
    names, class_names : lists of str
    """

    X: list[NDArray[np.float64]]
    y: list[NDArray[np.uint8]]
    edges: list[NDArray[np.int64]]
    boundary: list[NDArray[np.float64]]
    area: list[NDArray[np.int64]]
    names: list[str]
    class_names: list[str]


def load_msrc_images(path: str | PathLike[str] | None = None) -> LabelledImages:
    """The images of Shotton et al. (2006) at a quarter of their size, with a label per pixel.

    Parameters
    ----------
    path : str or Path, optional
        The folder with Images and GroundTruth, as they are distributed, or the file
        msrc_v2_quarter.npz, made of them; or the folder of either. By default
        $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        An image or array is missing or invalid.
    """
    file = found(path, "images", NAMES, SOURCE)
    if file.name == "Images":
        folders = "Images", "GroundTruth/*_GT.bmp"
        size, read = divided(lambda of: 4), by_colour(list(COLOURS.values()))
        return labelled_folder(file.parent, *folders, size, read, list(COLOURS), ignore_label=0)
    classes = arrays_of(file, class_names="U1")["class_names"].tolist()
    return labelled_images(file, "label", classes, ignore_label=0)


def load_msrc_superpixels(path: str | PathLike[str] | None = None) -> MSRCSuperpixels:
    """The same images as graphs of superpixels, with 51 features each.

    Parameters
    ----------
    path : str or Path, optional
        The file msrc_v2_superpixels.npz, or its folder; by default $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        An array is missing or invalid.
    """
    file = found(path, "images", ("msrc_v2_superpixels.npz",), SOURCE)
    a = arrays_of(
        file,
        X="f2",
        label="u1",
        node_offsets="iu1",
        edges="iu2",
        edge_boundary_len="iu1",
        edge_offsets="iu1",
        area="iu1",
        names="U1",
        class_names="U1",
    )
    nodes, lines, n = a["node_offsets"], a["edge_offsets"], len(a["names"])
    require(len(nodes) == len(lines) == n + 1, file, f"offsets must be those of {n} images")
    require(len(a["label"]) == len(a["area"]) == len(a["X"]), file, "X, label and area must fit")
    require(a["edges"].shape == (len(a["edge_boundary_len"]), 2), file, "edges must have two ends")
    classes = a["class_names"].tolist()
    require(a["label"].max(initial=0) < len(classes), file, f"label must be below {len(classes)}")
    edges = [e.astype(np.int64) for e in items(file, "edges", a["edges"], lines)]
    for i, (e, size) in enumerate(zip(edges, np.diff(nodes), strict=True)):
        inside = e.size == 0 or (e.min() >= 0 and e.max() < size)
        require(inside, file, f"edges of image {i} must join its superpixels 0 to {size - 1}")
    return MSRCSuperpixels(
        [x.astype(np.float64) for x in items(file, "X", a["X"], nodes)],
        list(items(file, "label", a["label"], nodes)),
        edges,
        [
            b.astype(np.float64)
            for b in items(file, "edge_boundary_len", a["edge_boundary_len"], lines)
        ],
        [s.astype(np.int64) for s in items(file, "area", a["area"], nodes)],
        [str(name) for name in a["names"]],
        classes,
    )
