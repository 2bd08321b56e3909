"""Stand-in for sgl_kernel's CPU build, which PyPI does not have; SGLang calls it on Intel AMX or when speculating only."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def absent(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is absent: this is a stand-in")

    return absent
