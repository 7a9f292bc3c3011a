"""Where models come from: the catalogue of known checkpoints, and the cache."""
