"""Trained models of the library as PyTorch modules."""
import json
import os

import torch

from ._library import path as _operators  # noqa: F401  (loads the class below)


class LoadedModel(torch.nn.Module):
    """A trained model: pixels [B,C,H,W] in 0..1 to logits [B,K]. Made by `sparsight.load`.

    Parameters and buffers are named as in the checkpoint. It normalises pixels itself. In training mode routers are
    noisy and keep their capacity, dropout and drop path are on, and `aux_loss` is the weighted sum of the balance losses
    of the last pass, to be added to the task's loss.

    classes: names; image_shape: (C, H, W); config: the sections of its configuration; step, weights: of the checkpoint.
    """

    def __init__(self, path, checkpoint="", settings=(), labels="", normalize="", seed=0):
        super().__init__()
        self._source = (path, checkpoint, tuple(settings), labels, normalize, seed)
        self._native = torch.classes.sparsight.LoadedModule(path, checkpoint, list(settings), labels, normalize)
        info = json.loads(self._native.info())
        self.classes, self.image_shape, self.config = info["classes"], tuple(info["image"]), info["config"]
        self.step, self.weights, self.path = info["step"], info["weights"], info["path"]
        self.aux_loss = torch.zeros(())
        self._passes, self._seed = 0, int(seed)
        self._run = torch.compiler.disable(self._forward)  # made once: here, and not when the package is imported
        self._own = []  # (the tables of a module that have it, its name there, the tensor that the library computes with)
        for i, (name, tensor) in enumerate(zip(self._native.names(), self._native.tensors())):
            self._register(name, tensor, i < info["parameters"])
        self.eval()

    def _register(self, name, tensor, is_parameter):
        """The tensor itself, at its place in a tree of modules."""
        *parts, last = name.split(".")
        module = self
        for part in parts:
            if part not in module._modules:
                module.add_module(part, torch.nn.Module())
            module = module._modules[part]
        if is_parameter:
            tensor._is_param = True  # torch then takes it for a Parameter
            module.register_parameter(last, tensor)
        else:
            module.register_buffer(last, tensor)
        self._own.append((module._parameters if is_parameter else module._buffers, last, tensor))

    def forward(self, images):
        return self._run(images)

    def _forward(self, images):
        for table, name, tensor in self._own:
            if table.get(name) is not tensor:
                raise RuntimeError(f"{name} of a loaded model was replaced; change weights in place, as "
                                   "load_state_dict without assign=True does")
        self._passes += self.training
        logits, self.aux_loss = self._native.forward(images, self.training, self._seed, self._passes)
        return logits

    def preprocess(self, image):
        """A picture, as uint8 [C,H,W] or PIL image, as the pixels in 0..1 [C,H,W] that the model takes."""
        if not isinstance(image, torch.Tensor):
            import numpy
            mode = "RGB" if self.image_shape[0] == 3 else "L"
            array = numpy.asarray(image.convert(mode))
            image = torch.from_numpy(array.reshape(*array.shape[:2], -1).transpose(2, 0, 1).copy())
        return self._native.preprocess(image)

    def _apply(self, fn, recurse=True):
        if fn(torch.zeros(1)).device.type != "cpu":
            raise RuntimeError("models that sparsight.load made run on the CPU")
        super()._apply(fn, recurse)
        for table, name, tensor in self._own:  # torch replaces buffers
            if table[name] is not tensor:
                tensor.data = table[name].data
                table[name] = tensor
        return self

    def __reduce__(self):
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        return _restore, (self._source, self.state_dict(), frozen, self._passes, self.training)

    def extra_repr(self):
        return f"{self.path}, {len(self.classes)} classes, image {self.image_shape}"


def _restore(source, state, frozen, passes, training):
    model = LoadedModel(*source)
    with torch.no_grad():
        for name, tensor in model.state_dict(keep_vars=True).items():
            tensor.data = state[name].detach().clone()  # also of another type
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    model._passes = passes
    return model.train(training)


def load(path, checkpoint="", *, settings=(), labels="", normalize="", seed=0):
    """Loads a trained model as a `torch.nn.Module`, in evaluation mode: see LoadedModel.

    path: a run folder, a checkpoint, or a file of weights alone as timm, torchvision and Hugging Face write them.
    checkpoint: "best" or "last" of a run folder; by default the best, if there is one.
    settings: changes of its configuration, such as ["router.eval_k=1"].
    labels, normalize: for weights alone, as the flags of `sparsight predict`.
    seed: of router noise, dropout and drop path in training mode.

    Copies and pickles of the module read `path` again, for its configuration.

    Raises ValueError for settings that make no sense, RuntimeError for a path that is no model, or a damaged one.
    """
    if checkpoint not in ("", "best", "last"):
        raise ValueError(f'checkpoint must be "best" or "last", got "{checkpoint}"')
    if isinstance(settings, str):
        settings = [settings]
    return LoadedModel(os.path.abspath(os.fspath(path)), checkpoint, settings, labels, normalize, seed)
