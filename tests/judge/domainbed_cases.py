"""Which algorithms are compared with DomainBed's, and how: settings with which everything of the algorithm happens
within a few steps, where DomainBed keeps the weights, what it logs, and what is undone where docs/dg_algorithms.md
names a difference. The hyper-parameters' names are those that the algorithms declare."""
import dataclasses
from typing import Callable

import torch
import torch.nn.functional as F

ANNEAL = 3  # the update in which penalties begin
SHARED = {"optimizer.lr": 1e-3, "optimizer.weight_decay": 0.01}
ERM_LIKE = {"model/classifier.": "classifier.", "model/": "featurizer."}


def mlp(ours, theirs, layers):
    """Prefixes of DomainBed's class MLP."""
    names = ["input", *[f"hiddens.{i}" for i in range(layers - 2)], "output"]
    return {f"state/{ours}/{i}.": f"{theirs}.{name}." for i, name in enumerate(names)}


def nonlinear(ours, theirs):
    """Prefixes of its nonlinear classifier: linear layers with ReLU between them."""
    return {f"state/{ours}{i}.": f"{theirs}.{2 * i}." for i in range(3)}


def attribute(algorithm, path):
    """A tensor by its dotted name."""
    for part in path.split("."):
        algorithm = algorithm[int(part)] if part.isdigit() else getattr(algorithm, part)
    return algorithm


def plain_logits(algorithm, images):
    return algorithm.predict(images)


@dataclasses.dataclass
class Case:
    title: str  # DomainBed's class
    settings: dict = dataclasses.field(default_factory=dict)  # by our keys; "start.NAME": a weight at the start
    wrong: dict = dataclasses.field(default_factory=dict)  # each must be found if DomainBed alone has it
    names: dict = dataclasses.field(default_factory=lambda: ERM_LIKE)  # prefixes of ours: theirs; None: it has none
    losses: dict = dataclasses.field(default_factory=lambda: {"loss": "loss"})  # ours: theirs, or f(logged, hparams)
    results: dict = dataclasses.field(default_factory=dict)  # tensors that begin in the first step: f(algorithm)
    undo: Callable = lambda algorithm, hparams: None  # of differences that the documentation names
    view: Callable = None  # f(algorithm, our name): a tensor that no name of theirs leads to, or None
    logits: Callable = plain_logits
    weights_until: int = None  # weights are compared after the steps before it
    rounding: float = 1  # the tolerance of its losses is so many times that of others
    note: str = ""  # how far the comparison goes

    def find(self, algorithm, name):
        if name in self.results:
            return self.results[name](algorithm)
        if self.view is not None and (found := self.view(algorithm, name)) is not None:
            return found
        for prefix, theirs in self.names.items():
            if name.startswith(prefix):
                return None if theirs is None else attribute(algorithm, theirs + name[len(prefix):])
        raise AssertionError(f"{self.title}: nobody says what {name} is in DomainBed")


def total(weight):
    """Their loss is without the penalty."""
    return lambda log, hparams: log["loss"] + hparams[weight] * log["penalty"]


def penalised(weight):
    return {"loss": total(weight), "penalty": "penalty"}


def train_projection(algorithm, _):
    """SelfReg's optimiser is made before its projection."""
    options = algorithm.optimizer.defaults
    algorithm.optimizer = torch.optim.Adam([*algorithm.network.parameters(), *algorithm.cdpl.parameters()],
                                           lr=options["lr"], weight_decay=options["weight_decay"])


class OwnCopies(torch.Tensor):
    """A tensor whose detached entries are copies."""

    def detach(self):
        return self.as_subclass(torch.Tensor).detach().clone()


class NotInPlace(torch.Tensor):
    """A tensor that v -= w leaves as it is."""

    def __isub__(self, other):
        return self - other


