// What papers mean by the FLOPs of an image: conventions of counting, chosen by name.
//
// Published numbers for the same model differ by what they count: multiply-adds or two operations for each, with or
// without elementwise operations, the rows that routers assign or the experts' whole buffers. docs/cost.md shows which
// published numbers each convention reproduces.
#pragma once

#include <string>
#include <vector>

#include "sparsight/cost/cost.h"

namespace sparsight {

struct CostConvention {
  std::string name;
  std::string summary;
  int64_t per_multiply_add = 1;  // operations that a multiply-add counts as
  bool elementwise = false;      // elementwise operations count too
  // Experts compute their whole buffers ([capacity]), as implementations with fixed shapes do; else the rows that the
  // router assigns to them, before capacity.
  bool padded_experts = false;
  // A vision transformer normalises all tokens at the end, as published ones do; else only those the head reads.
  bool norm_all_tokens = false;
};

const std::vector<CostConvention>& cost_conventions();
// Raises UsageError for an unknown name.
const CostConvention& cost_convention(const std::string& name);

// The arguments of a model's cost().
struct CostOptions {
  CostConvention convention = {};
  int64_t batch = 1;  // images that share the experts' buffers if [capacity] group is 0
  // What a pass computes: without the tokens of a transformer's last block that its head does not read. Papers count
  // all of them.
  bool only_read_tokens = false;
};

// Operations as the convention counts them.
int64_t flops(const Cost& cost, const CostConvention& convention);

}  // namespace sparsight
