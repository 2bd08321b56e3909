from emulator.fixtures import control, emulator

__all__ = ["control", "emulator"]
