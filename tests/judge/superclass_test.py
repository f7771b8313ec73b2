"""Super-classes of `sparsight superclass --confusion` on random matrices against independent NumPy code, written from the
definitions: affinity, normalised affinity, eigenvectors, Ward, k-means from the farthest seeds, greedy modularity and average
linkage as plain scans over all pairs, and the measures of a division. Where SciPy or scikit-learn are installed, their Ward
linkage and adjusted Rand index judge too."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
TAU = 0.1


def affinity(counts):
    shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
    symmetric = (shares + shares.T) / 2
    np.fill_diagonal(symmetric, 0)
    return symmetric


def embedding(a, clusters):
    smooth = a + TAU * a.sum() / len(a) ** 2
    degree = smooth.sum(1)
    values, vectors = np.linalg.eigh(smooth / np.sqrt(np.outer(degree, degree)))
    points = vectors[:, ::-1][:, :clusters]
    return values[::-1], points / np.linalg.norm(points, axis=1, keepdims=True)


def numbered(labels):
    order = {}
    return [order.setdefault(label, len(order)) for label in labels]


def merged(count, clusters, cost):
    """Merges the pair of clusters (lists of items) with the smallest cost until `clusters` are left."""
    groups = [[i] for i in range(count)]
    while len(groups) > clusters:
        _, i, j = min((cost(groups[i], groups[j]), i, j) for i in range(len(groups)) for j in range(i + 1, len(groups)))
        groups[i] = groups[i] + groups.pop(j)
    labels = [0] * count
    for number, group in enumerate(groups):
        for item in group:
            labels[item] = number
    return numbered(labels)


def spectral_ward(a, clusters):
    points = embedding(a, clusters)[1]

    def cost(g, h):
        gap = points[g].mean(0) - points[h].mean(0)
        return len(g) * len(h) / (len(g) + len(h)) * (gap @ gap)
    return merged(len(a), clusters, cost)


def spectral_kmeans(a, clusters):
    points = embedding(a, clusters)[1]
    seeds = [int(np.argmax(a.sum(1)))]
    while len(seeds) < clusters:
        seeds.append(int(np.argmax(np.min([((points - points[s]) ** 2).sum(1) for s in seeds], axis=0))))
    means, labels = points[seeds].copy(), None
    for _ in range(300):
        distance = ((points[:, None] - means[None]) ** 2).sum(2)
        new = distance.argmin(1)
        for empty in set(range(clusters)) - set(new):
            alone = np.bincount(new, minlength=clusters)[new] == 1
            far = np.where(alone, -1, ((points - means[new]) ** 2).sum(1))
            taken = int(np.argmax(far))
            new[taken] = empty
            means[empty] = points[taken]
        if labels is not None and (new == labels).all():
            break
        labels = new
        means = np.array([points[labels == c].mean(0) for c in range(clusters)])
    return numbered(labels.tolist())


def greedy_modularity(a, clusters):
    e = a / a.sum()
    return merged(len(a), clusters, lambda g, h: -2 * (e[np.ix_(g, h)].sum() - e[g].sum() * e[h].sum()))


def average_linkage(a, clusters):
    return merged(len(a), clusters, lambda g, h: -a[np.ix_(g, h)].mean())


METHODS = {"spectral_ward": spectral_ward, "spectral_kmeans": spectral_kmeans, "greedy_modularity": greedy_modularity,
           "average_linkage": average_linkage}


def measures(counts, labels):
    labels = np.array(labels)
    a, total = affinity(counts), affinity(counts).sum()
    same = labels[:, None] == labels[None]
    off = counts * (1 - np.eye(len(counts)))
    groups = [labels == c for c in range(labels.max() + 1)]
    inside = [a[np.ix_(g, g)].sum() for g in groups]
    volumes = [a[g].sum() for g in groups]
    return {"modularity": sum(i / total - (v / total) ** 2 for i, v in zip(inside, volumes)),
            "normalised_cut": sum((v - i) / v for i, v in zip(inside, volumes) if v > 0),
            "inside_share": (off * same).sum() / off.sum(),
            "shares": [(off * same)[g].sum() / off[g].sum() if off[g].sum() > 0 else None for g in groups]}


def adjusted_rand(a, b):
    table = np.zeros((max(a) + 1, max(b) + 1))
    for i, j in zip(a, b):
        table[i, j] += 1
    pairs = lambda x: (x * (x - 1) / 2).sum()
    together, rows, columns, everything = pairs(table), pairs(table.sum(1)), pairs(table.sum(0)), pairs(np.array([len(a)]))
    expected = rows * columns / everything
    return (together - expected) / ((rows + columns) / 2 - expected)


def program(*arguments):
    done = subprocess.run([PROGRAM, "superclass", *arguments, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def random_counts(generator, classes, kind):
    """Blocks of confused classes, in a random order; some classes may never be confused."""
    block = generator.permutation(np.arange(classes) % 3)
    rate = np.where(block[:, None] == block[None], 4.0, 0.7) * generator.random((classes, classes))
    counts = generator.poisson(rate) + np.diag(generator.integers(10, 50, classes))
    if kind == "isolated":
        counts[[1, classes - 1]] = 0
        counts[:, [1, classes - 1]] = 0
    return counts / 7 if kind == "float" else counts


def check_one(folder, counts, clusters, name):
    np.save(folder / "counts.npy", counts)
    report = json.loads(program("--confusion", str(folder / "counts.npy"), "--experts", str(clusters), "--method", name,
                                "--out", str(folder / "map.txt"), "--json"))
    found = [int(line) for line in (folder / "map.txt").read_text().split()]
    a = affinity(counts)
    if name.startswith("spectral"):
        values = embedding(a, clusters)[0]
        got = np.array(report["eigenvalues"])
        assert np.abs(got - values[:len(got)]).max() < 1e-10, (name, got, values)
        if clusters < len(a):
            assert abs(report["eigengap"] - (values[clusters - 1] - values[clusters])) < 1e-10
    expected = METHODS[name](a, clusters)
    assert found == expected, (name, clusters, found, expected)
    ours = measures(counts, found)
    for key in ("modularity", "normalised_cut", "inside_share"):
        assert abs(report[key] - ours[key]) < 1e-10, (name, key, report[key], ours[key])
    for cluster, share in zip(report["clusters"], ours["shares"]):
        assert (cluster["inside_share"] is None) == (share is None)
        assert share is None or abs(cluster["inside_share"] - share) < 1e-10


def check_packages(generator):
    """The NumPy code above against other packages, where they are."""
    counts = random_counts(generator, 14, "plain")
    a = affinity(counts)
    try:
        from scipy.cluster.hierarchy import fcluster, linkage
        for clusters in (2, 3, 5):
            tree = linkage(embedding(a, clusters)[1], "ward")
            assert numbered(fcluster(tree, clusters, "maxclust").tolist()) == spectral_ward(a, clusters)
    except ModuleNotFoundError:
        pass
    try:
        from sklearn.metrics import adjusted_rand_score
        one, other = generator.integers(0, 4, 30), generator.integers(0, 3, 30)
        assert abs(adjusted_rand_score(one, other) - adjusted_rand(one, other)) < 1e-12
    except ModuleNotFoundError:
        pass


def check_rand(folder, generator):
    for _ in range(3):
        one, other = (numbered(generator.integers(0, k, 25).tolist()) for k in (4, 3))
        for name, labels in (("one", one), ("other", other)):
            (folder / f"{name}.txt").write_text("".join(f"{label}\n" for label in labels))
        printed = program("compare", str(folder / "one.txt"), str(folder / "other.txt"))
        index = float(printed.split(":")[1].split()[0])
        assert abs(index - adjusted_rand(one, other)) < 5.1e-5, (index, adjusted_rand(one, other))


def main():
    generator = np.random.default_rng(0)
    check_packages(generator)
    checked = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        check_rand(folder, generator)
        for kind in ("plain", "isolated", "float"):
            for classes in (6, 13, 24):
                counts = random_counts(generator, classes, kind)
                for name in METHODS:
                    for clusters in (1, 3, classes // 2):
                        check_one(folder, counts, clusters, name)
                        checked += 1
    print(f"{checked} divisions agree")


if __name__ == "__main__":
    main()
