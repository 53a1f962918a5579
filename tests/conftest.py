"""Hypothesis: new examples on every run of a developer, the same ones on a build machine.

HYPOTHESIS_PROFILE=thorough looks thirty times as hard.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=200)
settings.register_profile("ci", deadline=None, max_examples=200, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=6000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))