def keep_operands(algorithm, _):
    """TRM changes the weights of pairs in place before the backward pass that needs them, and the first term of the
    Neumann series as well."""
    series = algorithm.neum
    algorithm.alpha = algorithm.alpha.as_subclass(OwnCopies)
    algorithm.neum = lambda v, head, batch: series(v.as_subclass(NotInPlace), head, batch).as_subclass(torch.Tensor)


def shift_phases(algorithm, hparams):
    """ERM++ trains the head one update longer than it says, and its average begins two updates earlier."""
    hparams["linear_steps"] -= 1
    algorithm.sma_start_iter = SMA_START + 2


def linear_head(algorithm, _):
    """The head of ADRMX is the model's."""
    options = algorithm.opt.defaults
    algorithm.classifier_label_1 = torch.nn.Linear(algorithm.featurizer_label.n_outputs, algorithm.num_classes)
    algorithm.network = torch.nn.Sequential(algorithm.featurizer_label, algorithm.classifier_label_1)
    parts = (algorithm.featurizer_label, algorithm.featurizer_domain, algorithm.classifier_label_1,
             algorithm.classifier_label_2, algorithm.classifier_domain)
    algorithm.opt = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=options["lr"],
                                     betas=options["betas"])


def mtl_view(algorithm, name):
    """MTL's classifier sees the features and the embedding of the domain beside each other."""
    width = algorithm.featurizer.n_outputs
    if name == "model/classifier.weight":
        return algorithm.classifier.weight[:, :width]
    return algorithm.classifier.weight[:, width:] if name == "state/own/mtl.weight" else None


def mtl_logits(algorithm, images):
    return F.linear(algorithm.featurizer(images), mtl_view(algorithm, "model/classifier.weight"),
                    algorithm.classifier.bias)


def adversarial(title, conditional):
    """d_steps = 1: DANN trains the model and the discriminator in turns."""
    classes = {"state/discriminator/classes": "class_embeddings.weight"} if conditional else {}
    return Case(title, {"algorithm.lambda": 0.5, "algorithm.grad_penalty": 0.3, "algorithm.weight_decay_d": 0.01,
                        "algorithm.mlp_width": 32},
                {"algorithm.lambda": 0.6, "algorithm.grad_penalty": 0.4, "algorithm.lr_d": 1.1e-3},
                {**mlp("discriminator", "discriminator", 3), **classes, **ERM_LIKE},
                {"loss": "gen_loss", "discriminator_loss": "disc_loss"})


def short_features(scale):
    """Features by a group norm of this scale. Similarities and distances of long ones are rounded too much to compare:
    MMD multiplies squared distances by 1000, CAD divides products by 0.1."""
    return {"start.bn3.weight": scale}


def away_from_kinks():
    """A start at which no ReLU of the steps has an input within rounding of 0. From that of the others, MLDG meets one
    of 7e-8 in step 3 (and, by the first step of Adam that follows, one of 5e-7): the two sides of it are 3.5 tolerances
    apart, DomainBed in float64 with those two inputs on our side 0.01."""
    return {"start.bn0.bias": -0.1}


def contrastive(title):
    return Case(title, {"algorithm.lambda": 0.5, **short_features(0.3)}, {"algorithm.lambda": 0.6, "algorithm.temperature": 0.11},
                losses={"loss": "total_loss", "bottleneck": "bn_loss"})


def matching(title, gamma=2.0, start=None):
    return Case(title, {"algorithm.gamma": gamma, **(start or {})}, {"algorithm.gamma": 1.25 * gamma},
                losses=penalised("mmd_gamma"))


def matching_kernels(title):
    """A low weight: MMD does not depend on a shift of all features, whose gradient of it is rounding alone."""
    return matching(title, 0.1, short_features(0.02))


