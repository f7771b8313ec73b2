// Ranks of a group as threads of the test.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/dist/gloo_group.h"
#include "tests/support/program.h"

namespace sparsight::test {

// Calls body(group) once for each rank, all at the same time. Returns what each rank raised, "" for nothing.
// timeout_seconds: how long a rank may be late.
inline std::vector<std::string> run_ranks(int64_t ranks, const std::function<void(const dist::GroupPtr&)>& body,
                                          int64_t timeout_seconds = 600) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(dist::join_gloo(
            {.rank = rank, .size = ranks, .store_file = folder.path("store"), .timeout_seconds = timeout_seconds}));
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline bool none_failed(const std::vector<std::string>& errors) {
  for (const std::string& error : errors)
    if (!error.empty()) return ADD_FAILURE() << error, false;
  return true;
}

}  // namespace sparsight::test
