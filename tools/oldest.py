"""The oldest versions that pyproject.toml allows, as pip takes them: ``python tools/oldest.py``.

Of the package itself and of the extra scikit-learn; ``make oldest`` tests with them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

EXTRAS = ("scikit-learn",)


def pins(text: str) -> list[str]:
    """Each requirement at its lower bound.

    >>> pins('dependencies = ["numpy>=1.24", "rich>=13"]')
    ['numpy==1.24.*', 'rich==13.*']
    """
    lists = re.findall(rf"^(?:dependencies|{'|'.join(EXTRAS)}) = \[(.*?)\]", text, re.M | re.S)
    found = [re.findall(r'"([A-Za-z0-9_.-]+)>=([0-9.]+)"', own) for own in lists]
    return [f"{name}=={version}.*" for own in found for name, version in own]


if __name__ == "__main__":
    project = Path(__file__).parents[1] / "pyproject.toml"
    sys.stdout.write(" ".join(pins(project.read_text())) + "\n")
