"""Prints what DomainBed's ColoredMNIST draws for 20 images after torch.manual_seed(7): by environment the images in
order, their labels and their colours, the expected values of a test. Digit of image i: i % 10. Follows the calls of
domainbed/datasets.py (commit b93c22a): randperm over all images, then for each environment torch.rand for the labels
and torch.rand for the colours. RotatedMNIST draws the order alone. Made with torch 2.13.

    python tests/golden/domainbed/make_mnist_draws.py
"""

import torch

torch.manual_seed(7)
order = torch.randperm(20)
for environment, flips in enumerate([0.1, 0.2, 0.9]):
    images = order[environment::3]
    labels = ((images % 10) < 5).float()
    labels = (labels - (torch.rand(len(images)) < 0.25).float()).abs()
    colours = (labels - (torch.rand(len(images)) < flips).float()).abs()
    print(images.tolist(), labels.long().tolist(), colours.long().tolist())
