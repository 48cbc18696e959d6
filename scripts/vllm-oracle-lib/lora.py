"""LoRA adapters: the configuration of a case, and how long steps wait for them and take with them."""

import math
import types


def configure(config, engine):
    """Sets the adapters of a case in VllmConfig."""
    if most := engine.get("max_loras"):
        config.lora_config = types.SimpleNamespace(max_loras=most, max_cpu_loras=engine.get("max_cpu_loras", most))


def request(names, name):
    """The LoRARequest of an adapter, None for none. Its number is that of its first request."""
    if name is None:
        return None
    number = names.setdefault(name, len(names) + 1)
    return types.SimpleNamespace(lora_name=name, name=name, lora_path=f"/{name}", lora_int_id=number, adapter_id=number)


class Adapters:
    """What is in memory, as in LRUCacheWorkerLoRAManager and LRUCacheLoRAModelManager, which need a model. vLLM takes the
    adapters of a step in the order of a set, here they are in that of the batch."""

    def __init__(self, engine):
        self.engine = engine
        self.host, self.slots = {}, {}  # the least recently used one first

    def use(self, names):
        """Makes the adapters of a step active, and returns how long the step waits for it."""
        loads = copies = 0
        for name in names:
            if name not in self.host:
                loads += 1
                if len(self.host) + 1 > self.engine["max_cpu_loras"]:
                    oldest = next(iter(self.host))
                    del self.host[oldest]
                    self.slots.pop(oldest, None)
            touch(self.host, name)
            if name not in self.slots:
                copies += 1
                if len(self.slots) >= self.engine["max_loras"]:
                    del self.slots[next(iter(self.slots))]
            touch(self.slots, name)
        return loads * self.engine["lora_load_us"] + copies * self.engine["lora_copy_us"]

    def step_us(self, us, names):
        """The time of a step that takes us without adapters."""
        if names:
            us = math.floor(us * self.engine["lora_step_factor"] + self.engine["lora_adapter_us"] * len(names) + 0.5)
        return us + self.use(names)


def touch(cache, name):
    cache.pop(name, None)
    cache[name] = True


def random_adapters(rng, engine, requests):
    """Adapters for the requests of a case, and what the engine needs for them."""
    most = rng.choice([1, 1, 2, 3, 4])
    engine.update(max_loras=most, max_cpu_loras=most + rng.choice([0, 0, 1, 3]), lora_load_us=rng.choice([0, 500, 20000]),
                  lora_copy_us=rng.choice([0, 100, 2000]), lora_step_factor=rng.choice([1, 1.25, 1.5]),
                  lora_adapter_us=rng.choice([0, 0, 50, 12.5]))
    adapters, without = rng.randint(1, 2 * most + 3), rng.choice([0, 0, 0.2, 0.5])
    for r in requests:
        if rng.random() >= without:
            r["adapter"] = f"adapter-{min(rng.randrange(adapters), rng.randrange(adapters))}"
