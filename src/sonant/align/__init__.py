"""Word times by warping: speech whose word times are known is laid over a recording of the same words."""
