"""Real SGLang on a laptop: stand-ins for GPU-only packages, and small models."""
