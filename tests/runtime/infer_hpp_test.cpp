// The C++ form of the interface, sparsight/infer.hpp.
#include "sparsight/infer.hpp"

#include <gtest/gtest.h>

#include "tests/support/frozen.h"
#include "tests/support/small_vit.h"

namespace sparsight::infer {
namespace {

std::span<const std::byte> bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

Model vit_model() {
  const std::string file = test::frozen_bytes(test::small_vit());
  return Model(bytes_of_text(file));
}

const std::array<int64_t, 4> kOneImage{1, 3, test::kVitSide, test::kVitSide};

std::vector<float> grey_pixels(int64_t images) {
  return std::vector<float>(static_cast<size_t>(images * 3 * test::kVitSide * test::kVitSide), 0.5F);
}

int call_status(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.status();
  }
  return SPARSIGHT_INFER_OK;
}

}  // namespace

TEST(InferHpp, ClassifiesAndTellsTheExperts) {
  const Model model = vit_model();
  EXPECT_EQ(model.info().classes, test::kVitClasses);
  EXPECT_EQ(model.class_name(2), "class 2");
  Session session(model, 2);
  std::vector<uint8_t> image(50 * 40 * 3);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(7 * i);
  const Prediction prediction = session.classify_image(image, 50, 40, 3);
  const std::vector<int64_t> top = prediction.top(3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(prediction.probabilities[static_cast<size_t>(top[0])], *std::ranges::max_element(prediction.probabilities));
  EXPECT_GE(prediction.probabilities[static_cast<size_t>(top[1])],
            prediction.probabilities[static_cast<size_t>(top[2])]);
  EXPECT_EQ(prediction.top(99).size(), static_cast<size_t>(test::kVitClasses));

  const std::vector<Routing> routings = session.routings();
  ASSERT_EQ(routings.size(), 2U);
  EXPECT_EQ(routings[1].layer(), "blocks.5.mlp");
  EXPECT_EQ(routings[1].expert().size(), 2U * 65);
  EXPECT_TRUE(routings[1].kept(0));
}

TEST(InferHpp, SplitsABatch) {
  Session session(vit_model());
  std::vector<float> pixels = grey_pixels(2);
  pixels[0] = 1;
  const Prediction prediction = session.classify_pixels(pixels, {2, 3, test::kVitSide, test::kVitSide});
  EXPECT_EQ(prediction.images, 2);
  EXPECT_NE(prediction.image_probabilities(0)[0], prediction.image_probabilities(1)[0]);
  EXPECT_EQ(prediction.features.size(), 2U * test::kVitWidth);
}

TEST(InferHpp, PassesOnWhatTheCallersFunctionThrows) {
  Session session(vit_model());
  int calls = 0;
  session.set_on_routing([&](int64_t, const Routing&) -> bool {
    if (++calls == 2) throw std::out_of_range("mine");
    return true;
  });
  EXPECT_THROW(session.classify_pixels(grey_pixels(1), kOneImage), std::out_of_range);
  EXPECT_EQ(calls, 2);
  session.set_on_routing([&](int64_t, const Routing&) { return false; });
  EXPECT_EQ(call_status([&] { session.classify_pixels(grey_pixels(1), kOneImage); }), SPARSIGHT_INFER_STOPPED);
  session.set_on_routing({});
  EXPECT_EQ(session.classify_pixels(grey_pixels(1), kOneImage).images, 1);
}

TEST(InferHpp, RaisesErrors) {
  Session session(vit_model());
  EXPECT_EQ(call_status([] { Model("no such file"); }), SPARSIGHT_INFER_BAD_MODEL);
  EXPECT_EQ(call_status([&] {
              session.classify_pixels(grey_pixels(1), {2, 3, test::kVitSide, test::kVitSide});
            }),
            SPARSIGHT_INFER_BAD_ARGUMENT);
  EXPECT_EQ(call_status([&] {
              session.classify_pixels(grey_pixels(1), {1, 3, -1, INT64_MAX});
            }),
            SPARSIGHT_INFER_BAD_ARGUMENT);
  EXPECT_EQ(call_status([&] { session.classify_image(std::vector<uint8_t>(10), 4, 5, 3); }),
            SPARSIGHT_INFER_BAD_ARGUMENT);
  EXPECT_EQ(call_status([&] { session.classify_encoded(bytes_of_text("a text")); }), SPARSIGHT_INFER_BAD_IMAGE);
  EXPECT_EQ(call_status([&] { session.set_threads(-1); }), SPARSIGHT_INFER_BAD_ARGUMENT);
  EXPECT_EQ(call_status([&] { session.routings(); }), SPARSIGHT_INFER_BAD_ARGUMENT);
}

}  // namespace sparsight::infer
