"""Adversarial attacks on any PyTorch classifier: the attacks of `sparsight attack`, by the same code."""
import ctypes
import dataclasses
import json
import numbers
import warnings

import torch

from ._library import ops, path

_PASS = ctypes.CFUNCTYPE(ctypes.c_int)
_set_model = ctypes.CDLL(str(path().resolve())).sparsight_set_attacked_model
_set_model.argtypes, _set_model.restype = [ctypes.c_void_p], ctypes.c_void_p


@dataclasses.dataclass(frozen=True)
class AttackResult:
    """What an attack found.

    images: [B,...], within the threat model. Of a single attack they are its points, whether they fool the model or not.
        Of "autoattack" an image stays as it is if no stage fooled it or it was misclassified before.
    clean, robust: [B] bool, whether the model classifies an image correctly as it is, and after every attack.
    stage: [B], the number of the attack in `report["stages"]` that fooled it, -1 for none. Of a targeted attack 0 where
        the model predicts the target, which is not the label, and -1 elsewhere.
    report: what `sparsight attack` writes about it: stages, queries, gradients, warnings.
    target: [B], the class that each image was to become; None of an untargeted attack.
    """
    images: torch.Tensor
    clean: torch.Tensor
    robust: torch.Tensor
    stage: torch.Tensor
    report: dict
    target: torch.Tensor = None

    @property
    def clean_accuracy(self):
        """The share of images that are classified correctly as they are, 0 to 1."""
        return self.clean.double().mean().item()

    @property
    def distance(self):
        """The norm of the smallest perturbation that fools the model, [B] float64; of "fab" and "fab_t", else None.

        0 where the image is misclassified as it is, infinite where none was found; without distances=True also where it
        is beyond eps.
        """
        found = self.report.get("distances")
        if found is None:
            return None
        return torch.tensor([float("inf") if d is None else d for d in found["per_image"]], dtype=torch.float64)

    @property
    def robust_accuracy(self):
        """The share that still is after every attack, 0 to 1; misclassified images are not robust."""
        return self.robust.double().mean().item()

    @property
    def success_rate(self):
        """Of the images that are correct as they are the share that the attack fooled; of a targeted attack, of the
        images with another label the share that the model takes for the target. 0 to 1, NaN of none."""
        if self.target is not None:
            return self.report["success_rate"]["value"]
        return self.robust.logical_not()[self.clean].double().mean().item()

    def __repr__(self):
        success = "" if self.target is None else f", at the target {self.success_rate:.1%}"
        return (f"AttackResult({len(self.robust)} images, clean accuracy {self.clean_accuracy:.1%}, robust accuracy "
                f"{self.robust_accuracy:.1%}{success})")


def attack(model, images, labels, eps="8/255", attack="autoattack", *, target=None, norm="linf", batch=250, seed=0,
           randomised=False, progress=False, **settings):
    """Attacks `model` and returns an AttackResult.

    model: a function from images [b,...] to logits [b,classes], such as an `nn.Module` in evaluation mode that
        normalises its input itself. Its weights stay as they are.
    images: [B,...] float32 or float64 in 0..1; labels: [B] integers.
    eps: radius of the ball around an image, a number or a fraction such as "4/255".
    attack: "autoattack" (apgd-ce, apgd-t, fab-t, square), or one of "fgsm", "pgd", "apgd", "apgd_t", "fab", "fab_t",
        "square".
    target: the class that images are moved to, with "fgsm", "pgd", "apgd", "fab" or "square": a number, integers [B]
        with one for each image, "least_likely" (the wrong class with the smallest logit) or "random" (a wrong class,
        drawn from `seed` and the position of the image). The attack then succeeds where the model predicts the target;
        images whose label it is are left as they are and out of `success_rate`. None: any wrong class is a success.
    norm: "linf" or "l2", or "l1" for the attacks with steps for it, such as "apgd".
    batch: images that are attacked together. The records of a model without noise do not depend on it, except by
        rounding.
    randomised: whether two passes of an image may differ, as with router noise; then `passes` or `version="rand"` averages
        over several.
    settings: those of the attack, such as `steps=20`, `targets=9`, or `distances=True` of "fab" (docs/attacks.md).

    The result is that of `sparsight attack` with the same seed on the same model. Autocast is off in the model's passes;
    a model that is used under autocast enters it itself. Raises ValueError for arguments that
    make no sense, and whatever the model raises.
    """
    pixels, classes, device = _inputs(model, images, labels)
    rule, targets = _target(target)
    if isinstance(model, torch.nn.Module) and model.training and not randomised:
        warnings.warn("the attacked model is in training mode; call model.eval() first", stacklevel=2)
    request = {"attack": attack, "norm": norm, "epsilon": str(eps), "settings": settings, "target": rule,
               "batch": int(batch), "seed": _seed(seed), "randomised": bool(randomised), "progress": bool(progress)}
    raised = []

    def one_pass():
        try:
            given = ops.attacked_pixels().to(device, copy=True)  # a model may change its input in place
            ops.answer_attack(_logits(model(given)).to("cpu"))
            return 0
        except BaseException as error:  # also of Ctrl-C: it is raised again below
            raised.append(error)
            return 1

    function = _PASS(one_pass)
    outer = _set_model(ctypes.cast(function, ctypes.c_void_p))  # of an attack whose model runs another one
    try:
        found, clean, robust, stage, towards, report = ops.attack(json.dumps(request), pixels, classes, targets)
    except RuntimeError:
        if raised:
            raise raised.pop() from None
        raise
    finally:
        _set_model(outer)
    report = json.loads(report)
    for warning in report["warnings"]:
        warnings.warn(warning, stacklevel=2)
    return AttackResult(found.to(images.device), clean, robust, stage, report, towards if len(towards) else None)


def _inputs(model, images, labels):
    if not isinstance(images, torch.Tensor) or images.dtype not in (torch.float32, torch.float64):
        raise ValueError("images must be a tensor of float32 or float64 in 0..1, got "
                         f"{getattr(images, 'dtype', type(images).__name__)}")
    labels = torch.as_tensor(labels)
    if labels.is_floating_point() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be integers [B], got {labels.dtype}")
    weights = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
    device = images.device if weights is None else weights.device
    return images.detach().to("cpu").contiguous(), labels.detach().to("cpu", torch.int64), device


def _target(target):
    """The request's text for `target`, and the tensor of one target per image or None."""
    if target is None:
        return "", None
    if isinstance(target, str) and target in ("least_likely", "random"):
        return target, None
    if isinstance(target, numbers.Integral) and not isinstance(target, bool):
        return str(int(target)), None
    values = None if isinstance(target, (str, bool, float)) else torch.as_tensor(target)
    if values is None or values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise ValueError('target must be None, the number of a class, integers [B], "least_likely" or "random", got '
                         f"{target!r}")
    return "", values.detach().to("cpu", torch.int64)


def _seed(seed):
    if not 0 <= int(seed) < 2**63:
        raise ValueError(f"seed must be 0 .. 2^63 - 1, got {seed}")
    return int(seed)


def _logits(output):
    """The logits of a plain tensor, or of an output object as Hugging Face's models return."""
    logits = getattr(output, "logits", output)
    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"the model must return logits as a tensor, got {type(output).__name__}")
    return logits
