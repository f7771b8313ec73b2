#include "tests/papers/claim_tables.h"

namespace sparsight::testing {

std::vector<ClaimResult> claim_tables(const std::string& figure) {
  static const ClaimTables all = [] {
    ClaimTables tables;
    for (const auto& paper :
         {pmoe_claim_tables, robust_moe_theory_claim_tables, robust_moe_attack_claim_tables, gmoe_theory_claim_tables,
          gmoe_protocol_claim_tables, gmoe_image_claim_tables, mobile_vmoe_claim_tables})
      tables.merge(paper());
    return tables;
  }();
  const auto found = all.find(figure);
  return found == all.end() ? std::vector<ClaimResult>() : found->second;
}

}  // namespace sparsight::testing
