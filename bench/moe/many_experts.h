// One MoE layer with thousands of small experts: the whole layer and its parts, forward and in training, beside other
// implementations where they can do that size. Letters: sparsight/moe/axes.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight::bench {

struct ManyExperts {
  std::vector<int64_t> experts = {1024, 4096};
  int64_t tokens = 6304, k = 2, hidden = 64;  // of ViT-S's width: hidden layers of 64 instead of 1536
  int64_t rounds = 7;
  bool contenders = true, training = true;
  std::string json = {};  // file for the results; "": none
};

// What a training step of the layer adds to memory at its peak, in bytes, beyond weights and their gradients, for each
// number of experts: measured in processes of their own. Call it before this process has started threads.
std::vector<double> memory_of_many_experts(const ManyExperts& sizes, int64_t threads);

// memory: of memory_of_many_experts(). Prints a table of forward passes and one of training steps, and writes both.
void print_many_experts(const ManyExperts& sizes, const std::vector<double>& memory, const std::string& machine);

}  // namespace sparsight::bench
