// No argument makes the C interface crash: each mistake is a code and one line that says what it is.
#include <limits>

#include "tests/runtime/bmp_image.h"
#include "tests/runtime/handles.h"

namespace sparsight::runtime {
namespace {

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
  EXPECT_EQ(failure(sparsight_infer_open("model", SPARSIGHT_INFER_PACK_CACHE - 2, &model)),
            "1: kept_experts is -2; give a number of experts, or SPARSIGHT_INFER_ALL_EXPERTS");
  EXPECT_NE(failure(sparsight_infer_open("model", INT64_MIN, &model)).find("1: kept_experts is -4611686018427387904"),
            std::string::npos);
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
