#include "sparsight/io/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/small_disk.h"

namespace sparsight::safetensors_test {
namespace {

std::string to_bytes(uint64_t header_length, const std::string& header, size_t data) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &header_length, 8);
  return bytes + header + std::string(data, '\1');
}

std::string to_bytes(const std::string& header, size_t data) { return to_bytes(header.size(), header, data); }

}  // namespace

TEST(Safetensors, RoundTripsEveryTypeInOrderWithMetadata) {
  const testing::TemporaryFolder folder;
  TensorFile file;
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf,
                                    at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat})
    file.tensors.emplace_back(cat("t.", at::toString(type)), at::arange(6).reshape({2, 3}).to(type));
  file.tensors.emplace_back("transposed", at::arange(6).reshape({2, 3}).t());
  file.tensors.emplace_back("scalar", at::ones({}));
  file.tensors.emplace_back("none", at::zeros({0, 3}));
  file.metadata = {{"format", "pt"}, {"text", "\"quoted\"\nüñ"}};
  write_safetensors(folder.path("a.safetensors"), file);

  const TensorFile back = read_safetensors(folder.path("a.safetensors"));
  EXPECT_EQ(back.metadata, file.metadata);
  EXPECT_EQ(read_safetensors_metadata(folder.path("a.safetensors")), file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    EXPECT_EQ(back.tensors[i].first, file.tensors[i].first);
    EXPECT_EQ(back.tensors[i].second.scalar_type(), file.tensors[i].second.scalar_type());
    EXPECT_TRUE(at::equal(back.tensors[i].second, file.tensors[i].second)) << file.tensors[i].first;
  }
}

// tests/golden/io/make_safetensors.py wrote the file with Python's safetensors package.
TEST(Safetensors, ReadsAFileOfThePythonPackage) {
  const TensorFile file = read_safetensors(test::source_path("tests/golden/io/python.safetensors"));
  EXPECT_EQ(file.metadata.at("made_by"), "python");
  ASSERT_EQ(file.tensors.size(), 10u);
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_EQ(tensor.sizes(), at::IntArrayRef({2, 3})) << name;
    EXPECT_TRUE(at::equal(tensor, at::arange(6).reshape({2, 3}).to(tensor.scalar_type()))) << name;
  }
}

// A search for each name among the earlier ones would make 10^11 comparisons.
TEST(Safetensors, ReadsHalfAMillionTensors) {
  const testing::TemporaryFolder folder;
  std::string header = "{";
  for (int i = 0; i < 500'000; ++i)
    header += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  const std::string path = folder.write("many", to_bytes(header + "}", 500'000));
  const TensorFile file = read_safetensors(path);
  ASSERT_EQ(file.tensors.size(), 500'000u);
  EXPECT_EQ(file.tensors[499'999].first, "t499999");
  EXPECT_EQ(file.tensors[499'999].second.item<int>(), 1);
}

TEST(Safetensors, RefusesToWriteNonsense) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("a");
  EXPECT_THROW(write_safetensors(path, {{{"a", at::ones({1})}, {"a", at::ones({1})}}, {}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"__metadata__", at::ones({1})}}, {}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"a", at::Tensor()}}, {}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"a\xff", at::ones({1})}}, {}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"a", at::empty({1}, at::kComplexDouble)}}, {}}), Error);
  EXPECT_EQ(testing::count_entries(folder), 0u);
}

TEST(Safetensors, AFullDiskLeavesNothing) {
  testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  EXPECT_THROW(write_safetensors(disk.folder().path("a"), {{{"a", at::ones({1 << 20})}}, {}}), Error);
  EXPECT_EQ(testing::count_entries(disk.folder()), 0u);
}

struct Hostile {
  const char* what;
  std::string bytes;
  const char* message;
};

class SafetensorsHostile : public ::testing::TestWithParam<Hostile> {};

TEST_P(SafetensorsHostile, IsRefusedWithOneLine) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("a.safetensors", GetParam().bytes);
  const std::string message = testing::error_text([&] { read_safetensors(path); });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << GetParam().what << ": " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

#define F32(shape, begin, end) "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

