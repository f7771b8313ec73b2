// For every figure with claims: results of its jobs for which they hold, and for which they do not. The registry's test
// builds tables from them, and mixes them over seeds for tables that leave a claim open.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"

namespace sparsight::testing {

// What a job measured, from its settings.
using ClaimResult = std::function<Json(const Json& job)>;

using ClaimTables = std::map<std::string, std::vector<ClaimResult>>;  // by the names of figures

// The tables of each paper.
ClaimTables pmoe_claim_tables();
ClaimTables robust_moe_theory_claim_tables();
ClaimTables robust_moe_attack_claim_tables();
ClaimTables gmoe_theory_claim_tables();
ClaimTables gmoe_protocol_claim_tables();
ClaimTables gmoe_image_claim_tables();
ClaimTables mobile_vmoe_claim_tables();

// Empty for an unknown figure, so that a new figure's claims need an entry.
std::vector<ClaimResult> claim_tables(const std::string& figure);

}  // namespace sparsight::testing
