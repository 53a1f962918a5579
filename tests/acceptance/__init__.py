"""The founding numbers, one test for each. docs/founding.md lists them."""
