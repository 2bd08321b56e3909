"""Measured figures, each beside a peer in one run. They print a table and write ``benchmarks/out/NAME.json``."""
