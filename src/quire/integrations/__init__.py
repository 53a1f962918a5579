"""Quire for other frameworks, one file for each. Importing one needs its framework: an extra of its name."""
