"""Which images of MSRC are for training, validation and testing."""

from __future__ import annotations

#: By the first number of an image's name, the second ones; all others are for training. The
#: split is that of Shotton et al. (2006): 276, 59 and 256 images.
VALIDATION = {
    "1": "2 25 28",
    "2": "2 11 27",
    "3": "6 23 28",
    "4": "11 19 22",
    "5": "5 7 30",
    "6": "19 21 30",
    "7": "13 24 30",
    "8": "7 15 20",
    "9": "8 15 25",
    "10": "19 23 26",
    "11": "17 21 28",
    "12": "5 20 25",
    "13": "6 23 30",
    "14": "4 7 24",
    "15": "8 9 15",
    "16": "2 20 29",
    "17": "3 24 27",
    "18": "1 10 14",
    "19": "1 9 22",
    "20": "15 19",
}
TEST = {
    "1": "1 3 9 12 13 14 16 18 23 24 26 27 30",
    "2": "7 8 10 14 16 17 18 22 25 26 28 29 30",
    "3": "5 7 8 9 12 13 16 18 20 22 26 29 30",
    "4": "1 3 10 13 15 16 20 23 24 26 27 28 30",
    "5": "2 3 4 10 11 12 13 14 17 19 23 27 28",
    "6": "2 3 5 7 10 11 12 13 15 16 22 24 25",
    "7": "3 5 7 10 12 14 15 21 22 23 25 26 29",
    "8": "2 4 6 8 10 11 17 18 19 22 24 27 29",
    "9": "1 2 3 5 7 9 13 17 18 19 20 24 26",
    "10": "1 2 3 4 7 12 16 17 18 22 25 28 29 31",
    "11": "3 4 5 6 7 8 9 13 14 15 18 19 25",
    "12": "2 7 8 9 12 13 14 16 19 23 26 27 30 31 33",
    "13": "1 2 4 7 8 9 11 17 20 21 22 25 27",
    "14": "5 6 9 10 13 14 15 16 17 18 20 21 28",
    "15": "1 2 3 5 6 7 13 19 22 23",
    "16": "1 4 5 6 8 10 12 13 14 16 23 24 27",
    "17": "4 5 6 8 12 15 17 19 23 25 26 28 30",
    "18": "3 5 6 7 12 20 21 23 24 26 28 29 30",
    "19": "3 7 8 12 13 15 16 20 23 24 28 29 30",
    "20": "1 2 6 8 9 14 16 17 20",
}


def part_of(name: str) -> str:
    """ "train", "validation" or "test", by the name of an image.

    Examples
    --------
    >>> part_of("1_1_s"), part_of("1_2_s"), part_of("1_4_s")
    ('test', 'validation', 'train')
    """
    scene, _, rest = name.partition("_")
    number = rest.partition("_")[0]
    for part, split in (("validation", VALIDATION), ("test", TEST)):
        if number in split.get(scene, "").split():
            return part
    return "train"
