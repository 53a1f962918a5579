"""Settings without a model, for tests that are about words, files and states."""

from quire.config import DEFAULT, override

WORDS = override(DEFAULT, {"embed": {"model": "none"}})
