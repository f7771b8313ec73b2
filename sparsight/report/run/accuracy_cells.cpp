#include "sparsight/report/run/accuracy_cells.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

namespace sparsight {

std::vector<Json> accuracy_cells(const Json& eval) {
  const Json& cells = member(eval, "cells");
  return cells.is_array() ? std::vector<Json>(cells.begin(), cells.end()) : std::vector<Json>();
}

std::vector<std::string> distinct_strings(const std::vector<Json>& cells, const std::string& key) {
  std::vector<std::string> values;
  std::unordered_set<std::string> seen;
  for (const Json& cell : cells)
    if (const std::string value = text(cell, key); seen.insert(value).second) values.push_back(value);
  return values;
}

std::vector<Json> worst_cells(const std::vector<Json>& cells, size_t count) {
  std::vector<std::pair<double, size_t>> order;  // accuracy and index; ties keep their order
  for (size_t i = 0; i < cells.size(); ++i)
    order.emplace_back(number(cells[i], "accuracy").value_or(std::numeric_limits<double>::infinity()), i);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
  std::vector<Json> worst;
  for (size_t i = 0; i < count; ++i) worst.push_back(cells[order[i].second]);
  return worst;
}

}  // namespace sparsight
