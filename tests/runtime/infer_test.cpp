// The C interface of libsparsight_infer (runtime/include/sparsight/infer.h): its answers are those of the program.
#include "sparsight/infer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>

#include "sparsight/kernels/threads/own_threads.h"
#include "tests/runtime/bmp_image.h"
#include "tests/runtime/c_interface.h"
#include "tests/runtime/handles.h"
#include "tests/support/count_allocations.h"
#include "tests/support/platform.h"

namespace sparsight::runtime {

TEST(Infer, IsUsedFromC) {
  const std::string path = write_vit("c"), image = test::bmp_image(40, 50);
  const char* const wrong =
      use_each_function(path.c_str(), vit_file().data(), vit_file().size(), image.data(), image.size());
  EXPECT_EQ(wrong, nullptr) << wrong << " (" << sparsight_infer_last_error() << ")";
  std::remove(path.c_str());
}

TEST(Infer, AnswersAsTheProgramDoes) {
  const engine::Program program = test::small_vit();
  const std::vector<float> pixels = random_pixels(3, 2);
  engine::Session memory;
  cpu::OwnThreads threads(1);
  const engine::Answer answer = program.run(memory, threads, {.pixels = pixels.data(), .images = 3});
  const std::vector<float> want(answer.logits, answer.logits + 3 * kClasses);

  const SessionHandle session = open_session(open_model());
  EXPECT_EQ(classify(session, pixels), want);
  sparsight_infer_set_threads(session.get(), 2);
  EXPECT_EQ(classify(session, pixels), want);
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<float> one(pixels.begin() + i * kPixels, pixels.begin() + (i + 1) * kPixels);
    const std::vector<float> alone = classify(session, one);
    for (int64_t k = 0; k < kClasses; ++k) EXPECT_NEAR(alone[k], want[i * kClasses + k], 1e-5);
  }
}

// softmax in fp64 of the logits.
TEST(Infer, GivesProbabilitiesAndFeatures) {
  const SessionHandle session = open_session(open_model());
  const std::vector<float> pixels = random_pixels(1, 3);
  std::vector<float> logits(kClasses), probabilities(kClasses), features(test::kVitWidth);
  const int64_t shape[4] = {1, 3, test::kVitSide, test::kVitSide};
  const sparsight_infer_result result{sizeof result, 1, logits.data(), probabilities.data(), features.data()};
  ASSERT_EQ(sparsight_infer_classify_pixels(session.get(), pixels.data(), shape, &result), SPARSIGHT_INFER_OK);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (int64_t k = 0; k < kClasses; ++k) EXPECT_NEAR(probabilities[k], std::exp(logits[k]) / sum, 1e-6);
  EXPECT_NE(features, std::vector<float>(test::kVitWidth));
}

// A BMP file and its bytes give the same; as does what the program's preprocessing makes of them.
TEST(Infer, TakesImagesOfAnySize) {
  constexpr int64_t kHeight = 40, kWidth = 50, kRow = 3 * kWidth + 7;
  const engine::Program program = test::small_vit();
  std::vector<uint8_t> rows(kHeight * kRow, 255);
  engine::ByteImage planes(3, kHeight, kWidth);
  for (int64_t y = 0; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth; ++x)
      for (int64_t c = 0; c < 3; ++c)
        rows[y * kRow + 3 * x + c] = planes.bytes[(c * kHeight + y) * kWidth + x] = test::bmp_colour(x, y, c);
  std::vector<float> pixels(kPixels);
  program.info.preprocessing->run(planes.view(), pixels.data());

  const ModelHandle model = open_model();
  const SessionHandle session = open_session(model);
  const std::vector<float> want = classify(session, pixels);
  std::vector<float> logits(kClasses);
  const sparsight_infer_result result{sizeof result, 1, logits.data(), nullptr, nullptr};
  ASSERT_EQ(sparsight_infer_classify_image(session.get(), rows.data(), kHeight, kWidth, 3, kRow, &result),
            SPARSIGHT_INFER_OK);
  EXPECT_EQ(logits, want);
  if (!decodes(model)) return;
  const std::string file = test::bmp_image(kHeight, kWidth);
  ASSERT_EQ(sparsight_infer_classify_encoded(session.get(), file.data(), file.size(), &result), SPARSIGHT_INFER_OK);
  EXPECT_EQ(logits, want);
}

