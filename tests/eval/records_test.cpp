#include "sparsight/eval/records.h"

#include <unistd.h>

#include <filesystem>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/safetensors.h"
#include "tests/eval/record_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/small_disk.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::records_test {
namespace {

using test::longs;

// Images of two tokens, three experts. Assignments (token, expert), those of `kept` after capacity.
Routing make_routing(const std::vector<int64_t>& token, const std::vector<int64_t>& expert,
                     const std::vector<bool>& kept, int64_t images) {
  Routing routing;
  routing.layer = "blocks.1.mlp";
  routing.layout = {images, 2, 0, 0, 0};
  routing.tokens = 2 * images;
  routing.experts = 3;
  routing.token = longs(token);
  routing.expert = longs(expert);
  routing.gate = at::full({std::ssize(token)}, 0.5);
  routing.rank = at::zeros_like(routing.token);
  for (size_t i = 1; i < token.size(); ++i)
    if (token[i] == token[i - 1]) routing.rank[static_cast<int64_t>(i)] = 1;
  routing.kept = at::zeros({std::ssize(kept)}, at::kBool);
  for (size_t i = 0; i < kept.size(); ++i) routing.kept[static_cast<int64_t>(i)] = static_cast<bool>(kept[i]);
  return routing;
}

// One image of two tokens, two experts of two slots each.
SoftRouting make_soft_routing(int64_t images) {
  SoftRouting routing;
  routing.layer = "blocks.2.mlp";
  routing.layout = {images, 2, 0, 0, 0};
  routing.experts = 2;
  routing.slots = 2;
  routing.combine =
      at::tensor({0.5f, 0.25f, 0.25f, 0.0f, 0.0f, 0.5f, 0.25f, 0.25f}).view({1, 2, 4}).repeat({images, 1, 1});
  return routing;
}

// Two batches, of two images and of one.
void write_with_experts(const std::string& folder) {
  const test::RecordedImages images;
  RecordWriter writer(folder);
  ModelOutput first, second;
  first.logits = test::make_logits(images, 0, 2);
  // Image 0: tokens 0, 1; image 1: tokens 2, 3.
  first.routings = {make_routing({0, 0, 1, 2, 3}, {0, 2, 0, 1, 2}, {true, false, true, true, true}, 2)};
  first.soft_routings = {make_soft_routing(2)};
  second.logits = test::make_logits(images, 2, 3);
  second.routings = {make_routing({1}, {2}, {false}, 1)};
  second.soft_routings = {make_soft_routing(1)};
  writer.observe(test::recorded_batch(images, 0, 2), first);
  writer.observe(test::recorded_batch(images, 2, 3), second);
  EXPECT_EQ(writer.images(), 3);
  // 32 + 4 K of each image, 8 E and 4 E of its layers, and the ids.
  EXPECT_EQ(writer.bytes(), 3 * (32 + 4 * 3 + 8 * 3 + 4 * 2) + 6 + 9);
  EXPECT_FALSE(std::filesystem::exists(folder + "/index.json"));
  writer.commit(test::make_source(images));
}

at::Tensor ints(const std::vector<int64_t>& values, int64_t columns) {
  return longs(values).view({-1, columns}).to(at::kInt);
}

std::string read_error(const std::string& folder) {
  const std::string message = testing::error_text([&] { read_records(folder); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

}  // namespace

TEST(Records, SayOfEachImageWhatTheModelDid) {
  const testing::TemporaryFolder folder;
  write_with_experts(folder.path("new/records"));
  const Records records = read_records(folder.path("new/records"));
  EXPECT_EQ(records.images(), 3);
  EXPECT_EQ(records.ids, (std::vector<std::string>{"test/0", "caf\xC3\xA9.png", ""}));
  EXPECT_TRUE(at::equal(records.label, longs({1, 0, 2})));
  EXPECT_TRUE(at::equal(records.domain, longs({0, 0, 0})));
  EXPECT_TRUE(at::equal(records.prediction, longs({1, 2, 2})));
  EXPECT_TRUE(at::equal(records.logits, at::tensor({0.f, 1.f, 0.f, 0.f, 0.f, 1.f, 0.f, 0.f, 1.f}).view({3, 3})));
  EXPECT_EQ(records.classes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(records.domains, std::vector<std::string>{"all"});
  EXPECT_EQ(records.data, "glyphs");
  EXPECT_EQ(records.split, "test");
  EXPECT_EQ(records.checkpoint, "runs/a/checkpoints/best.safetensors");
  EXPECT_EQ(records.settings["data"]["seed"], 1);
  ASSERT_EQ(records.layers.size(), 2u);
  EXPECT_EQ(records.layers[0].layer, "blocks.1.mlp");
  EXPECT_EQ(records.layers[0].experts, 3);
  // Image 0 chose expert 0 with both tokens and expert 2 with the first, which was dropped.
  EXPECT_TRUE(at::equal(records.layers[0].chosen, ints({2, 0, 1, 0, 1, 1, 0, 0, 1}, 3)));
  EXPECT_TRUE(at::equal(records.layers[0].kept, ints({2, 0, 0, 0, 1, 1, 0, 0, 0}, 3)));
  // Expert 0 has the weights 0.75 in the first token and 0.5 in the second: 0.625 on average.
  EXPECT_TRUE(at::equal(records.layers[1].combine, at::tensor({0.625f, 0.375f}).repeat({3, 1})));
  EXPECT_FALSE(records.layers[1].chosen.defined());
  EXPECT_EQ(testing::count_entries(folder), 1u);
}

TEST(Records, TheIndexSaysWhatTheColumnsAre) {
  const testing::TemporaryFolder folder;
  write_with_experts(folder.path("a"));
  const Json index = Json::parse(read_file(folder.path("a/index.json"), 1 << 20));
  EXPECT_EQ(index["format"], 1);
  EXPECT_EQ(index["step"], 7);
  EXPECT_EQ(index["weights"], "ema");
  std::vector<std::string> described, stored;
  for (const Json& column : index["columns"]) described.push_back(column["name"]);
  for (const TensorEntry& entry : read_safetensors_header(folder.path("a/records.safetensors")).tensors)
    stored.push_back(entry.name);
  std::sort(described.begin(), described.end());
  std::sort(stored.begin(), stored.end());
  EXPECT_EQ(described, stored);
}

// Classes 0, 1 and 2 are of super-classes 1, 0 and 1; the routers' logits favour experts 0 (twice) and 1.
TEST(Records, OfGuidedRoutersHaveTheSuperClassAndTheRoutersChoice) {
  const testing::TemporaryFolder folder;
  const test::RecordedImages images;  // of classes 1, 0 and 2
  RecordWriter writer(folder.path("a"));
  writer.add_super_classes({1, 0, 1}, {"first", "second"});
  ModelOutput output;
  output.logits = test::make_logits(images, 0, 3);
  Routing routing = make_routing({0, 1, 2}, {0, 0, 1}, {true, true, true}, 3);
  routing.layer = "router";
  routing.layout = {3, 1, 0, 0, 0};
  routing.tokens = 3;
  routing.experts = 2;
  routing.clean_logits = at::tensor({2.f, 1.f, 3.f, 0.f, 0.f, 1.f}).view({3, 2});
  output.routings = {routing};
  writer.observe(test::recorded_batch(images, 0, 3), output);
  writer.commit(test::make_source(images));
  const TensorFile file = read_safetensors(folder.path("a/records.safetensors"));
  std::map<std::string, at::Tensor> columns(file.tensors.begin(), file.tensors.end());
  EXPECT_TRUE(at::equal(columns["super_class"], longs({0, 1, 1})));
  EXPECT_TRUE(at::equal(columns["router_choice/router"], longs({0, 0, 1})));  // two of three are right
  const Json index = Json::parse(read_file(folder.path("a/index.json"), 1 << 20));
  EXPECT_EQ(index["super_classes"], (Json{"first", "second"}));
  EXPECT_EQ(index["super_class_of"], (Json{1, 0, 1}));
  EXPECT_EQ(index["format"], 1);
  EXPECT_EQ(read_records(folder.path("a")).images(), 3);  // readers that do not ask for them are not disturbed
}

TEST(Records, PartsCanBeLeftOut) {
  const testing::TemporaryFolder folder;
  write_with_experts(folder.path("a"));
  const Records records = read_records(folder.path("a"), {.logits = false, .experts = false});
  EXPECT_FALSE(records.logits.defined());
  EXPECT_TRUE(records.layers.empty());
  EXPECT_EQ(records.ids.size(), 3u);
}

TEST(Records, WithoutCommitNothingIsLeftAndEarlierOnesStay) {
  const testing::TemporaryFolder folder;
  const test::RecordedImages images;
  ModelOutput output;
  output.logits = test::make_logits(images, 0, 3);
  { RecordWriter(folder.path("a")).observe(test::recorded_batch(images, 0, 3), output); }
  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  write_with_experts(folder.path("a"));
  { RecordWriter(folder.path("a")).observe(test::recorded_batch(images, 0, 3), output); }
  EXPECT_EQ(read_records(folder.path("a")).layers.size(), 2u);
  test::write_records(folder.path("a"), images);  // replaces them
  EXPECT_EQ(read_records(folder.path("a")).layers.size(), 0u);
  EXPECT_NE(testing::error_text([&] { RecordWriter(folder.path("b")).commit({}); }).find("no image was evaluated"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path("b")));
}

TEST(Records, FoldersOfOtherThingsAreNotTaken) {
  const testing::TemporaryFolder folder;
  folder.write("run/config.toml", "x");
  const auto refusal = [&](const std::string& path) {
    return testing::error_text<UsageError>([&] { RecordWriter writer(path); });
  };
  EXPECT_NE(
      refusal(folder.path("run")).find("it holds config.toml, which are not records; choose a new or empty folder"),
      std::string::npos);
  EXPECT_NE(refusal(folder.path("run/config.toml")).find("it is not a folder"), std::string::npos);
  folder.write("left/records.safetensors", "of a killed process");
  EXPECT_EQ(refusal(folder.path("left")), "");
}

TEST(Records, DamagedIndexesAreRefused) {
  const testing::TemporaryFolder folder;
  EXPECT_NE(read_error(folder.path("none")).find("holds no records; write them with sparsight eval RUN --records"),
            std::string::npos);
  write_with_experts(folder.path("a"));
  const std::string path = folder.path("a/index.json"), good = read_file(path, 1 << 20);
  const auto expect = [&](const std::string& text, const std::string& part) {
    write_file_atomically(path, text);
    const std::string message = read_error(folder.path("a"));
    EXPECT_NE(message.find(part), std::string::npos) << part << ": " << message;
  };
  const auto changed = [&](const std::string& key, const Json& value) {
    Json index = testing::unchecked_json(good);
    index[key] = value;
    return index.dump();
  };
  expect("", "is not a JSON object");
  expect(good.substr(0, good.size() / 2), "is not a JSON object");
  expect("[1]", "is not a JSON object");
  expect(std::string(100000, '['), "is not a JSON object");
  expect(changed("format", 3), "records of format 3, this program reads up to 2; use a newer one");
  expect(changed("format", "1"), "format must be a whole number");
  for (const Json& images : {Json(0), Json(-1), Json(2.5), Json(UINT64_MAX), Json(int64_t{1} << 40), Json()})
    expect(changed("images", images), "images must be a whole number of 1 to");
  expect(changed("images", 4), "the column label must be Long [4], got Long [3]; the file does not match its index");
  expect(changed("classes", Json::array()), "classes must be a list of names");
  expect(changed("classes", {"a", 3, "c"}), "classes must be a list of names");
  expect(changed("classes", {"a", "b"}), "the column logits must be Float [3, 2], got Float [3, 3]");
  expect(changed("domains", "all"), "domains must be a list of names");
  expect(changed("layers", 3), "layers must be a list");
  expect(changed("layers", {3}), "layers must be a list of objects");
  expect(changed("layers", {{{"layer", "x"}, {"experts", 2}}}), "has no column chosen/x");
  expect(changed("layers", {{{"layer", "x\n\x1b"}, {"experts", 2}}}), "has no column chosen/x\\x0a\\x1b");
  expect(changed("layers", {{{"layer", "x"}, {"experts", int64_t{1} << 62}}}), "experts must be a whole number");
  expect(changed("layers", {{{"layer", "x"}, {"experts", 2}, {"soft", 1}}}), "soft must be true or false");
  expect(changed("split", 1), "split must be a string");
}

TEST(Records, DamagedTensorsAreRefused) {
  const testing::TemporaryFolder folder;
  write_with_experts(folder.path("a"));
  const std::string path = folder.path("a/records.safetensors"), good = read_file(path, 1 << 20);
  const auto expect = [&](const std::string& part) {
    const std::string message = read_error(folder.path("a"));
    EXPECT_NE(message.find(part), std::string::npos) << part << ": " << message;
    write_file_atomically(path, good);
  };
  write_file_atomically(path, good.substr(0, good.size() - 1));
  expect("it is truncated or damaged");
  write_file_atomically(path, "x");
  expect("is not a safetensors file");
  std::filesystem::remove(path);
  expect("No such file");
  const auto with = [&](const std::string& name, const at::Tensor& value, const std::string& part) {
    TensorFile file = read_safetensors(path);
    for (auto& [key, tensor] : file.tensors)
      if (key == name) tensor = value;
    write_safetensors(path, file);
    expect(part);
  };
  with("label", longs({0, 3, 1}), "the column label must hold numbers of 0 to 2, got 3");
  with("prediction", longs({0, -1, 1}), "the column prediction must hold numbers of 0 to 2, got -1");
  with("domain", longs({0, 0, 1}), "the column domain must hold numbers of 0 to 0, got 1");
  with("domain", at::zeros({3}, at::kInt), "the column domain must be Long [3], got Int [3]");
  with("label", at::zeros({3, 1}, at::kLong), "the column label must be Long [3], got Long [3, 1]");
  with("id_end", longs({6, 5, 15}), "id 1 is at 6 to 5 of 15 bytes");
  with("id_end", longs({-1, 5, 15}), "id 0 is at 0 to -1 of 15 bytes");
  with("id_end", longs({6, 15, INT64_MAX}), "id 2 is at 15 to 9223372036854775807 of 15 bytes");
  with("id_end", longs({6, 10, 10}), "5 bytes of ids belong to no image");
  with("kept/blocks.1.mlp", ints({3, 0, 0, 0, 1, 1, 0, 0, 0}, 3), "more assignments than were chosen");
  with("kept/blocks.1.mlp", ints({-1, 0, 0, 0, 1, 1, 0, 0, 0}, 3), "fewer than 0");
  EXPECT_EQ(read_error(folder.path("a")), "");
}

// A sparse file of a terabyte takes a few bytes of disk; reading it must take no memory.
TEST(Records, HugeFilesAreRefusedBeforeTheyAreRead) {
  const testing::TemporaryFolder folder;
  test::write_records(folder.path("a"), {});
  constexpr int64_t kImages = int64_t{1} << 31;
  Json index = testing::unchecked_json(read_file(folder.path("a/index.json"), 1 << 20));
  index["images"] = kImages;
  write_file_atomically(folder.path("a/index.json"), index.dump());
  Json header = Json::object();
  int64_t end = 0;
  const auto add = [&](const char* name, const char* type, std::vector<int64_t> shape, int64_t bytes) {
    header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  };
  for (const char* name : {"label", "domain", "prediction", "id_end"}) add(name, "I64", {kImages}, 8 * kImages);
  add("logits", "F32", {kImages, 3}, 12 * kImages);
  add("id", "U8", {0}, 0);
  const std::string text = header.dump();
  const uint64_t length = text.size();
  const std::string path = folder.path("a/records.safetensors");
  write_file_atomically(path, std::string(reinterpret_cast<const char*>(&length), 8) + text);
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(8 + length) + end), 0);
  EXPECT_NE(read_error(folder.path("a")).find("bytes of records, at most 17179869184 are read"), std::string::npos);
}

TEST(Records, AFullDiskLeavesTheEarlierRecords) {
  testing::SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string path = disk.folder().path("a");
  test::write_records(path, {});
  test::RecordedImages many;
  many.ids.assign(20000, "i");
  many.labels.assign(20000, 0);
  many.predictions.assign(20000, 0);
  EXPECT_NE(testing::error_text([&] { test::write_records(path, many); }).find("No space left on device"),
            std::string::npos);
  EXPECT_EQ(read_records(path).images(), 3);
}

}  // namespace sparsight::records_test
