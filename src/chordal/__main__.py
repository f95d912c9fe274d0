"""``python -m chordal`` is the command ``chordal``."""

from chordal.cli import main

if __name__ == "__main__":
    main()
