"""The HTTP server of `quire serve`: what it answers, and the safe HTML of documents for its page."""
