"""The linear assignment problem (the Hungarian method with potentials, Kuhn 1955, Munkres 1957)."""
import numpy as np


def cheapest(cost):
    """cost: [n,m], n <= m. Returns [n]: a different column for each row, of the smallest total cost."""
    n, m = cost.shape
    of_row, of_column, column_to_row = np.zeros(n + 1), np.zeros(m + 1), np.full(m + 1, n)  # column m: not in the problem
    for row in range(n):
        column_to_row[m], column = row, m
        slack, before, seen = np.full(m + 1, np.inf), np.full(m + 1, m), np.zeros(m + 1, bool)
        while column_to_row[column] != n:
            seen[column] = True
            reduced = cost[column_to_row[column]] - of_row[column_to_row[column]] - of_column[:m]
            better = ~seen[:m] & (reduced < slack[:m])
            slack[:m][better], before[:m][better] = reduced[better], column
            following = int(np.where(seen[:m], np.inf, slack[:m]).argmin())
            step = slack[following]
            of_row[column_to_row[seen]] += step
            of_column[seen] -= step
            slack[~seen] -= step
            column = following
        while column != m:
            column_to_row[column] = column_to_row[before[column]]
            column = before[column]
    found = np.zeros(n, np.int64)
    for column in range(m):
        if column_to_row[column] != n:
            found[column_to_row[column]] = column
    return found


def largest_total(scores, seats):
    """scores: [N,E]. Returns [N]: an expert for each token, none for more than `seats`, of the largest total score."""
    return cheapest(-np.repeat(scores, seats, axis=1)) // seats if len(scores) else np.zeros(0, np.int64)
