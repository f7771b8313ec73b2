#include "sparsight/io/torch_pickle.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/pickle.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"

namespace sparsight::torch_pickle_test {
namespace {

// tests/golden/io/make_torch_files.py wrote these with PyTorch.
std::string golden(const std::string& name) { return test::source_path("tests/golden/io/" + name); }

void expect_linear(const NamedTensors& tensors) {
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].first, "weight");
  EXPECT_TRUE(at::equal(tensors[0].second, at::arange(6, at::kFloat).reshape({2, 3})));
  EXPECT_EQ(tensors[1].first, "bias");
  EXPECT_TRUE(at::equal(tensors[1].second, at::tensor({10.0f, 11.0f})));
}

void expect_refused(const std::string& file, const std::string& part) {
  const std::string message = testing::error_text([&] { read_torch_pickle(golden(file)); });
  EXPECT_NE(message.find(part), std::string::npos) << file << ": " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

}  // namespace

TEST(TorchPickle, ReadsAStateDict) { expect_linear(read_torch_pickle(golden("plain.pt"))); }

TEST(TorchPickle, FindsANestedStateDictOfADataParallelModelBesideForeignObjects) {
  expect_linear(read_torch_pickle(golden("nested.pt")));
}

TEST(TorchPickle, ReadsEveryTypeAndViews) {
  for (const auto& [name, tensor] : read_torch_pickle(golden("views.pt"))) {
    const at::Tensor base = at::arange(12, at::kFloat).reshape({3, 4});
    if (name == "parameter")
      EXPECT_TRUE(at::equal(tensor, at::arange(6, at::kFloat).reshape({2, 3})));
    else if (name == "transposed")
      EXPECT_TRUE(at::equal(tensor, base.t()));
    else if (name == "row")
      EXPECT_TRUE(at::equal(tensor, base[1]));
    else if (name == "empty")
      EXPECT_EQ(tensor.sizes(), at::IntArrayRef({0, 3}));
    else if (name == "scalar")
      EXPECT_EQ(tensor.item<float>(), 7);
    else
      EXPECT_TRUE(at::equal(tensor, at::arange(3).to(tensor.scalar_type()))) << name;
  }
  EXPECT_EQ(read_torch_pickle(golden("views.pt")).size(), 15u);
}

TEST(TorchPickle, SaysWhatToDoWithOtherFiles) {
  expect_refused("module.pt", "a Python object of torch.nn.modules.linear.Linear; in Python, save its weights");
  expect_refused("list.pt", "has no state dict");
  expect_refused("sparse.pt", "_rebuild_sparse_tensor, which is not supported");
  expect_refused("legacy.pt",
                 "before 1.6; in Python, save it again: torch.save(torch.load(p, map_location=\"cpu\"), p)");
  expect_refused("script.pt", "is a TorchScript program");
  expect_refused("python.safetensors", "not a PyTorch file");
  expect_refused("missing.pt", "No such file");
}

TEST(TorchPickle, HostileFilesAreRefused) {
  expect_refused("deep.pt", "has no state dict");
  expect_refused("beyond.pt", "weight reaches beyond its storage");
  expect_refused("evil.pt", "posix.system");
}

// Truncated files and flipped bytes give an Error or, if the byte does not matter, tensors.
TEST(TorchPickle, CutAndChangedFilesNeverCrash) {
  const testing::TemporaryFolder folder;
  const std::string whole = read_file(golden("plain.pt"), 1 << 20);
  for (size_t size = 0; size < whole.size(); size += 41)
    EXPECT_THROW(read_torch_pickle(folder.write("cut.pt", whole.substr(0, size))), Error) << size;
  size_t refused = 0;
  for (size_t i = 0; i < whole.size(); i += 17) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0xff);
    folder.write("changed.pt", changed);
    if (!testing::error_text([&] { read_torch_pickle(folder.path("changed.pt")); }).empty()) ++refused;
  }
  EXPECT_GT(refused, 10u);
}

TEST(Pickle, DamagedPicklesAreRefused) {
  using namespace std::string_literals;
  const std::pair<std::string, const char*> cases[] = {{"", "ends early"},
                                                       {"\x80\x02", "ends early"},
                                                       {"N", "ends early"},
                                                       {".", "stack is empty"},
                                                       {"0.", "stack is empty"},
                                                       {"t.", "mark is missing"},
                                                       {"(0.", "stack is empty"},
                                                       {"h\x05.", "reference to nothing"},
                                                       {"X\xff\xff\xff\xff"s, "ends early"},
                                                       {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s, "ends early"},
                                                       {"cno end", "ends early"},
                                                       {"NN\x86NR.", "call without arguments"},
                                                       {"NNa.", "wrong container"},
                                                       {"}NNNs.", "wrong container"},
                                                       {"}(Nu.", "wrong container"},
                                                       {"i.", "unknown instruction 105"}};
  for (const auto& [bytes, part] : cases) {
    const std::string message = testing::error_text([&] { parse_pickle(bytes, "file.pt"); });
    EXPECT_NE(message.find(part), std::string::npos) << bytes << ": " << message;
  }
}

// A long tuple that is converted to a storage repeatedly would need memory quadratic in the file size.
TEST(Pickle, RepeatedCopiesAreRefused) {
  std::string bytes = "(";
  bytes.append(100000, 'N');
  bytes += "tq";
  bytes.push_back('\0');
  for (int i = 0; i < 100000; ++i) bytes += std::string("h\0Q", 3);
  EXPECT_NE(testing::error_text([&] { parse_pickle(bytes, "file.pt"); }).find("repeats itself"), std::string::npos);
}

TEST(Pickle, AListInItselfIsOnlyData) {
  const Pickle pickle = parse_pickle(std::string("]q\0h\0a.", 7), "file.pt");
  EXPECT_EQ(pickle.at(pickle.root).items, std::vector<uint32_t>{pickle.root});
}

}  // namespace sparsight::torch_pickle_test
