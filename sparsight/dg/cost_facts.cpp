#include "sparsight/dg/cost_facts.h"

#include "sparsight/report/format.h"

namespace sparsight {
namespace {

TableFact count_fact(const std::optional<DgCost>& cost, int64_t DgCost::*count) {
  if (!cost) return {};
  return {grouped((*cost).*count), static_cast<double>((*cost).*count), {}};
}

}  // namespace

void append_cost_columns(DgTable& table) {
  for (const char* column : {"parameters", "active parameters", "MACs"}) table.fact_columns.emplace_back(column);
}

void append_cost(DgTable::Row& row, const std::optional<DgCost>& cost) {
  for (const auto count : {&DgCost::parameters, &DgCost::active_parameters, &DgCost::multiply_adds})
    row.facts.push_back(count_fact(cost, count));
}

}  // namespace sparsight
