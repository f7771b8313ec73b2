"""configs/cifar/dense.toml without its MoE layer in plain PyTorch: the same network, recipe and data."""

import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def read_cifar10(folder, names):
    records = np.concatenate([np.fromfile(pathlib.Path(folder) / name, np.uint8) for name in names]).reshape(-1, 3073)
    pixels = torch.from_numpy(records[:, 1:].copy()).view(-1, 3, 32, 32).float() / 255
    normal = (pixels - torch.tensor(MEAN).view(1, 3, 1, 1)) / torch.tensor(STD).view(1, 3, 1, 1)
    return normal, torch.from_numpy(records[:, 0].astype(np.int64))


def whitening(images, kernel=2, epsilon=5e-4):
    patches = images.unfold(2, kernel, 1).unfold(3, kernel, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 3 * kernel**2)
    values, vectors = torch.linalg.eigh(patches.double().T @ patches.double() / len(patches))
    filters = (vectors.T / (values + epsilon).sqrt()[:, None]).float().reshape(-1, 3, kernel, kernel)
    return torch.cat([filters, -filters])


class Group(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm1, self.norm2 = (nn.BatchNorm2d(outputs, momentum=0.4) for _ in range(2))
        for conv in (self.conv1, self.conv2):
            nn.init.dirac_(conv.weight.data[: conv.in_channels])

    def forward(self, x):
        x = F.relu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        return F.relu(self.norm2(self.conv2(x)))


class WhitenedCnn(nn.Module):
    def __init__(self, images, widths=(32, 128, 256), classes=10):
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2)
        self.whiten.weight = nn.Parameter(whitening(images), requires_grad=False)
        nn.init.zeros_(self.whiten.bias)
        self.groups = nn.Sequential(*(Group(i, o) for i, o in zip((24, *widths), widths)))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.head(self.groups(F.relu(self.whiten(F.pad(x, (0, 1, 0, 1))))).mean((2, 3)))


class Training:
    """20,000 images in batches of 500 with Muon, a linear schedule, alternating flips and moves of up to two pixels."""

    def __init__(self, folder, epochs, batch=500, seed=0):
        torch.manual_seed(seed)
        self.images, self.labels = read_cifar10(folder, ["data_batch_1.bin", "data_batch_2.bin"])
        self.model = WhitenedCnn(self.images[::4]).to(memory_format=torch.channels_last)
        matrices = [m.weight for m in self.model.groups.modules() if isinstance(m, nn.Conv2d)]
        vectors = [p for p in self.model.parameters() if p.dim() == 1]  # biases and norms, which do not decay
        self.matrices, self.momenta = matrices, [torch.zeros_like(m) for m in matrices]
        groups = [{"params": [self.model.head.weight]}, {"params": vectors, "weight_decay": 0}]
        self.adam = torch.optim.AdamW(groups, lr=1, betas=(0.9, 0.95), weight_decay=0.12)
        self.batch, self.steps = batch, epochs * len(self.images) // batch
        self.mirrored_first = torch.rand(len(self.images)) < 0.5
        self.step = 0

    def augmented(self, index, epoch):
        x = self.images[index]
        mirror = self.mirrored_first[index] ^ bool(epoch % 2)
        x = torch.where(mirror.view(-1, 1, 1, 1), x.flip(3), x)
        padded = F.pad(x, (2, 2, 2, 2), "reflect")
        moved = torch.empty_like(x, memory_format=torch.channels_last)
        down, right = torch.randint(0, 5, (2, len(x)))
        for i in range(5):
            for j in range(5):
                some = (down == i) & (right == j)
                moved[some] = padded[some, :, i : i + 32, j : j + 32]
        return moved

    def update_matrices(self, lr, momentum=0.6, decay=0.12):
        for matrix, average in zip(self.matrices, self.momenta):
            average.lerp_(matrix.grad, 1 - momentum)
            update = (matrix.grad + momentum * (average - matrix.grad)).reshape(len(matrix), -1)
            wide = update if update.shape[0] <= update.shape[1] else update.T
            x = wide / wide.norm().clamp_min(1e-7)
            for _ in range(5):
                a = x @ x.T
                x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
            update = x if wide is update else x.T
            scale = max(1, update.shape[0] / update.shape[1]) ** 0.5
            matrix.mul_(1 - lr * decay).add_(update.reshape(matrix.shape), alpha=-lr * scale)

    def train_step(self):
        per_epoch = len(self.images) // self.batch
        epoch, position = divmod(self.step, per_epoch)
        if position == 0:
            self.order = torch.randperm(len(self.images))
        index = self.order[position * self.batch : (position + 1) * self.batch]
        lr = 0.24 * (1 - (self.step + 1) / self.steps)
        loss = F.cross_entropy(self.model(self.augmented(index, epoch)), self.labels[index], label_smoothing=0.2)
        self.adam.zero_grad()
        for matrix in self.matrices:
            matrix.grad = None
        loss.backward()
        for group in self.adam.param_groups:
            group["lr"] = 0.02 * lr
        self.adam.step()
        with torch.no_grad():
            self.update_matrices(lr)
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def accuracy(self, folder):
        self.model.eval()
        images, labels = read_cifar10(folder, ["test_batch.bin"])
        right = sum(
            (self.model(x.contiguous(memory_format=torch.channels_last)).argmax(1) == y).sum().item()
            for x, y in zip(images.split(500), labels.split(500))
        )
        self.model.train()
        return right / len(images)
