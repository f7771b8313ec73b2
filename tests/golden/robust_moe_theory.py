"""Prints what theorem 1 of Puigcerver et al. 2022 gives on the tilted subspaces of robust_moe/t6, computed with NumPy alone.

tests/papers/robust_moe/theory/theorem1_test.cpp has the rows of the orthogonalised subspaces. Those of the eigenvectors are
in the specification too; they show that this program computes the same. Made with NumPy 2.4.6:

    python tests/golden/robust_moe_theory.py
"""

from math import cos, sin

import numpy as np

TOLERANCE = 1e-10


def tilted(tilt):
    inputs, targets = [], []
    for i in range(3):
        mix = np.array([[sin(1 + 1.3 * r + 2 * c + 0.7 * i) for c in range(2)] for r in range(4)])
        directions = np.array([[(d == 2 * i + k) + tilt * cos(1 + i + 2 * k + 3 * d) for d in range(6)] for k in range(2)])
        inputs.append((i + 1) * mix @ directions)
        targets.append(np.array([cos(0.5 + r + 2 * i) for r in range(4)]))
    return inputs, targets


def gram_inverse(inputs, zero):
    values, vectors = np.linalg.eigh(inputs.T @ inputs)
    values, vectors = values[values > zero][::-1], vectors[:, values > zero][:, ::-1]
    return vectors @ np.diag(1 / values) @ vectors.T, vectors


def eigenvector_bases(dense, experts):
    owners = [int(np.argmax([np.linalg.norm(basis.T @ vector) for _, basis in experts])) for vector in dense[1].T]
    return [dense[1][:, [k for k, owner in enumerate(owners) if owner == i]] for i in range(len(experts))]


def orthogonalised_bases(experts):
    """By QR of all spans one after the other: another route than the program's."""
    orthogonal = np.linalg.qr(np.hstack([basis for _, basis in experts]))[0]
    ends = np.cumsum([0] + [basis.shape[1] for _, basis in experts])
    return [orthogonal[:, begin:end] for begin, end in zip(ends, ends[1:])]


def theorem1(tilt):
    inputs, targets = tilted(tilt)
    x, y = np.vstack(inputs), np.concatenate(targets)
    zero = TOLERANCE * np.linalg.norm(x, 2) ** 2
    dense, experts = gram_inverse(x, zero), [gram_inverse(own, zero) for own in inputs]
    weights = dense[0] @ x.T @ y
    own_weights = [inverse @ own.T @ target for (inverse, _), own, target in zip(experts, inputs, targets)]
    products = [np.linalg.norm(own.T @ target) for own, target in zip(inputs, targets)]
    second = max(np.linalg.norm(experts[i][0] @ experts[j][1], 2) for i in range(3) for j in range(3) if i != j)
    for name, bases in (("eigenvectors", eigenvector_bases(dense, experts)), ("orthogonalised", orthogonalised_bases(experts))):
        first = max(np.linalg.norm(u @ u.T @ dense[0] - inverse, 2) for u, (inverse, _) in zip(bases, experts))
        terms = [np.linalg.norm(w) - first * np.linalg.norm(x.T @ y) - second * (sum(products) - own)
                 for w, own in zip(own_weights, products)]
        gaps = [np.linalg.norm(u @ u.T @ weights - w) for u, w in zip(bases, own_weights)]
        companion = sum(max(np.linalg.norm(w) - gap, 0) ** 2 for w, gap in zip(own_weights, gaps))
        print(f"{tilt:<6} {name:<15} epsilon_1 {first:.6f} epsilon_2 {second:.6f} |w*|^2 {weights @ weights:.6f} "
              f"bound {sum(max(term, 0) ** 2 for term in terms):.6f} companion {companion:.6f}")


if __name__ == "__main__":
    for tilt in (0, 0.001, 0.005, 0.01, 0.02, 0.05):
        theorem1(tilt)
