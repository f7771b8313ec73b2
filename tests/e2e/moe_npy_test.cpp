// `sparsight moe` on tokens from a .npy file.
#include <ATen/ops/arange.h>

#include "tests/data/readers/fixtures.h"
#include "tests/e2e/moe_verb.h"

namespace sparsight::testing::moe_npy_test {
namespace {

// Numbers that fp32 cannot represent.
at::Tensor tokens(const std::vector<int64_t>& sizes) { return (at::arange(24, at::kDouble) / 7 - 1.5).view(sizes); }

std::string encode_npy(const at::Tensor& values, const std::string& descr) {
  std::string shape;
  for (const int64_t size : values.sizes()) shape += std::to_string(size) + ", ";
  return npy_file("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }\n",
                  std::string(static_cast<const char*>(values.const_data_ptr()), values.nbytes()));
}

Trial run_layer(const std::string& file) {
  return run_moe_on_file(file, with_settings({"moe.experts=4"}, {"--float64", "--mode", "train", "--seed", "5"}));
}

}  // namespace

TEST(MoeVerbOnNpy, GivesWhatTheSameTokensInSafetensorsGive) {
  const TemporaryFolder folder;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{8, 3}, {2, 4, 3}})
    for (const bool float64 : {true, false}) {
      const at::Tensor given = tokens(sizes).to(float64 ? at::kDouble : at::kFloat);
      write_safetensors(folder.path("tokens.safetensors"), {{{"tokens", given}}, {}});
      const Trial plain = run_layer(folder.write("tokens.npy", encode_npy(given, float64 ? "<f8" : "<f4"))),
                  named = run_layer(folder.path("tokens.safetensors"));
      ASSERT_EQ(plain.result.exit_code, 0) << plain.result.err;
      ASSERT_EQ(plain.tensors.size(), named.tensors.size());
      for (const auto& [name, tensor] : named.tensors) {
        ASSERT_TRUE(plain.tensors.count(name)) << name;
        EXPECT_TRUE(plain.tensors.at(name).equal(tensor)) << name;
      }
      EXPECT_TRUE(plain.tensors.at("output").sizes() == given.sizes());
      // What was read is what was written, to the last digit of its type.
      const at::Tensor logits = given.to(at::kDouble).view({8, 3}).matmul(plain.tensors.at("router.weight").t());
      expect_near(plain, "clean_logits", logits, 1e-14);
    }
}

TEST(MoeVerbOnNpy, WhatIsNoWholeFileOfTokensIsOneClearLine) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& bytes) {
    const Trial probe = run_layer(folder.write("tokens.npy", bytes));
    EXPECT_EQ(probe.result.out, "");
    return one_line(probe.result, 1);
  };
  const std::string whole = encode_npy(tokens({8, 3}), "<f8");
  EXPECT_TRUE(says(message(whole.substr(0, whole.size() - 1)), "tokens.npy is cut off: its header promises 192 bytes"));
  EXPECT_TRUE(says(message(whole.substr(0, 20)), "the npy header claims"));
  EXPECT_TRUE(says(message(whole.substr(0, 5)), "is not an npy file"));
  EXPECT_TRUE(says(message(encode_npy(at::arange(6).view({2, 3}), "<i8")), "tokens must be floating-point numbers"));
  EXPECT_TRUE(says(message(encode_npy(tokens({24}), "<f8")), "[N,D] or [B,S,D]"));
}

}  // namespace sparsight::testing::moe_npy_test
