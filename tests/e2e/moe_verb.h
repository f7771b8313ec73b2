// Runs `sparsight moe` on given tensors and reads what it writes.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sparsight/io/safetensors.h"
#include "tests/support/program.h"

namespace sparsight::testing {

using Rows = std::vector<double>;

inline at::Tensor matrix(const Rows& values, int64_t rows) { return at::tensor(values, at::kDouble).view({rows, -1}); }

struct Trial {
  ProgramResult result;
  std::map<std::string, at::Tensor> tensors;  // none if the program failed
};

// {"a=1", "b=2"} as the program takes them, before `flags`.
inline std::vector<std::string> with_settings(const std::vector<std::string>& settings,
                                              std::vector<std::string> flags = {}) {
  std::vector<std::string> arguments;
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

inline Trial run_moe_on_file(const std::string& file, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{"moe", file, "--out", folder.path("out.safetensors")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Trial probe{run_program(arguments), {}};
  if (probe.result.exit_code == 0)
    for (const auto& [name, tensor] : read_safetensors(folder.path("out.safetensors")).tensors)
      probe.tensors[name] = tensor;
  return probe;
}

inline Trial run_moe(const NamedTensors& input, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  write_safetensors(folder.path("in.safetensors"), {input, {}});
  return run_moe_on_file(folder.path("in.safetensors"), more);
}

inline void expect_near(const Trial& probe, const std::string& name, const at::Tensor& expected, double tolerance) {
  ASSERT_TRUE(probe.tensors.count(name)) << name;
  const at::Tensor got = probe.tensors.at(name).to(at::kDouble);
  EXPECT_TRUE(got.sizes() == expected.sizes() && at::allclose(got, expected, 0, tolerance)) << name << "\n" << got;
}

inline void expect_whole(const Trial& probe, const std::string& name, const std::vector<int64_t>& expected) {
  ASSERT_TRUE(probe.tensors.count(name)) << name;
  const at::Tensor got = probe.tensors.at(name).to(at::kLong);
  EXPECT_TRUE(got.equal(at::tensor(expected, at::kLong))) << name << "\n" << got;
}

// The program's error message if it is one line, else "".
inline std::string one_line(const ProgramResult& result, int exit_code) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  return result.err;
}

// Tolerance of the worked examples, whose values have six decimals.
inline double printed_digits(bool float64) { return float64 ? 1e-6 : 1e-5; }

}  // namespace sparsight::testing