TEST(Infer, AnswersEightThreadsAlike) {
  SKIP_WITHOUT_THREADS();
  const ModelHandle model = open_model();
  const std::vector<float> pixels = random_pixels(2, 4), want = classify(open_session(model), pixels);
  std::atomic<int> equal{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&, i] {
      const SessionHandle session = open_session(model);
      sparsight_infer_set_threads(session.get(), 1 + i % 3);
      for (int repeat = 0; repeat < 20; ++repeat) equal += classify(session, pixels) == want;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(equal, 8 * 20);
}

// The same bits however many experts stay in memory; a file that is damaged after it was opened is an error then.
TEST(Infer, ReadsExpertsWhenTheyAreChosen) {
  const std::string path = write_vit("experts");
  const std::vector<float> want = classify(open_session(open_model()), random_pixels(3, 8));
  for (const int64_t kept : {int64_t{0}, int64_t{1}, INT64_MAX}) {
    sparsight_infer_model* model = nullptr;
    ASSERT_EQ(sparsight_infer_open(path.c_str(), kept, &model), SPARSIGHT_INFER_OK) << sparsight_infer_last_error();
    const ModelHandle close(model);
    const SessionHandle session = open_session(close);
    for (int repeat = 0; repeat < 3; ++repeat) EXPECT_EQ(classify(session, random_pixels(3, 8)), want) << kept;
  }
  sparsight_infer_model* model = nullptr;
  ASSERT_EQ(sparsight_infer_open(path.c_str(), 0, &model), SPARSIGHT_INFER_OK);
  const SessionHandle session = open_session(ModelHandle(model));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << vit_file().substr(0, 100);
  const int64_t shape[4] = {1, 3, test::kVitSide, test::kVitSide};
  const sparsight_infer_result result{sizeof result, 1, nullptr, nullptr, nullptr};
  const std::vector<float> pixels = random_pixels(1, 8);
  EXPECT_EQ(failure(sparsight_infer_classify_pixels(session.get(), pixels.data(), shape, &result)).substr(0, 2), "2:");
  std::remove(path.c_str());
}

TEST(Infer, AllocatesNothingAfterItsFirstRuns) {
  const SessionHandle session = open_session(open_model());
  const std::vector<float> pixels = random_pixels(2, 5);
  std::vector<float> logits(2 * kClasses), probabilities(2 * kClasses);
  const int64_t shape[4] = {2, 3, test::kVitSide, test::kVitSide};
  const sparsight_infer_result result{sizeof result, 2, logits.data(), probabilities.data(), nullptr};
  const auto run = [&] { return sparsight_infer_classify_pixels(session.get(), pixels.data(), shape, &result); };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run(), SPARSIGHT_INFER_OK);
  const int64_t before = test::allocations();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run(), SPARSIGHT_INFER_OK);
  EXPECT_EQ(test::allocations(), before);
}

TEST(Infer, CallsAfterEachDecisionAndStopsWhereItIsTold) {
  struct Seen {
    std::string layers;
    std::vector<int64_t> experts;
    int64_t stop_at = -1;
  } seen;
  const auto call = [](void* user, int64_t decision, const sparsight_infer_routing* routing) {
    auto& to = *static_cast<Seen*>(user);
    to.layers += std::string(routing->layer) + " ";
    to.experts.push_back(routing->expert[0]);
    return decision == to.stop_at ? 1 : 0;
  };
  const SessionHandle session = open_session(open_model());
  sparsight_infer_set_on_routing(session.get(), call, &seen);
  const std::vector<float> pixels = random_pixels(1, 6);
  classify(session, pixels);
  EXPECT_EQ(seen.layers, "blocks.4.mlp blocks.5.mlp ");
  sparsight_infer_routing routing{};
  for (int64_t decision = 0; decision < 2; ++decision) {
    ASSERT_EQ(sparsight_infer_get_routing(session.get(), decision, &routing, sizeof routing), SPARSIGHT_INFER_OK);
    EXPECT_EQ(routing.expert[0], seen.experts[static_cast<size_t>(decision)]);
  }

  seen.layers.clear(), seen.stop_at = 0;
  const int64_t shape[4] = {1, 3, test::kVitSide, test::kVitSide};
  const sparsight_infer_result result{sizeof result, 1, nullptr, nullptr, nullptr};
  EXPECT_EQ(failure(sparsight_infer_classify_pixels(session.get(), pixels.data(), shape, &result)),
            "6: the caller's function stopped the run");
  EXPECT_EQ(seen.layers, "blocks.4.mlp ");
  EXPECT_EQ(failure(sparsight_infer_get_routing(session.get(), 0, &routing, sizeof routing)),
            "1: there is no decision 0; the last run of this session made 0");
}

// Kept experts and packed weights beside the model change no bit.
TEST(Infer, KeepsPackedWeightsBesideTheModel) {
  const std::string path = write_vit("packed");
  const std::vector<float> pixels = random_pixels(2, 8), expected = classify(open_session(open_model()), pixels);
  const auto opened = [&](int64_t kept, int64_t state) {
    sparsight_infer_model* model = nullptr;
    EXPECT_EQ(sparsight_infer_open(path.c_str(), kept, &model), SPARSIGHT_INFER_OK) << sparsight_infer_last_error();
    const ModelHandle handle(model);
    sparsight_infer_info info{};
    EXPECT_EQ(sparsight_infer_get_info(model, &info, sizeof info), SPARSIGHT_INFER_OK);
    EXPECT_EQ(info.pack_cache, test::kIsWasm ? 0 : state);
    EXPECT_EQ(classify(open_session(handle), pixels), expected);
    return path + "." + info.instruction_set + ".packed";
  };
  std::remove(opened(SPARSIGHT_INFER_ALL_EXPERTS, 0).c_str());
  opened(SPARSIGHT_INFER_ALL_EXPERTS + SPARSIGHT_INFER_PACK_CACHE, 2);
  opened(SPARSIGHT_INFER_ALL_EXPERTS + SPARSIGHT_INFER_PACK_CACHE, 1);
  opened(1 + SPARSIGHT_INFER_PACK_CACHE, 1);
  std::remove(opened(1, 0).c_str());
}

// A program compiled with an older or a newer header passes structures of another size.
TEST(Infer, TakesStructuresOfOtherVersions) {
  const ModelHandle model = open_model();
  struct {
    sparsight_infer_info info;
    int64_t later;
  } newer{};
  newer.later = 7;
  ASSERT_EQ(sparsight_infer_get_info(model.get(), &newer.info, sizeof newer), SPARSIGHT_INFER_OK);
  EXPECT_EQ(newer.info.classes, kClasses);
  EXPECT_EQ(newer.later, 0);
  int64_t older[2] = {0, 7};
  ASSERT_EQ(sparsight_infer_get_info(model.get(), reinterpret_cast<sparsight_infer_info*>(older), sizeof older[0]),
            SPARSIGHT_INFER_OK);
  EXPECT_EQ(older[0], SPARSIGHT_INFER_ABI);
  EXPECT_EQ(older[1], 7);
}

}  // namespace sparsight::runtime
