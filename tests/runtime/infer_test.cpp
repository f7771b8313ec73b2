// The C interface of libsparsight_infer (runtime/include/sparsight/infer.h): its answers are those of the program, and
// no argument makes it crash.
#include "sparsight/infer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "sparsight/kernels/threads/own_threads.h"
#include "tests/runtime/bmp_image.h"
#include "tests/runtime/c_interface.h"
#include "tests/support/count_allocations.h"
#include "tests/support/frozen.h"
#include "tests/support/small_vit.h"

namespace sparsight::runtime {
namespace {

constexpr int64_t kPixels = 3 * test::kVitSide * test::kVitSide, kClasses = test::kVitClasses;

const std::string& vit_file() {
  static const std::string file = test::frozen_bytes(test::small_vit());
  return file;
}

std::string write_vit(const std::string& name) {
  const std::string path = ::testing::TempDir() + "infer_test_" + name + ".sparsight";
  std::ofstream(path, std::ios::binary) << vit_file();
  return path;
}

std::vector<float> random_pixels(int64_t images, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> pixels(static_cast<size_t>(images * kPixels));
  for (float& pixel : pixels) pixel = uniform(engine);
  return pixels;
}

struct CloseModel {
  void operator()(sparsight_infer_model* model) const { sparsight_infer_close(model); }
};
struct CloseSession {
  void operator()(sparsight_infer_session* session) const { sparsight_infer_close_session(session); }
};
using ModelHandle = std::unique_ptr<sparsight_infer_model, CloseModel>;
using SessionHandle = std::unique_ptr<sparsight_infer_session, CloseSession>;

ModelHandle open_model(const std::string& file = vit_file()) {
  sparsight_infer_model* model = nullptr;
  EXPECT_EQ(sparsight_infer_open_memory(file.data(), file.size(), &model), SPARSIGHT_INFER_OK)
      << sparsight_infer_last_error();
  return ModelHandle(model);
}

SessionHandle open_session(const ModelHandle& model) {
  sparsight_infer_session* session = nullptr;
  EXPECT_EQ(sparsight_infer_open_session(model.get(), &session), SPARSIGHT_INFER_OK);
  return SessionHandle(session);
}

// Whether the library was built with decoders (SPARSIGHT_DECODE_IMAGES).
bool decodes(const ModelHandle& model) {
  sparsight_infer_info info{};
  EXPECT_EQ(sparsight_infer_get_info(model.get(), &info, sizeof info), SPARSIGHT_INFER_OK);
  return info.decodes_images == 1;
}

// Logits of images in one batch; the status must be OK.
std::vector<float> classify(const SessionHandle& session, const std::vector<float>& pixels) {
  const int64_t images = std::ssize(pixels) / kPixels;
  std::vector<float> logits(static_cast<size_t>(images * kClasses));
  const int64_t shape[4] = {images, 3, test::kVitSide, test::kVitSide};
  const sparsight_infer_result result{sizeof result, images, logits.data(), nullptr, nullptr};
  EXPECT_EQ(sparsight_infer_classify_pixels(session.get(), pixels.data(), shape, &result), SPARSIGHT_INFER_OK)
      << sparsight_infer_last_error();
  return logits;
}

// "<status>: <text>" of a call that must fail.
std::string failure(int status) {
  EXPECT_NE(status, SPARSIGHT_INFER_OK);
  return std::to_string(status) + ": " + sparsight_infer_last_error();
}

class InferMisuse : public ::testing::Test {
 protected:
  std::string pixels_with(std::vector<int64_t> shape, sparsight_infer_result result) {
    return failure(sparsight_infer_classify_pixels(session_.get(), pixels_.data(), shape.data(), &result));
  }
  std::string image_with(const uint8_t* bytes, int64_t height, int64_t width, int64_t channels, int64_t row_bytes) {
    return failure(sparsight_infer_classify_image(session_.get(), bytes, height, width, channels, row_bytes, &result_));
  }
  std::string encoded_with(const std::string& bytes, size_t count) {
    return failure(sparsight_infer_classify_encoded(session_.get(), bytes.data(), count, &result_));
  }

