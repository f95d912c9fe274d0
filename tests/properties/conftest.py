"""Properties are tried on a few examples, always the same, or on CHORDAL_EXAMPLES new ones."""

import os

from hypothesis import HealthCheck, settings

asked = os.environ.get("CHORDAL_EXAMPLES")
settings.register_profile(
    "chordal",
    max_examples=int(asked or 30),
    derandomize=asked is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("chordal")
