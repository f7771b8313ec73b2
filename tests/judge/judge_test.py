"""Compares every router, capacity rule and balance loss with an independent NumPy implementation (routers.py, expert_routers.py,
capacity.py, losses.py), on random layers in float64.

Each router gets SPARSIGHT_JUDGE_LAYERS layers (200) through the Python package and SPARSIGHT_JUDGE_PROCESSES (3) through
`sparsight moe`. For a closer look SPARSIGHT_JUDGE_ROUTERS restricts the run to some routers, SPARSIGHT_JUDGE_SEED to one layer.
"""
import concurrent.futures
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import support  # noqa: E402,F401  (finds the built package)
import numpy as np  # noqa: E402

import sparsight  # noqa: E402
import expert_routers  # noqa: E402
import found  # noqa: E402
import layers  # noqa: E402
import losses  # noqa: E402
import routers  # noqa: E402
from reference import TOLERANCE, compare, expected  # noqa: E402

ROUTERS = {**routers.ROUTERS, **expert_routers.ROUTERS}
LAYERS = int(os.environ.get("SPARSIGHT_JUDGE_LAYERS", 200))
PROCESSES = int(os.environ.get("SPARSIGHT_JUDGE_PROCESSES", 3))


def make(name, seed):
    """A random layer, and the package's router for it."""
    registered = {option["name"]: option["default"] for option in sparsight.routers()[name]["options"]}
    layer, rng = layers.random_layer(name, seed, registered, sorted(losses.LOSSES))
    router = sparsight.Router(name, layer.x.shape[1], layer.experts, prefix=layer.prefix, capacity=layer.capacity,
                              losses={**layer.losses, **layer.variants}, **{"seed": 0, **layer.chosen})
    shapes = {n: (tuple(getattr(router, n).shape), not getattr(router, n).is_floating_point()) for n in router._weight_names}
    layers.fill(layer, rng, shapes, router.sample_names)
    return layer, router.double()


def judge(name, seed, folder=None):
    """Compares one layer. Returns (numbers compared, largest deviation)."""
    layer, router = make(name, seed)
    if folder is None:
        out, printed = found.through_package(layer, router), {}
    else:
        out, printed = found.through_program(layer, folder)
    if name == "base" and layer.training:
        layer.found = out["expert"][np.argsort(out["token"])]
    return compare(layer, out, printed, expected(layer, ROUTERS[name](layer)))


def try_one(job):
    name, seed, through_program = job
    try:
        if not through_program:
            return name, True, *judge(name, seed)
        with tempfile.TemporaryDirectory() as folder:
            return name, True, *judge(name, seed, pathlib.Path(folder))
    except Exception as error:  # noqa: BLE001  (every layer is judged, whatever one of them does)
        if os.environ.get("SPARSIGHT_JUDGE_SEED"):
            raise
        return name, False, f"{name} {seed}{' (sparsight moe)' if through_program else ''}: {type(error).__name__}: {error}", 0


def main():
    missing = [f"router {name}" for name in sparsight.routers() if name not in ROUTERS]
    missing += [f"loss {name}" for name in sparsight.losses.names() if name not in losses.LOSSES]
    if missing:
        sys.exit(f"registered, but tests/judge has no counterpart: {', '.join(missing)}")
    wanted = os.environ.get("SPARSIGHT_JUDGE_ROUTERS", ",".join(ROUTERS)).split(",")
    seeds = os.environ.get("SPARSIGHT_JUDGE_SEED")
    seeds = range(LAYERS) if seeds is None else [int(seeds)]
    results = [try_one((name, seed, False)) for name in wanted for seed in seeds]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results += pool.map(try_one, [(name, seed, True) for name in wanted for seed in range(PROCESSES)])
    failures = [result[2] for result in results if not result[1]]
    for name in wanted:
        passed = [result for result in results if result[0] == name and result[1]]
        print(f"{name:22} {len(passed):4} layers, {sum(r[2] for r in passed):8} numbers, largest deviation "
              f"{max((r[3] for r in passed), default=0):.1e}")
    print(f"{len(results) - len(failures)} of {len(results)} layers agree within {TOLERANCE:g}")
    for failure in failures[:40]:
        print(failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
