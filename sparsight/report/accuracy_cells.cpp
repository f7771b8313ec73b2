#include "sparsight/report/accuracy_cells.h"

#include <algorithm>
#include <limits>

namespace sparsight {

std::vector<Json> accuracy_cells(const Json& eval) {
  const Json& cells = member(eval, "cells");
  return cells.is_array() ? std::vector<Json>(cells.begin(), cells.end()) : std::vector<Json>();
}

std::vector<std::string> distinct_texts(const std::vector<Json>& cells, const std::string& key) {
  std::vector<std::string> values;
  for (const Json& cell : cells)
    if (const std::string value = text(cell, key); std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  return values;
}

std::vector<Json> worst_cells(std::vector<Json> cells, size_t count) {
  const auto accuracy = [](const Json& cell) {
    return number(cell, "accuracy").value_or(std::numeric_limits<double>::infinity());
  };
  std::stable_sort(cells.begin(), cells.end(), [&](const Json& a, const Json& b) { return accuracy(a) < accuracy(b); });
  cells.resize(std::min(cells.size(), count));
  return cells;
}

}  // namespace sparsight
