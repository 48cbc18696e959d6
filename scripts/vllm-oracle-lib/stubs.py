"""Imports vLLM's scheduler without what it does not use.

Of the package vllm only the modules of REAL are loaded, unmodified. All other modules of vllm and
all packages outside the standard library (torch, numpy, transformers, ...) are stubs. A stub has
every attribute, can be called, subclassed and used as a decorator or in a type. Code that decides
something by a stub (truth, length, iteration, comparison) fails with the stub's name, so no stub
can change what the scheduler does unnoticed.
"""

import abc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import typing

REAL = [
    "vllm.config.speculative", "vllm.envs", "vllm.multimodal.utils", "vllm.sampling_params", "vllm.utils", "vllm.utils.hashing", "vllm.utils.math_utils",
    "vllm.v1.core.*", "vllm.v1.engine", "vllm.v1.engine.core", "vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_spec_registry",
    "vllm.distributed.kv_transfer.kv_connector.utils", "vllm.distributed.kv_transfer.kv_connector.v1.multi_connector",
    "vllm.distributed.kv_transfer.kv_connector.v1.nixl.base_scheduler",
    "vllm.distributed.kv_transfer.kv_connector.v1.nixl.pull_scheduler", "vllm.distributed.kv_transfer.kv_connector.v1.nixl.metadata",
    "vllm.distributed.kv_transfer.kv_connector.v1.offloading.*", "vllm.v1.kv_offload.base", "vllm.v1.kv_offload.config",
    "vllm.v1.kv_offload.cpu.*", "vllm.v1.metrics.cache_hit_source", "vllm.v1.metrics.stats", "vllm.v1.outputs", "vllm.v1.request", "vllm.v1.spec_decode.dynamic.utils", "vllm.v1.structured_output.request", "vllm.v1.structured_output.backend_types", "vllm.v1.structured_output.utils", "vllm.v1.utils",
]


class StubError(Exception):
    """vLLM's code used the value of a stub."""


class StubType(abc.ABCMeta):
    """The type of stubs and of the classes derived from them."""

    def __new__(mcs, name, bases, namespace, **_):
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name, bases, namespace, **_):
        super().__init__(name, bases, namespace)

    def __getattr__(cls, name):
        if not cls.__dict__.get("is_stub") or name.startswith("__"):
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        child = stub(f"{cls.__name__}.{name}")
        setattr(cls, name, child)
        return child

    def __call__(cls, *args, **named):
        if not cls.__dict__.get("is_stub"):
            return super().__call__(*args, **named)
        decorates = len(args) == 1 and not named and callable(args[0])
        return args[0] if decorates else stub(f"{cls.__name__}()")

    def __getitem__(cls, _):
        return cls

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        return None

    def _fail(cls, *_):
        if cls.__dict__.get("is_stub"):
            raise StubError(f"vLLM's code uses the value of {cls.__name__}, which is a stub")
        return True

    __bool__ = __len__ = __iter__ = __lt__ = __gt__ = __le__ = __ge__ = __int__ = __index__ = _fail


def stub(name):
    return StubType(name, (Stub,), {"is_stub": True})


class Stub(metaclass=StubType):
    """The base of all stubs."""

    def __init_subclass__(cls, **_):
        super().__init_subclass__()


class StubModule(types.ModuleType):
    """A module in which every name exists."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == "typing_extensions" and hasattr(typing, name):
            return getattr(typing, name)
        value = SPECIAL.get(f"{self.__name__}.{name}") or stub(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Factory:
    """A default of a Struct's field that is made for each instance."""

    def __init__(self, default_factory=None, default=None, name=None):
        self.make = default_factory or (lambda: default)


class Struct(Stub):
    """msgspec.Struct: a class whose fields are its annotations."""

    def __init_subclass__(cls, **_):
        super().__init_subclass__()
        cls.field_names = [f for c in reversed(cls.__mro__) for f in c.__dict__.get("__annotations__", {})]

    def __init__(self, *args, **named):
        named.update(zip(self.field_names, args))
        for field in self.field_names:
            default = getattr(type(self), field, None)
            value = default.make() if isinstance(default, Factory) else default
            setattr(self, field, named.get(field, value))
        if unknown := set(named) - set(self.field_names):
            raise TypeError(f"{type(self).__name__} has no fields {sorted(unknown)}")
        if hasattr(type(self), "__post_init__"):
            self.__post_init__()


class Platform:
    """vllm.platforms.current_platform: none of the special ones."""

    device_type = "cuda"

    def __getattr__(self, name):
        if name.startswith("is_"):
            return lambda: False
        if name.startswith("register_"):
            return lambda *_: None
        raise AttributeError(name)


SPECIAL = {"msgspec.Struct": Struct, "msgspec.field": Factory, "vllm.platforms.current_platform": Platform(),
           "numpy.array": lambda values, dtype=None: values}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the real modules in the directory of a vLLM version and makes stubs of all others."""

    def __init__(self, directory):
        self.directory = directory

    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names or root.startswith("_"):
            return None
        if is_real(name):
            file = self.directory.joinpath(*name.split("."))
            if (file / "__init__.py").exists():
                return importlib.util.spec_from_file_location(name, file / "__init__.py",
                                                              submodule_search_locations=[str(file)])
            if file.with_suffix(".py").exists():
                return importlib.util.spec_from_file_location(name, file.with_suffix(".py"))
            if root != "vllm" or not file.is_dir():
                raise ModuleNotFoundError(f"no module named {name}", name=name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StubModule(spec.name)

    def exec_module(self, module):
        pass


def is_real(name):
    return any(name == r or r.endswith(".*") and (name + ".").startswith(r[:-1]) for r in REAL)


def load(directory):
    """Makes the modules of a vLLM version importable, once in a process."""
    sys.meta_path.insert(0, Finder(directory))
    sys.dont_write_bytecode = True
