// Damaged files: one flipped bit anywhere is found, and the error names the tensor that it is in.
#include "sparsight/core/checksum.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/safetensors_rows.h"
#include "sparsight/io/torch_pickle.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::checksum_test {
namespace {

constexpr int kFlips = 1000;

// Flips one random bit of the file at a time. `read` must raise an error, which names the tensor if the bit is in one.
void expect_every_flip_is_found(const std::string& path, const std::function<void(const std::string&)>& read) {
  const std::string bytes = read_file(path, 1 << 24);
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  const SafetensorsHeader header = read_safetensors_header(path);
  const testing::TemporaryFolder folder;
  std::mt19937 random(1);
  for (int flip = 0; flip < kFlips; ++flip) {
    const size_t at = random() % bytes.size();
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const std::string message = testing::error_text([&] { read(folder.write("damaged", damaged)); });
    ASSERT_NE(message, "") << "byte " << at;
    for (const TensorEntry& entry : header.tensors)
      if (at >= 8 + length + entry.begin && at < 8 + length + entry.end) {
        ASSERT_NE(message.find("tensor " + entry.name + " does not match its checksum"), std::string::npos) << message;
      }
  }
}

}  // namespace

// The values are xxhsum's: printf abc | xxhsum -H3
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(compute_checksum(""), "2d06800538d394c2");
  EXPECT_EQ(compute_checksum("abc"), "78af5f94892f3950");
  Checksum pieces;
  pieces.update("a", 1);
  pieces.update("bc", 2);
  EXPECT_EQ(pieces.hex(), "78af5f94892f3950");
}

TEST(Checksum, EveryFlippedBitOfACheckpointIsFound) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("last.safetensors");
  write_checkpoint(path, {{{"head.weight", at::arange(600, at::kFloat)}, {"head.bias", at::ones({20})}},
                          {{"optimizer/head.weight", at::arange(600, at::kFloat)}},
                          {{"train", {{"epochs", 3}}}},
                          {{"step", 7}}});
  expect_every_flip_is_found(path, [](const std::string& damaged) { read_checkpoint(damaged); });
}

TEST(Checksum, EveryFlippedBitOfRowsIsFound) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("records.safetensors");
  SafetensorsRowWriter rows(path);
  for (int i = 0; i < 5; ++i) {
    rows.append("logits", at::arange(30 * i, 30 * (i + 1), at::kFloat).reshape({3, 10}));
    rows.append("label", at::arange(3));
  }
  rows.commit({});
  expect_every_flip_is_found(path, [](const std::string& damaged) { read_safetensors(damaged); });
}

// A zip file has bytes without meaning (padding, dates): flips there change no tensor.
TEST(Checksum, NoFlippedBitOfATorchFileChangesATensor) {
  const std::string bytes = read_file(test::source_path("tests/golden/io/plain.pt"), 1 << 20);
  const NamedTensors whole = read_torch_pickle(test::source_path("tests/golden/io/plain.pt"));
  const at::Tensor weight = whole.at(0).second;
  const size_t data = bytes.find(std::string(static_cast<const char*>(weight.const_data_ptr()), weight.nbytes()));
  ASSERT_NE(data, std::string::npos);
  const testing::TemporaryFolder folder;
  int refused = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const bool in_data = bit / 8 >= data && bit / 8 < data + weight.nbytes();
    if (!in_data && bit % 8 != bit / 8 % 8) continue;  // one bit of each byte around the data
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    NamedTensors read;
    const std::string message =
        testing::error_text([&] { read = read_torch_pickle(folder.write("damaged.pt", damaged)); });
    refused += !message.empty();
    if (in_data) {
      ASSERT_NE(message.find("tensor weight does not match its checksum"), std::string::npos) << message;
    }
    if (!message.empty()) continue;
    ASSERT_EQ(read.size(), whole.size()) << "bit " << bit;
    for (size_t i = 0; i < read.size(); ++i) {
      ASSERT_EQ(read[i].first, whole[i].first);
      ASSERT_TRUE(at::equal(read[i].second, whole[i].second)) << "bit " << bit;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Checksum, AForeignFileNeedsNone) {
  EXPECT_EQ(read_safetensors_header(test::source_path("tests/golden/io/python.safetensors")).tensors[0].checksum, "");
}

TEST(Checksum, AHundredThousandTensorsAreReadBack) {
  const testing::TemporaryFolder folder;
  TensorFile file;
  for (int i = 0; i < 100'000; ++i) file.tensors.emplace_back(cat("t", i), at::ones({}));
  write_safetensors(folder.path("many"), file);
  EXPECT_EQ(read_safetensors(folder.path("many")).tensors.size(), file.tensors.size());
}

}  // namespace sparsight::checksum_test
