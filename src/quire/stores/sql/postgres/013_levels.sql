-- Terms as keys that tell how much a term adds to the score of a chunk: see terms.py. A chunk has a count for
-- each of them. Python makes them of the numbers of before: see keyed.py. It makes the index again, too.
DROP INDEX quire.words_terms;
-- For each key of a term that many chunks have, in what share of them it is.
DELETE FROM quire.common_terms;
