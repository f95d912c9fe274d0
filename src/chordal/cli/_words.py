"""Messages of the library in the words of the command line: options instead of parameters."""

from __future__ import annotations

import re

_SAME = ["feature_template", "max_iter", "min_freq", "n_iter_no_change", "pairs", "solver"]
_SAME += ["objective", "l1", "l2", "tol", "scheme", "time_limit", "memory_limit"]
_OPTIONS = {name: "--" + name.replace("_", "-") for name in _SAME} | {
    "allowed_transitions": "--constrain",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "sample_weight": "--weights",
}
# What to do in Python, and the option that does it here.
_PHRASES = {
    "set comment='#'": "give --comment '#'",
    "set separator='\\t'": "give --separator tab",
    "set label=None": "give --no-labels",
    "with strict=False": "with --lenient",
    "use append=True": "use --append",
    'train with FeatureTemplate(text, "wapiti")': "train with --dialect wapiti",
}
# Names with an underscore are parameters wherever they stand. Others, which may be words of a
# sentence or names of files, are parameters where a value or a rule follows.
_LONG = "|".join(name for name in _OPTIONS if "_" in name)
_SHORT = "|".join(name for name in _OPTIONS if "_" not in name)
_PARAMETER = re.compile(
    rf"(?<![\w./-])(?:({_LONG})(?![\w./-])|({_SHORT})(?==| must be | > ))(?:=(['\"]?)([\w.+-]+)\3)?"
)


def in_options(message: str) -> str:
    """The message with options in the place of parameters.

    >>> in_options("allowed_transitions='iobes' is not the scheme of the labels")
    '--constrain iobes is not the scheme of the labels'
    >>> in_options("l2 must be above 0; increase max_iter or set tol=0.1")
    '--l2 must be above 0; increase --max-iter or set --tol 0.1'
    """

    def option(found: re.Match[str]) -> str:
        value = f" {found[4]}" if found[4] else ""
        return _OPTIONS[found[1] or found[2]] + value

    for phrase, instead in _PHRASES.items():
        message = message.replace(phrase, instead)
    return _PARAMETER.sub(option, message)
