"""Makes protocol.json: what DomainBed's own code gives for seeds, splits and the hyper-parameters of its algorithms.
Needs a checkout of DomainBed (made with commit b93c22a of github.com/facebookresearch/DomainBed), torch and NumPy (made
with 2.4.6); no data and no pretrained weights.

    git clone https://github.com/facebookresearch/DomainBed
    python tests/golden/domainbed/make_protocol.py DomainBed
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

ALGORITHMS = {
    "erm": "ERM", "irm": "IRM", "vrex": "VREx", "group_dro": "GroupDRO", "sd": "SD", "ib_erm": "IB_ERM",
    "ib_irm": "IB_IRM", "fishr": "Fishr", "rdm": "RDM", "eqrm": "EQRM", "coral": "CORAL", "mmd": "MMD",
    "caus_irl_coral": "CausIRL_CORAL", "caus_irl_mmd": "CausIRL_MMD", "dann": "DANN", "cdann": "CDANN", "cad": "CAD",
    "cond_cad": "CondCAD", "sagnet": "SagNet", "rsc": "RSC", "urm": "URM", "adrmx": "ADRMX", "selfreg": "SelfReg",
    "domain_mixup": "Mixup", "mldg": "MLDG", "fish": "Fish", "and_mask": "ANDMask", "sand_mask": "SANDMask",
    "iga": "IGA", "mtl": "MTL", "arm": "ARM", "transfer": "Transfer", "trm": "TRM", "erm_pp": "ERMPlusPlus",
}  # fmt: skip
SETS = {
    "rotated_mnist": "RotatedMNIST", "colored_mnist": "ColoredMNIST", "vlcs": "VLCS", "pacs": "PACS",
    "office_home": "OfficeHome", "terra_incognita": "TerraIncognita", "domain_net": "DomainNet", "sviro": "SVIRO",
    "wilds_camelyon": "WILDSCamelyon", "wilds_fmow": "WILDSFMoW",
}  # fmt: skip
# Drawn for every algorithm and dataset alike. They choose the network and the data, for which sparsight has models and
# settings; vit_dropout is of DomainBed's own ViT, and ERM++ alone uses linear_steps.
OF_EVERY_RUN = {
    "data_augmentation", "resnet18", "resnet50_augmix", "dinov2", "vit", "vit_attn_tune", "freeze_bn", "lars",
    "vit_dropout", "class_balanced", "nonlinear_classifier", "linear_steps",
}  # fmt: skip
SEEDS = [(0, 0), (1, 0), (3, 2), (7, 1)]  # of hyper-parameters and trial; 0: the defaults
TUPLES = [(0, 0), (0, 1), (1, 0), (2, 3), (19, 2), (7,), (785910682, "lr"), ("PACS", "GMOE", [0], 0, 0),
          ("DomainNet", "ERM", [1, 4], 11, 2)]  # fmt: skip
SPLITS = [(20, 0, 0), (20, 0, 1), (99, 1, 3), (2048, 0, 0), (3929, 2, 3)]  # images, trial, environment


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def drawn(registry, seed_hash, name, set_name, seed, trial):
    values = (
        registry.random_hparams(ALGORITHMS[name], SETS[set_name], seed_hash(seed, trial))
        if seed
        else registry.default_hparams(ALGORITHMS[name], SETS[set_name])
    )
    return {key: plain(value) for key, value in values.items()}


def of_every_run(registry, seed_hash, seed, trial):
    found = [
        {key: value for key, value in drawn(registry, seed_hash, name, set_name, seed, trial).items()
         if key in OF_EVERY_RUN}
        for name in ALGORITHMS for set_name in SETS
    ]  # fmt: skip
    assert all(values == found[0] for values in found) and found[0].keys() == OF_EVERY_RUN
    return {"hparams_seed": seed, "trial": trial, "values": found[0]}


def hyperparameters(registry, seed_hash, name, set_name):
    """[values for each of SEEDS, without those of every run]"""
    return [
        {key: value for key, value in drawn(registry, seed_hash, name, set_name, seed, trial).items()
         if key not in OF_EVERY_RUN}
        for seed, trial in SEEDS
    ]  # fmt: skip


def make_rows(registry, seed_hash, name):
    """Datasets with the same values share their rows."""
    groups = {}
    for set_name in SETS:
        values = hyperparameters(registry, seed_hash, name, set_name)
        groups.setdefault(json.dumps(values), []).append(set_name)
    return [
        {"algorithm": name, "sets": sets, "hparams_seed": seed, "trial": trial, "values": values}
        for text, sets in groups.items()
        for (seed, trial), values in zip(SEEDS, json.loads(text))
    ]


def split(misc, images, trial, environment):
    """DomainBed's train.py: int(n * 0.2) images are "out"."""
    out, rest = misc.split_dataset(list(range(images)), int(images * 0.2), misc.seed_hash(trial, environment))
    text = " ".join(map(str, out.keys + rest.keys))
    row = {"images": images, "trial": trial, "environment": environment, "out": len(out)}
    return {**row, "first": (out.keys + rest.keys)[:20], "md5": hashlib.md5(text.encode()).hexdigest()}


def lines(rows):
    return "[\n" + ",\n".join("    " + json.dumps(row) for row in rows) + "\n  ]"


def main(folder):
    sys.path.insert(0, folder)
    from domainbed import hparams_registry
    from domainbed.lib import misc

    parts = {
        "seed_hashes": [{"of": list(of), "hash": misc.seed_hash(*of)} for of in TUPLES],
        "splits": [split(misc, *of) for of in SPLITS],
        "hyperparameters_of_every_run": [of_every_run(hparams_registry, misc.seed_hash, *of) for of in SEEDS],
        "hyperparameters": [row for name in ALGORITHMS for row in make_rows(hparams_registry, misc.seed_hash, name)],
    }
    text = "{\n" + ",\n".join(f'  "{key}": {lines(rows)}' for key, rows in parts.items()) + "\n}\n"
    (Path(__file__).parent / "protocol.json").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER_OF_DOMAINBED")
    main(sys.argv[1])
