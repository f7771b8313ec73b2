// Pictures of a few fooled images for report/attack/attack_page.h.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/run/attack_shard.h"
#include "sparsight/report/attack/attack_page.h"

namespace sparsight {

class AttackExamples {
 public:
  AttackExamples(int64_t count, std::vector<std::string> classes) : count_(count), classes_(std::move(classes)) {}
  // Takes the first fooled images, up to `count` in all.
  void add(const AttackedBatch& images, const AttackShard& piece, const AttackPlan& plan);
  const std::vector<AttackExample>& all() const { return examples_; }

 private:
  int64_t count_;
  std::vector<std::string> classes_;
  std::vector<AttackExample> examples_;
};

}  // namespace sparsight