SMA_START = 4
IB = {"loss": "loss", "feature_variance": "IB_penalty"}
CASES = {
    "erm": Case("ERM", wrong={"optimizer.lr": 1.1e-3, "optimizer.weight_decay": 0.02}),
    "irm": Case("IRM", {"algorithm.lambda": 10.0, "algorithm.anneal": ANNEAL},
                {"algorithm.lambda": 11.0, "algorithm.anneal": ANNEAL + 1}, losses={"loss": "loss", "penalty": "penalty"}),
    "vrex": Case("VREx", {"algorithm.lambda": 10.0, "algorithm.anneal": ANNEAL},
                 {"algorithm.lambda": 11.0, "algorithm.anneal": ANNEAL + 1},
                 losses={"loss": "loss", "penalty": "penalty"}),
    "group_dro": Case("GroupDRO", {"algorithm.eta": 0.5}, {"algorithm.eta": 0.6},
                      results={"state/group_dro/q": lambda algorithm: algorithm.q}),
    "sd": Case("SD", wrong={"algorithm.weight": 0.12}, losses={"loss": total("sd_reg")}),
    "ib_erm": Case("IB_ERM", {"algorithm.ib_lambda": 10.0, "algorithm.ib_anneal": ANNEAL},
                   {"algorithm.ib_lambda": 11.0, "algorithm.ib_anneal": ANNEAL + 1}, losses=IB),
    "ib_irm": Case("IB_IRM", {"algorithm.ib_lambda": 10.0, "algorithm.ib_anneal": ANNEAL, "algorithm.lambda": 10.0,
                              "algorithm.anneal": ANNEAL - 1},
                   {"algorithm.lambda": 11.0, "algorithm.ib_anneal": ANNEAL + 1},
                   losses={**IB, "irm_penalty": "IRM_penalty"}),
    "fishr": Case("Fishr", {"algorithm.lambda": 100.0, "algorithm.anneal": ANNEAL, "algorithm.ema": 0.9},
                  {"algorithm.lambda": 120.0, "algorithm.ema": 0.8}, losses={"loss": "loss", "penalty": "penalty"},
                  names={**ERM_LIKE, "state/fishr/variances": None}),
    "rdm": Case("RDM", {"algorithm.anneal": ANNEAL, "algorithm.variance_weight": 0.1, "algorithm.lr": 5e-4},
                {"algorithm.lambda": 6.0, "algorithm.variance_weight": 0.2, "algorithm.lr": 6e-4},
                losses={"loss": "total_loss", "penalty": "matching_penalty"}, rounding=10),  # squares times 1000
    "eqrm": Case("EQRM", {"algorithm.burn_in": 5.0, "algorithm.lr": 5e-4}, {"algorithm.quantile": 0.9},
                 weights_until=5, note="burn-in and the first quantile, before its gradient is followed"),
    "coral": matching("CORAL"),
    "mmd": matching_kernels("MMD"),
    "caus_irl_coral": matching("CausIRL_CORAL"),
    "caus_irl_mmd": matching_kernels("CausIRL_MMD"),
    "dann": adversarial("DANN", conditional=False),
    "cdann": adversarial("CDANN", conditional=True),
    "cad": contrastive("CAD"),
    "cond_cad": contrastive("CondCAD"),
    "sagnet": Case("SagNet", {"algorithm.adversary": 0.5}, {"algorithm.adversary": 0.7},
                   {"model/classifier.": "network_c.", "model/": "network_f.", "state/style/0.": "network_s."},
                   {"loss": "loss_c", "style_loss": "loss_s"}),
    "rsc": Case("RSC", {"algorithm.drop_features": 0.3, "algorithm.drop_images": 0.4},
                {"algorithm.drop_features": 0.35, "algorithm.drop_images": 0.5}),
    "adrmx": Case("ADRMX", {"optimizer.weight_decay": 0.0, "optimizer.lr": 1e-3, "algorithm.remix_weight": 0.0,
                            "algorithm.mlp_depth": 3, "algorithm.mlp_width": 32},
                  {"algorithm.disc_weight": 0.9, "algorithm.contrastive_weight": 1.2},
                  {**mlp("adrmx.discriminator", "discriminator", 3), **nonlinear("adrmx.domain_head/", "classifier_domain"),
                   **nonlinear("own/adrmx.head.", "classifier_label_2"), "state/adrmx.domain_model/classifier.": None,
                   "state/adrmx.domain_model/": "featurizer_domain.", "state/own/adrmx.domain.": None,
                   "model/classifier.": "classifier_label_1.", "model/": "featurizer_label."},
                  {"loss": "loss_total", "discriminator_loss": lambda log, _: log["loss_disc"] if len(log) == 1 else None},
                  undo=linear_head, note="with a linear head, and without the remix"),
    "selfreg": Case("SelfReg", wrong={"optimizer.lr": 1.1e-3}, undo=train_projection, note="the projection is trained",
                    names={**ERM_LIKE, **{f"state/own/selfreg.{i}.{ours}": f"cdpl.{3 * i + shift}.{theirs}" for i in range(3)
                                          for ours, shift, theirs in (("weight", 0, "weight"), ("bias", 0, "bias"),
                                                                      ("scale", 1, "weight"), ("shift", 1, "bias"))}}),
    "domain_mixup": Case("Mixup", {"algorithm.alpha": 0.5}, {"optimizer.lr": 1.1e-3}),
    "mldg": Case("MLDG", {"algorithm.beta": 0.5, "algorithm.meta_test": 1, **away_from_kinks()},
                 {"algorithm.beta": 0.6}, losses={}, note="weights and logits alone"),
    "fish": Case("Fish", wrong={"algorithm.meta_lr": 0.6}, losses={},
                 names={"model/classifier.": "network.net.1.", "model/": "network.net.0."},
                 note="weights and logits alone"),
    "and_mask": Case("ANDMask", {"algorithm.tau": 0.5}, {"algorithm.tau": 0.2}),
    "sand_mask": Case("SANDMask", {"algorithm.tau": 0.2, "algorithm.k": 1e-4}, {"algorithm.tau": 0.4, "algorithm.k": 2e-4}),
    "iga": Case("IGA", {"algorithm.penalty": 1.0}, {"algorithm.penalty": 1.2},
                losses=penalised("penalty")),
    "mtl": Case("MTL", {"algorithm.embedding": "noise", "algorithm.ema": 0.9}, {"algorithm.ema": 0.5},
                {**ERM_LIKE}, results={"state/mtl/embeddings": lambda algorithm: algorithm.embeddings}, view=mtl_view,
                logits=mtl_logits, note="with embedding = \"noise\""),
    "transfer": Case("Transfer", {"algorithm.delta": 0.05, "algorithm.lr_d": 0.05, "algorithm.d_steps": 3},
                     {"algorithm.lambda": 1.2, "algorithm.delta": 0.04, "algorithm.lr_d": 0.01},
                     {**ERM_LIKE, "state/adversary/classifier.": "adv_classifier."}, {"loss": "loss", "gap": "gap"}),
    "trm": Case("TRM", {"algorithm.start": ANNEAL, "algorithm.cos_lambda": 0.01, "algorithm.eta": 0.05},
                {"algorithm.start": ANNEAL + 1, "algorithm.eta": 0.5, "algorithm.cos_lambda": 0.012},
                {**ERM_LIKE, **{f"state/trm/{e}.": f"clist.{e}." for e in range(3)}},
                {"loss": lambda log, _: log["nll"] + log["trm_loss"]},
                results={"state/trm.shares": lambda algorithm: algorithm.alpha}, undo=keep_operands),
    "erm_pp": Case("ERMPlusPlus", {"algorithm.linear_steps": 2, "algorithm.linear_lr": 2e-3, "algorithm.sma_start": SMA_START},
                   {"algorithm.linear_lr": 2.2e-3, "algorithm.linear_steps": 3},
                   {"state/ema/classifier.": "network_sma.1.", "state/ema/": "network_sma.0.", **ERM_LIKE},
                   undo=shift_phases, note="its phases as long as they are called",
                   logits=lambda algorithm, images: algorithm.network(images)),
}