  ModelHandle model_ = open_model();
  SessionHandle session_ = open_session(model_);
  std::vector<float> pixels_ = random_pixels(1, 1), logits_ = std::vector<float>(kClasses);
  sparsight_infer_result result_{sizeof result_, 1, logits_.data(), nullptr, nullptr};
};

}  // namespace

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

TEST_F(InferMisuse, RefusesNullPointers) {
  sparsight_infer_model* model = model_.get();
  sparsight_infer_session* session = session_.get();
  sparsight_infer_info info{};
  sparsight_infer_routing routing{};
  const int64_t shape[4] = {1, 3, test::kVitSide, test::kVitSide};
  EXPECT_EQ(failure(sparsight_infer_open(nullptr, -1, &model)), "1: path is null");
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(failure(sparsight_infer_open("model", -1, nullptr)), "1: model is null");
  EXPECT_EQ(failure(sparsight_infer_open("model", -2, &model)),
            "1: kept_experts is -2; give a number of experts, or SPARSIGHT_INFER_ALL_EXPERTS");
  EXPECT_EQ(failure(sparsight_infer_open_memory(nullptr, 5, &model)), "1: bytes is null");
  EXPECT_EQ(failure(sparsight_infer_open_memory("text", 4, nullptr)), "1: model is null");
  EXPECT_EQ(failure(sparsight_infer_get_info(nullptr, &info, sizeof info)), "1: model is null");
  EXPECT_EQ(failure(sparsight_infer_get_info(model_.get(), nullptr, sizeof info)), "1: info is null");
  EXPECT_EQ(sparsight_infer_class_name(nullptr, 0), nullptr);
  EXPECT_EQ(failure(sparsight_infer_open_session(nullptr, &session)), "1: model is null");
  EXPECT_EQ(failure(sparsight_infer_open_session(model_.get(), nullptr)), "1: session is null");
  EXPECT_EQ(failure(sparsight_infer_set_threads(nullptr, 1)), "1: session is null");
  EXPECT_EQ(failure(sparsight_infer_set_on_routing(nullptr, nullptr, nullptr)), "1: session is null");
  session = session_.get();
  EXPECT_EQ(failure(sparsight_infer_classify_pixels(nullptr, pixels_.data(), shape, &result_)), "1: session is null");
  EXPECT_EQ(failure(sparsight_infer_classify_pixels(session, nullptr, shape, &result_)), "1: pixels is null");
  EXPECT_EQ(failure(sparsight_infer_classify_pixels(session, pixels_.data(), nullptr, &result_)), "1: shape is null");
  EXPECT_EQ(failure(sparsight_infer_classify_pixels(session, pixels_.data(), shape, nullptr)), "1: result is null");
  EXPECT_EQ(failure(sparsight_infer_classify_image(nullptr, nullptr, 1, 1, 1, 1, &result_)), "1: session is null");
  EXPECT_EQ(image_with(nullptr, 1, 1, 1, 1), "1: bytes is null");
  EXPECT_EQ(failure(sparsight_infer_classify_encoded(session, nullptr, 1, &result_)), "1: bytes is null");
  EXPECT_EQ(failure(sparsight_infer_get_routing(nullptr, 0, &routing, sizeof routing)), "1: session is null");
  EXPECT_EQ(failure(sparsight_infer_get_routing(session, 0, nullptr, sizeof routing)), "1: routing is null");
  EXPECT_EQ(sparsight_infer_close(nullptr), SPARSIGHT_INFER_OK);
  EXPECT_EQ(sparsight_infer_close_session(nullptr), SPARSIGHT_INFER_OK);
}

TEST_F(InferMisuse, RefusesShapesAndCounts) {
  EXPECT_EQ(pixels_with({1, 3, 32, 31}, result_),
            "1: pixels of the shape [1,3,32,31] were given; the model takes [B,3,32,32]");
  EXPECT_EQ(pixels_with({1, -3, 32, 32}, result_),
            "1: pixels of the shape [1,-3,32,32] were given; the model takes [B,3,32,32]");
  EXPECT_EQ(pixels_with({0, 3, 32, 32}, result_), "1: a batch of 0 images was given; classify 1 to 65536 at once");
  EXPECT_EQ(pixels_with({-1, 3, 32, 32}, result_), "1: a batch of -1 images was given; classify 1 to 65536 at once");
  EXPECT_EQ(pixels_with({INT64_MAX, 3, 32, 32}, result_),
            "1: a batch of 9223372036854775807 images was given; classify 1 to 65536 at once");
  EXPECT_EQ(pixels_with({2, 3, 32, 32}, result_),
            "1: the result has room for 1 images, 2 are classified; set its images");
  EXPECT_EQ(pixels_with({1, 3, 32, 32}, {0, 1, nullptr, nullptr, nullptr}),
            "1: result->struct_bytes is 0; give the size of the structure, as sizeof says it");
  EXPECT_EQ(failure(sparsight_infer_set_threads(session_.get(), 0)), "1: 0 threads were given; allowed are 1 to 1024");
  EXPECT_EQ(failure(sparsight_infer_set_threads(session_.get(), INT64_MIN)),
            "1: -9223372036854775808 threads were given; allowed are 1 to 1024");
  sparsight_infer_routing routing{};
  for (const int64_t decision : {int64_t{-1}, int64_t{2}, INT64_MAX})
    failure(sparsight_infer_get_routing(session_.get(), decision, &routing, sizeof routing));
  failure(sparsight_infer_get_routing(session_.get(), 0, &routing, SIZE_MAX));
}

TEST_F(InferMisuse, RefusesPixelsThatAreNotFinite) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    pixels_[kPixels - 1] = wrong;
    EXPECT_EQ(pixels_with({1, 3, 32, 32}, result_),
              "1: a pixel is not finite (NaN or infinite); give pixels from 0 to 1");
  }
  pixels_.assign(kPixels, std::numeric_limits<float>::max());
  EXPECT_EQ(pixels_with({1, 3, 32, 32}, result_).substr(0, 37), "7: the model's output is not finite; ");
}

