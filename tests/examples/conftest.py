from emulator.pytest_plugin import control, emulator

__all__ = ["control", "emulator"]
