// What a model costs, as columns of tables of domain generalisation: parameters, active parameters, MACs.
#pragma once

#include <optional>

#include "sparsight/dg/results/result_table.h"

namespace sparsight {

void append_cost_columns(DgTable& table);

// The cells of these columns; empty where it is not known.
void append_cost(DgTable::Row& row, const std::optional<DgCost>& cost);

}  // namespace sparsight
