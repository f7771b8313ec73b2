#include "sparsight/infer/predict_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sparsight/core/config.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/models/make_model.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "sparsight/train/run_config.h"
#include "tests/support/errors.h"
#include "tests/support/program.h"

namespace sparsight::predict_files_test {
namespace {

// A ViT for grey 8x8 images whose router is `router`.
LoadedModel model_with(const std::string& router) {
  LoadedModel loaded;
  Config config;
  for (const std::string& assignment :
       {std::string("model.width=8"), std::string("model.depth=2"), std::string("model.heads=2"),
        std::string("model.patch=2"), std::string("moe.blocks=[1]"), std::string("moe.experts=4"),
        std::string("capacity.eval_factor=1"), "router.name=" + router})
    config.set(assignment);
  loaded.config = resolve(config, config_sections());
  loaded.data.classes = {"cat", "dog", "owl"};
  loaded.data.channels = 1;
  loaded.shape = {1, 8, 8, 3};
  loaded.model = make_model(loaded.config, loaded.shape);
  initialize(*loaded.model, 3);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& p : loaded.model->parameters()) p.mul_(10);  // so that images and experts differ
  return loaded;
}

std::vector<std::string> random_images(const testing::TemporaryFolder& folder, int count) {
  at::manual_seed(5);
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i)
    files.push_back(folder.write(cat(i, ".png"), encode_png(at::randint(256, {1, 8, 8}).to(at::kByte))));
  return files;
}

struct Answers {
  std::vector<Prediction> predictions;
  PredictFilesResult result;
};

Answers answers(const LoadedModel& model, const std::vector<std::string>& files, int64_t batch,
                const RoutingReplay& replay = {}) {
  ImageNames names(files, -1);
  Answers all;
  all.result = predict_files(model, names, replay, {.top = 3, .max_batch = batch},
                             [&](const Prediction& prediction) { all.predictions.push_back(prediction); });
  return all;
}

}  // namespace

// Capacity, and whatever else a router looks at, is that of the image alone.
TEST(PredictFiles, BatchesAnswerAsSingleImages) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> files = random_images(folder, 11);
  for (const std::string& router : routers().names()) {
    SCOPED_TRACE(router);
    LoadedModel model;
    try {
      model = model_with(router);
    } catch (const UsageError&) {
      continue;  // needs more settings than its name
    }
    const std::vector<Prediction> alone = answers(model, files, 1).predictions;
    for (const int64_t batch : {3, 64}) {
      const std::vector<Prediction> together = answers(model, files, batch).predictions;
      ASSERT_EQ(together.size(), files.size());
      for (size_t i = 0; i < files.size(); ++i) {
        EXPECT_EQ(together[i].image, files[i]);
        EXPECT_EQ(to_text(together[i]), to_text(alone[i]));
        for (size_t k = 0; k < 3; ++k)
          EXPECT_NEAR(together[i].classes[k].probability, alone[i].classes[k].probability, 1e-5);
      }
    }
  }
}

TEST(PredictFiles, AnUnreadableImageLeavesTheOrder) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> files = random_images(folder, 4);
  files.insert(files.begin() + 1, folder.path("missing.png"));
  const Answers all = answers(model_with("softmax_topk"), files, 64);
  EXPECT_EQ(all.result.images, 5);
  EXPECT_EQ(all.result.failed, 1);
  ASSERT_EQ(all.predictions.size(), 4u);
  EXPECT_EQ(all.predictions[0].image, files[0]);
  EXPECT_EQ(all.predictions[1].image, files[2]);
}

TEST(PredictFiles, ReplaysTheRoutingOfEachImage) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> files = random_images(folder, 6);
  const LoadedModel model = model_with("softmax_topk");
  RoutingCollector decisions;
  for (const Prediction& prediction : answers(model, files, 4).predictions) decisions.add(prediction.routings);
  std::vector<std::string> reversed(files.rbegin(), files.rend());
  const std::vector<Prediction> replayed = answers(model, reversed, 4, RoutingReplay(decisions.all())).predictions;
  const std::vector<Prediction> own = answers(model, files, 1).predictions;
  for (size_t i = 0; i < files.size(); ++i)  // image i with the experts that were saved at position i
    EXPECT_TRUE(at::equal(replayed[i].routings.at("blocks.1.mlp").expert, own[i].routings.at("blocks.1.mlp").expert));
}

TEST(ImageNames, ReadsLinesAsTheyCome) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ImageNames names({"a.png", "-", "b.png"}, ends[0]);
  EXPECT_EQ(names.total(), 0);
  EXPECT_EQ(names.next(true), "a.png");
  EXPECT_EQ(names.next(false), std::nullopt);
  ASSERT_EQ(write(ends[1], "x.png\r\n\ny z", 11), 11);
  EXPECT_EQ(names.next(true), "x.png");
  EXPECT_EQ(names.next(false), std::nullopt);  // half a line
  EXPECT_FALSE(names.finished());
  close(ends[1]);
  EXPECT_EQ(names.next(true), "y z");
  EXPECT_EQ(names.next(true), "b.png");
  EXPECT_TRUE(names.finished());
  EXPECT_EQ(names.next(true), std::nullopt);
  close(ends[0]);
}

TEST(ImageNames, SaysWhereThereIsNothing) {
  const int nothing = open("/dev/null", O_RDONLY);
  ImageNames names({"-"}, nothing);
  EXPECT_NE(testing::error_text([&] { names.next(true); }).find("no images were given"), std::string::npos);
  close(nothing);
}

}  // namespace sparsight::predict_files_test
