// What tests ask of run folders that are being trained, killed and resumed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "sparsight/io/safetensors.h"

namespace sparsight::testing {

std::string last_checkpoint(const std::string& run);
int64_t saved_step(const std::string& run);  // of the last checkpoint; 0 without one

void expect_equal_tensors(const NamedTensors& a, const NamedTensors& b);

// Kills a rank of the group of processes that train `run`.
void kill_rank(const std::string& run, int64_t rank);

// Weights, optimiser state, averaged weights and validation results of two runs.
void expect_same_run(const std::string& a, const std::string& b);

template <class Condition>
bool wait_until(Condition condition, double seconds = 30) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return false;
}

}  // namespace sparsight::testing
