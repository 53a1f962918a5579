-- A document of several chunks has a vector of its own, the mean of theirs, once all of them have one. It is
-- among `vectors`, in slots that begin at (model + 1,048,576) << 32, under the document's first chunk.
-- Python makes those of older documents.
INSERT INTO facts VALUES ('document_vectors', 'missing');

-- Few documents are promoted, and every search asks which.
CREATE INDEX documents_promoted ON documents (promotion) WHERE promotion <> 'standard';
