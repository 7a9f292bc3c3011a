"""Audio files and signal helpers. Nothing here knows a model."""
