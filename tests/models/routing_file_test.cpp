#include "sparsight/models/routing_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/safetensors_rows.h"
#include "sparsight/models/register_models.h"
#include "sparsight/models/routing_record.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"
#include "tests/support/random_tensor.h"

namespace sparsight::routing_file_test {
namespace {

std::shared_ptr<ImageModel> make_vit(const std::string& router) {
  auto model = models().make("vit", {{"width", 16}, {"depth", 3}, {"heads", 2}, {"patch", 4}}, "model",
                             ModelContext{{1, 8, 8, 3},
                                          read_moe_spec({{"moe", {{"blocks", {1, 2}}, {"experts", 4}}},
                                                         {"experts", {{"name", "mlp"}}},
                                                         {"capacity", {{"factor", 0.75}}},
                                                         {"losses", Json::object()},
                                                         {"router", {{"name", router}}}})});
  initialize(*model, 1);
  const torch::NoGradGuard no_grad;
  for (auto& p : model->named_parameters())
    p.value().add_(test::random_tensor(p.value().sizes(), 8, torch::kFloat) * 0.1);
  return model;
}

at::Tensor images() { return test::random_tensor({6, 1, 8, 8}, 3, torch::kFloat); }

ModelOutput answer(ImageModel& model, const at::Tensor& images, const Routings& routings = {}) {
  const torch::NoGradGuard no_grad;
  ModelInput input;
  input.images = images;
  input.routings = routings;
  return model.forward(input);
}

}  // namespace

class RoutingFile : public ::testing::TestWithParam<std::string> {};

TEST_P(RoutingFile, GivesBackDecisionsThatReplayToTheSameBits) {
  const testing::TemporaryFolder folder;
  const auto model = make_vit(GetParam());
  const ModelOutput first = answer(*model, images());
  write_routings(folder.path("r"), to_routings(first));
  const Routings read = read_routings(folder.path("r"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_TRUE(torch::equal(answer(*model, images(), read).logits, first.logits));
  const at::Tensor other = images() + 0.5;
  EXPECT_FALSE(torch::equal(answer(*model, other, read).logits, answer(*model, other).logits));
}

// A ViT of the paper's tokens, 224 pixels in patches of 16 and a class token, over three images in two batches.
TEST(RoutingRecords, G51_HoldEveryTokenOfEveryLayer) {
  const testing::TemporaryFolder folder;
  auto model = models().make("vit", {{"width", 16}, {"depth", 3}, {"heads", 2}, {"patch", 16}}, "model",
                             ModelContext{{3, 224, 224, 3},
                                          read_moe_spec({{"moe", {{"blocks", {0, 2}}, {"experts", 6}}},
                                                         {"experts", {{"name", "mlp"}}},
                                                         {"capacity", {{"factor", 0}}},
                                                         {"losses", Json::object()},
                                                         {"router", {{"name", "cosine"}, {"k", 2}}}})});
  initialize(*model, 1);
  const std::vector<RoutedImage> images{{"photo/dog/1.png", 4, 2}, {"sketch/cat/\xFF.png", 0, 1}, {"", -1, -1}};
  const at::Tensor pixels = test::random_tensor({3, 3, 224, 224}, 3, torch::kFloat);
  std::vector<Routings> batches;
  RoutingRecordWriter writer(folder.path("r"));
  for (const int64_t first : {0, 2}) {
    const int64_t last = first == 0 ? 2 : 3;
    batches.push_back(to_routings(answer(*model, pixels.narrow(0, first, last - first))));
    writer.add(batches.back(), {images.begin() + first, images.begin() + last});
  }
  writer.commit({{"split", "test"}, {"domains", {"art", "sketch", "photo"}}});

  const RoutingRecord read = read_routing_record(folder.path("r"));
  EXPECT_EQ(read.manifest.at("images"), 3);
  EXPECT_EQ(read.manifest.at("split"), "test");
  ASSERT_EQ(read.images.size(), 3u);
  EXPECT_EQ(read.images[0].id, "photo/dog/1.png");
  EXPECT_EQ(read.images[1].id, "sketch/cat/\\xff.png");  // UTF-8, as everywhere
  EXPECT_EQ(read.images[2].id, "");
  EXPECT_EQ(read.images[0].label, 4);
  EXPECT_EQ(read.images[1].domain, 1);
  EXPECT_EQ(read.images[2].label, -1);

  RoutingCollector before;
  for (const Routings& batch : batches) before.add(batch);
  ASSERT_EQ(read.routings.size(), 2u);
  for (const auto& [layer, whole] : before.all()) {
    const Routing& routing = read.routings.at(layer);
    EXPECT_EQ(routing.layout.images, 3);
    EXPECT_EQ(routing.layout.per_image, 197);
    EXPECT_EQ(routing.layout.prefix, 1);
    EXPECT_EQ(routing.layout.grid_height * routing.layout.grid_width, 196);
    EXPECT_TRUE(torch::equal(routing.token, at::arange(3 * 197, at::kLong).repeat_interleave(2)));
    for (const auto& [name, field] : choice_fields()) EXPECT_TRUE(torch::equal(routing.*field, whole.*field)) << name;
    // In the file they are [n,S,K], and the logits [n,S,E].
    const SafetensorsRowReader file(folder.path("r"));
    const at::Tensor second = file.rows(layer + "/expert", 1, 2);
    EXPECT_EQ(second.sizes(), (std::vector<int64_t>{1, 197, 2}));
    EXPECT_TRUE(torch::equal(second.flatten(), batches[0].at(layer).expert.slice(0, 197 * 2)));
    const at::Tensor logits = at::cat({batches[0].at(layer).clean_logits, batches[1].at(layer).clean_logits});
    EXPECT_TRUE(torch::equal(read.clean_logits.at(layer), logits.view({3, 197, 6})));
  }
}

// The manifest names every tensor of the file.
TEST_P(RoutingFile, SaysWhatIsInIt) {
  const testing::TemporaryFolder folder;
  const auto model = make_vit(GetParam());
  RoutingRecordWriter writer(folder.path("r"));
  writer.add(to_routings(answer(*model, images())), std::vector<RoutedImage>(6));
  writer.commit({});
  std::set<std::string> named, there;
  const RoutingRecord record = read_routing_record(folder.path("r"));
  for (const Json& tensor : record.manifest.at("tensors")) named.insert(tensor.at("tensor").get<std::string>());
  for (const TensorEntry& entry : read_safetensors_header(folder.path("r")).tensors) there.insert(entry.name);
  EXPECT_EQ(named, there);
  EXPECT_TRUE(there.contains("images/domain"));
}

TEST(RoutingRecords, RefuseBatchesThatDoNotFitTogether) {
  const testing::TemporaryFolder folder;
  const auto model = make_vit("softmax_topk");
  Routings routings = to_routings(answer(*model, images()));
  RoutingRecordWriter writer(folder.path("r"));
  writer.add(routings, {});
  routings.begin()->second.experts = 5;
  EXPECT_NE(testing::error_text([&] { writer.add(routings, {}); }).find("its sizes are"), std::string::npos);
  RoutingRecordWriter other(folder.path("s"));
  other.add(to_routings(answer(*model, images())), std::vector<RoutedImage>(5));
  EXPECT_NE(testing::error_text([&] { other.commit({}); }).find("is of 6 images, but 5 were recorded"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path("s")));
}

// Decisions about single images, joined in another order and split again.
TEST_P(RoutingFile, DecisionsAreJoinedAndSplitByImage) {
  const auto model = make_vit(GetParam());
  std::vector<ModelOutput> alone;
  RoutingCollector decisions;
  for (int64_t i = 0; i < 6; ++i) {
    alone.push_back(answer(*model, images().narrow(0, i, 1)));
    decisions.add(to_routings(alone.back()));
  }
  const RoutingReplay all(decisions.all());
  const std::vector<int64_t> wanted{4, 0, 5, 0};
  const at::Tensor some = torch::tensor(wanted, torch::kLong);
  const at::Tensor logits = answer(*model, images().index_select(0, some), all.of(some)).logits;
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(
        torch::allclose(logits[static_cast<int64_t>(i)], alone[static_cast<size_t>(wanted[i])].logits[0], 1e-5, 1e-6))
        << i;
  for (const int64_t beyond : {6, -1})
    EXPECT_NE(testing::error_text([&] {
                all.of(torch::tensor({beyond}, torch::kLong));
              }).find(cat("got image number ", beyond)),
              std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Routers, RoutingFile, ::testing::Values("softmax_topk", "expert_choice", "top_p", "soft_moe"),
                         [](const auto& info) { return info.param; });

TEST(RoutingFileErrors, NameWhatIsWrong) {
  const testing::TemporaryFolder folder;
  const auto model = make_vit("softmax_topk");
  const Routings good = to_routings(answer(*model, images()));
  const auto refusal = [&](const std::function<void(Routing&)>& spoil) {
    Routings bad = good;
    Routing& routing = bad.begin()->second;
    for (at::Tensor* t : {&routing.token, &routing.expert, &routing.gate, &routing.kept}) *t = t->clone();
    spoil(routing);
    write_routings(folder.path("r"), bad);
    return testing::error_text([&] { read_routings(folder.path("r")); });
  };
  EXPECT_NE(refusal([](Routing& r) { r.expert[3] = 4; }).find("expert must be from 0 to 3"), std::string::npos);
  EXPECT_NE(refusal([](Routing& r) { r.token[3] = -1; }).find("token must be from 0 to"), std::string::npos);
  EXPECT_NE(refusal([](Routing& r) { r.token = r.token.flip(0); }).find("sorted by token, then by rank"),
            std::string::npos);
  EXPECT_NE(refusal([](Routing& r) { r.gate[3] = NAN; }).find("gate has NaN"), std::string::npos);
  EXPECT_NE(refusal([](Routing& r) { r.gate = r.gate.slice(0, 1); }).find("gate has shape"), std::string::npos);
  EXPECT_NE(refusal([](Routing& r) { r.expert[1] = r.expert[0].item<int64_t>(); }).find("the same expert twice"),
            std::string::npos);
  EXPECT_NE(
      refusal([](Routing& r) { r.layout.images = int64_t{1} << 39, r.layout.per_image = 1 << 20; }).find("tokens"),
      std::string::npos);
  write_safetensors(folder.path("other"), {{{"token", torch::zeros({3})}}, {}});
  EXPECT_NE(testing::error_text([&] { read_routings(folder.path("other")); }).find("is not a routing file"),
            std::string::npos);
  write_safetensors(folder.path("newer"), {{}, {{"format", "sparsight.routings"}, {"version", "9"}}});
  EXPECT_NE(testing::error_text([&] { read_routings(folder.path("newer")); }).find("format version \"9\""),
            std::string::npos);
  write_safetensors(
      folder.path("torn"),
      {{}, {{"format", "sparsight.routings"}, {"version", "1"}, {"layers", "{\"a\": {\"images\": -1}}"}}});
  EXPECT_NE(testing::error_text([&] { read_routings(folder.path("torn")); }).find("must be an integer from 0"),
            std::string::npos);
  write_safetensors(folder.path("none"), {{}, {{"format", "sparsight.routings"}, {"version", "1"}, {"layers", "{}"}}});
  EXPECT_EQ(testing::error_text([&] { read_routings(folder.path("none")); }),
            folder.path("none") + ": it has no layers; write it again with --save-routing");
}

}  // namespace sparsight::routing_file_test
