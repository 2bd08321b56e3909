"""Stand-ins for packages SGLang imports at start-up but does not call on a CPU."""
import importlib.abc
import importlib.machinery
import sys
import types


class _Names(type):
    """A class every public attribute of which exists (as an enum's members do)."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Absent(types.ModuleType):
    """A module, function or decorator: every attribute exists, and decorating with it changes nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "active":  # triton.runtime.driver.active, as triton answers without a GPU
            raise RuntimeError("0 active drivers")
        if name.endswith(("Error", "Resources")):
            return type(name, (Exception,), {})
        if name[0].isupper():
            return _Names(name, (), {"__init__": lambda self, *args, **kwargs: None})
        return Absent(f"{self.__name__}.{name}")

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getitem__(self, item):
        return self

    def __bool__(self):
        return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, package):
        self.prefix = package + "."

    def find_spec(self, name, path=None, target=None):
        if name.startswith(self.prefix):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        pass


def install(package):
    """Called by a stand-in's __init__.py: from now on all of its attributes and submodules exist."""
    sys.modules[package].__class__ = Absent
    sys.meta_path.insert(0, _Finder(package))
