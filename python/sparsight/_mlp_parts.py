"""What the layers made from an existing MLP read of it: timm's `Mlp`, or another module with fc1, act and fc2."""
from torch import nn


def linear_layers(mlp):
    """Returns fc1 (D to F) and fc2 (F to D). Raises TypeError for MLPs of another form."""
    fc1, fc2 = getattr(mlp, "fc1", None), getattr(mlp, "fc2", None)
    if not (isinstance(fc1, nn.Linear) and isinstance(fc2, nn.Linear) and fc1.out_features == fc2.in_features):
        raise TypeError(f"from_mlp takes a module with linear layers fc1 and fc2, got {type(mlp).__name__}")
    if not isinstance(getattr(mlp, "norm", None), (nn.Identity, type(None))):
        raise TypeError("from_mlp takes an MLP without a norm between its linear layers")
    if (fc1.bias is None) != (fc2.bias is None) or fc1.in_features != fc2.out_features:
        raise TypeError("from_mlp takes an MLP whose linear layers both have a bias or both have none, and whose "
                        "output is as wide as its input")
    return fc1, fc2


def activation_name(mlp):
    """The name of mlp.act in the operators. Raises TypeError for other activations."""
    act = getattr(mlp, "act", None)
    if isinstance(act, nn.GELU):
        return "gelu" if act.approximate == "none" else "gelu_tanh"
    for kind, name in ((nn.ReLU, "relu"), (nn.SiLU, "silu")):
        if isinstance(act, kind):
            return name
    raise TypeError(f"experts have GELU, ReLU or SiLU, got the activation {type(act).__name__}")


def has_dropout(mlp):
    return any(isinstance(part, nn.Dropout) and part.p > 0 for part in mlp.children())