TEST_F(InferMisuse, RefusesWhatIsNotAnImage) {
  const std::vector<uint8_t> bytes(4 * 5 * 3);
  EXPECT_EQ(image_with(bytes.data(), 4, 5, 4, 20),
            "1: an image of 4 channels is not classified; give 1 (grey) or 3 (RGB)");
  EXPECT_EQ(image_with(bytes.data(), 4, 5, 3, 14),
            "1: rows of 5 pixels of 3 bytes are not 14 bytes apart; give row_bytes of at least 15");
  for (const int64_t side : {int64_t{0}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    image_with(bytes.data(), side, 5, 3, 15);
    image_with(bytes.data(), 4, side, 3, INT64_MAX);
  }
  const std::string file = test::bmp_image(20, 30);
  EXPECT_EQ(encoded_with(file, 0),
            decodes(model_) ? "3: the image is empty (0 bytes); get the file again or remove it"
                            : "3: this library was built without decoders of image files; decode the image and "
                              "classify its bytes");
  EXPECT_EQ(encoded_with("a text", 6).substr(0, 2), "3:");
  for (size_t size = 1; size < file.size(); size += 53) EXPECT_EQ(encoded_with(file, size).substr(0, 2), "3:") << size;
  EXPECT_EQ(encoded_with(file, SIZE_MAX).substr(0, 2), "1:");
}

TEST_F(InferMisuse, RefusesWhatIsNotAModel) {
  sparsight_infer_model* model = nullptr;
  EXPECT_EQ(failure(sparsight_infer_open("no/such\nfile", -1, &model)).substr(0, 2), "2:");
  EXPECT_EQ(std::string(sparsight_infer_last_error()).find('\n'), std::string::npos);
  EXPECT_EQ(failure(sparsight_infer_open("/", -1, &model)).substr(0, 2), "2:");
  std::string damaged = vit_file();
  damaged[damaged.size() / 2] ^= 4;
  EXPECT_EQ(failure(sparsight_infer_open_memory(damaged.data(), damaged.size(), &model)).substr(0, 2), "2:");
  EXPECT_EQ(failure(sparsight_infer_open_memory(vit_file().data(), 100, &model)).substr(0, 2), "2:");
  EXPECT_EQ(failure(sparsight_infer_open_memory(vit_file().data(), SIZE_MAX, &model)).substr(0, 2), "1:");
  EXPECT_EQ(model, nullptr);
  std::string long_path(5000, 'x');
  EXPECT_EQ(failure(sparsight_infer_open(long_path.c_str(), -1, &model)).substr(0, 2), "2:");
}

// A model that was made without saying how images become pixels.
TEST_F(InferMisuse, RefusesImagesWhereTheModelTakesPixels) {
  engine::Program program = test::small_vit();
  program.info.preprocessing.reset();
  program.info.classes.clear();
  const ModelHandle model = open_model(test::frozen_bytes(program));
  EXPECT_STREQ(sparsight_infer_class_name(model.get(), 3), "3");
  session_ = open_session(model);
  const std::vector<uint8_t> bytes(4 * 5 * 3);
  EXPECT_EQ(image_with(bytes.data(), 4, 5, 3, 15),
            "3: this model does not say how an image becomes its pixels; transform the image and classify the pixels");
  classify(session_, pixels_);
}

TEST_F(InferMisuse, RefusesASessionToItsOwnCall) {
  static std::string seen;
  seen.clear();
  struct User {
    sparsight_infer_session* session;
    const sparsight_infer_result* result;
  } user{session_.get(), &result_};
  const auto call = [](void* data, int64_t, const sparsight_infer_routing*) {
    const auto& with = *static_cast<const User*>(data);
    seen += failure(sparsight_infer_classify_encoded(with.session, "BM", 2, with.result)) + "\n";
    seen += failure(sparsight_infer_set_threads(with.session, 2)) + "\n";
    seen += failure(sparsight_infer_close_session(with.session)) + "\n";
    return 1;
  };
  sparsight_infer_set_on_routing(session_.get(), call, &user);
  EXPECT_EQ(pixels_with({1, 3, 32, 32}, result_), "6: the caller's function stopped the run");
  EXPECT_EQ(seen,
            "5: the session is in use by another call; give each thread a session of its own\n"
            "5: the session is in use by another call; give each thread a session of its own\n"
            "5: the session is in use by another call; close it when that has ended\n");
}

}  // namespace sparsight::runtime
