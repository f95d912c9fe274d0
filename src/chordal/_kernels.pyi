# The compiled module: its arguments are checked where it is called.
from typing import Any

def __getattr__(name: str) -> Any: ...
