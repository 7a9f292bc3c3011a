"""Model families, one folder each with the same rooms: config, model, text, voices, weights, driver."""
