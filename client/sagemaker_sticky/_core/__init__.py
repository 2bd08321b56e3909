"""What a turn is, without I/O: both faces, the one that blocks and the asynchronous one, stand on it."""
