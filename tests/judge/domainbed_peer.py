"""DomainBed's algorithm classes, imported from a checkout, on the CPU, with random numbers from outside."""
import contextlib
import importlib
import os
import sys
import types
from unittest import mock

import numpy as np
import torch

# What its modules import for photographs and for data sets, of which its CNN for 28 x 28 pixels needs nothing.
UNUSED = ("timm", "torchvision", "torchvision.models")
INPUT = (2, 28, 28)  # for which DomainBed takes this CNN; it computes on smaller images as well


class BatchGrad:
    """BackPACK's extension that Fishr asks for."""


def extend(module):
    """BackPACK's gradients of single images, for linear layers: after a backward pass, parameter.grad_batch. (BackPACK
    itself is not needed for a layer whose gradients are products of its input and its output's gradient.)"""
    def keep(layer, inputs, output):
        def of_images(gradient):
            layer.weight.grad_batch = torch.einsum("bk,bd->bkd", gradient, inputs[0])
            layer.bias.grad_batch = gradient

        if output.requires_grad:
            output.register_hook(of_images)

    if isinstance(module, torch.nn.Linear):
        module.register_forward_hook(keep)
    return module


def load(checkout):
    """The module domainbed.algorithms."""
    backpack = types.ModuleType("backpack")
    backpack.extend, backpack.backpack = extend, lambda *_: contextlib.nullcontext()
    backpack.extensions = types.ModuleType("backpack.extensions")
    backpack.extensions.BatchGrad = BatchGrad
    sys.modules.update({name: mock.MagicMock() for name in UNUSED})
    sys.modules.update({"backpack": backpack, "backpack.extensions": backpack.extensions})
    sys.path.insert(0, os.fspath(checkout))
    return importlib.import_module("domainbed.algorithms")


@contextlib.contextmanager
def on_cpu():
    """RDM and TRM call cuda() whatever the device."""
    with mock.patch.object(torch.Tensor, "cuda", lambda self: self), \
            mock.patch.object(torch.nn.Module, "cuda", lambda self: self):
        yield


@contextlib.contextmanager
def stable_sort():
    """SelfReg sorts labels, and draws orders within each class: images of a class stay in the order of the batch."""
    sort = torch.sort
    with mock.patch.object(torch, "sort", lambda values: sort(values, stable=True)):
        yield


class Draws:
    """Gives the recorded numbers of one step to the functions that draw them, in order. A call that was not recorded is
    an error, and so is a number that nobody asked for: an algorithm without records draws nothing."""

    def __init__(self, recorded):
        self.left = list(recorded)  # [(function, value)]

    def next(self, function, shape):
        if not self.left or self.left[0][0] != function:
            raise AssertionError(f"DomainBed calls {function}, recorded is {[left for left, _ in self.left[:1]]}")
        value = self.left.pop(0)[1]
        if tuple(value.shape) != tuple(shape):
            raise AssertionError(f"DomainBed draws {tuple(shape)} numbers, recorded are {tuple(value.shape)}")
        return value

    @contextlib.contextmanager
    def replayed(self):
        def normal_(tensor, *_, **__):
            return tensor.copy_(self.next("normal_", tensor.shape))

        with mock.patch.object(torch, "randperm", lambda count: self.next("randperm", (count,))), \
                mock.patch.object(torch, "rand", lambda *shape: self.next("rand", shape)), \
                mock.patch.object(torch.Tensor, "normal_", normal_), \
                mock.patch.object(np.random, "beta", lambda *_: float(self.next("beta", ()))), \
                mock.patch.object(np.random, "randint", lambda *_: int(self.next("randint", ()))):
            yield
        if self.left:
            raise AssertionError(f"DomainBed did not draw {[function for function, _ in self.left]}")


class Peer:
    """One of DomainBed's algorithms that starts from recorded weights and follows recorded steps. case: of
    domainbed_cases.py. hparams: by DomainBed's names."""

    def __init__(self, algorithms, case, trace, hparams):
        self.case = case
        with on_cpu():
            self.algorithm = getattr(algorithms, case.title)(INPUT, trace.classes, trace.domains, hparams)
        case.undo(self.algorithm, hparams)
        self.load(trace.start)

    def tensor(self, name):
        """The tensor that the program calls `name`; None if DomainBed has none."""
        return self.case.find(self.algorithm, name)

    def load(self, weights):
        with torch.no_grad():
            for name, value in weights.items():
                tensor = self.tensor(name)
                if tensor is not None and name not in self.case.results:
                    tensor.copy_(value)

    def step(self, batches, recorded):
        """What the update logs."""
        with on_cpu(), stable_sort(), Draws(recorded).replayed():
            return self.algorithm.update(batches)

    def logits(self, images):
        with torch.no_grad():
            return self.case.logits(self.algorithm, images)