INSTANTIATE_TEST_SUITE_P(
    Headers, SafetensorsHostile,
    ::testing::Values(
        Hostile{"empty file", "", "only 0 bytes"}, Hostile{"7 bytes", "1234567", "only 7 bytes"},
        Hostile{"header beyond the file", to_bytes(1000, "{}", 0), "beyond the file"},
        Hostile{"huge header", to_bytes(UINT64_MAX, "{}", 0), "at most 100000000"},
        Hostile{"over 100 MB", to_bytes(100'000'001, "{}", 0), "at most 100000000"},
        Hostile{"not JSON", to_bytes("{\"a\":", 0), "not JSON"}, Hostile{"no header", to_bytes("", 0), "not JSON"},
        Hostile{"not UTF-8", to_bytes("{\"a\xff\":1}", 0), "not JSON"},
        Hostile{"no object", to_bytes("[1]", 0), "not a JSON object"},
        Hostile{"a list", to_bytes(std::string(100000, '['), 0), "is not a JSON object"},
        Hostile{"deep", to_bytes("{\"a\":{\"b\":" + std::string(100000, '['), 0), "nests deeper"},
        Hostile{"many numbers",
                to_bytes(
                    "{\"a\":[0" +
                        [] {
                          std::string list;
                          for (int i = 0; i < 50'000; ++i) list += ",0";
                          return list;
                        }() +
                        "]}",
                    0),
                "more than 40000 values"},
        Hostile{"entry is a number", to_bytes("{\"a\":1}", 0), "described by an object"},
        Hostile{"unknown type", to_bytes(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4), "F99"},
        Hostile{"no type", to_bytes(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4), "unknown type null"},
        Hostile{"no shape", to_bytes(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), "as shape"},
        Hostile{"no offsets", to_bytes(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "as data_offsets"},
        Hostile{"negative shape", to_bytes("{\"a\":" F32("[-1]", "0", "4") "}", 4), "whole numbers as shape"},
        Hostile{"fractional shape", to_bytes("{\"a\":" F32("[1.5]", "0", "4") "}", 4), "whole numbers as shape"},
        Hostile{"shape over int64", to_bytes("{\"a\":" F32("[18446744073709551615]", "0", "4") "}", 4),
                "whole numbers"},
        Hostile{"shape times size overflows to 4", to_bytes("{\"a\":" F32("[4611686018427387905,4]", "0", "4") "}", 4),
                "impossible shape"},
        Hostile{"zero times huge", to_bytes("{\"a\":" F32("[0,4611686018427387905,4]", "0", "0") "}", 0),
                "impossible shape"},
        Hostile{"shape does not fit", to_bytes("{\"a\":" F32("[2]", "0", "4") "}", 4), "needs 8 bytes but has 4"},
        Hostile{"beyond the data", to_bytes("{\"a\":" F32("[2]", "0", "8") "}", 4), "has 4 bytes"},
        Hostile{"backwards", to_bytes("{\"a\":" F32("[1]", "4", "0") "}", 4), "[4,0]"},
        Hostile{"three offsets", to_bytes("{\"a\":" F32("[1]", "0,4", "8") "}", 8), "[0,4,8]"},
        Hostile{"overlap", to_bytes("{\"a\":" F32("[2]", "0", "8") ",\"b\":" F32("[1]", "4", "8") "}", 8), "overlaps"},
        Hostile{"same bytes", to_bytes("{\"a\":" F32("[1]", "0", "4") ",\"b\":" F32("[1]", "0", "4") "}", 4),
                "overlaps"},
        Hostile{"gap", to_bytes("{\"a\":" F32("[1]", "0", "4") ",\"b\":" F32("[1]", "8", "12") "}", 12), "gap"},
        Hostile{"rest", to_bytes("{\"a\":" F32("[1]", "0", "4") "}", 9), "5 bytes at the end"},
        Hostile{"twice", to_bytes("{\"a\":" F32("[1]", "0", "4") ",\"a\":" F32("[1]", "0", "4") "}", 4),
                "the key \"a\" twice"},
        Hostile{"inner key twice",
                to_bytes(R"({"a":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4),
                "\"dtype\" twice"},
        Hostile{"metadata of numbers", to_bytes(R"({"__metadata__":{"a":1}})", 0), "must hold strings"},
        Hostile{"metadata list", to_bytes(R"({"__metadata__":[]})", 0), "object of strings"}),
    [](const auto& info) {
      std::string name = info.param.what;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

}  // namespace sparsight::safetensors_test
