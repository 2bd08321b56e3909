"""Real SGLang on a laptop: stand-ins for packages that need a GPU, settings, and small models."""
