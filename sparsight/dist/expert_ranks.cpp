#include "sparsight/dist/expert_ranks.h"

#include "sparsight/core/error.h"

namespace sparsight::dist {

ExpertRanks share_out_experts(const GroupPtr& all, int64_t parts) {
  const int64_t ranks = all->size(), copy = all->rank() / parts, part = all->rank() % parts;
  if (ranks % parts != 0)
    fail_usage("dist.expert_parallel = ", parts, " spreads experts over ", parts, " processes, but ", ranks,
               ranks == 1 ? " process trains" : " processes train", "; use --processes ", parts,
               " or a multiple of it, or set dist.expert_parallel = 1");
  if (parts == 1) return {.copies = all};
  std::vector<int64_t> together, same;
  for (int64_t p = 0; p < parts; ++p) together.push_back(copy * parts + p);
  for (int64_t c = 0; c < ranks / parts; ++c) same.push_back(c * parts + part);
  ExpertRanks found{all->subgroup(cat("parts/", parts, "/", copy), together),
                    all->subgroup(cat("copies/", parts, "/", part), same)};
  all->barrier();  // a rank that ends now, with an error of its own, disturbs nobody who is still joining
  return found;
}

}  // namespace sparsight::dist
