import absent_module

__version__ = "0.0.0"

absent_module.install(__name__)
