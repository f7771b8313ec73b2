// What the tests of the C interface share: a model, handles that close themselves, and calls that must succeed or fail.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sparsight/infer.h"
#include "tests/support/frozen.h"
#include "tests/support/small_vit.h"

namespace sparsight::runtime {

constexpr int64_t kPixels = 3 * test::kVitSide * test::kVitSide, kClasses = test::kVitClasses;

inline const std::string& vit_file() {
  static const std::string file = test::frozen_bytes(test::small_vit());
  return file;
}

inline std::string write_vit(const std::string& name) {
  const std::string path = ::testing::TempDir() + "infer_test_" + name + ".sparsight";
  std::ofstream(path, std::ios::binary) << vit_file();
  return path;
}

inline std::vector<float> random_pixels(int64_t images, uint64_t seed) {
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

inline ModelHandle open_model(const std::string& file = vit_file()) {
  sparsight_infer_model* model = nullptr;
  EXPECT_EQ(sparsight_infer_open_memory(file.data(), file.size(), &model), SPARSIGHT_INFER_OK)
      << sparsight_infer_last_error();
  return ModelHandle(model);
}

inline SessionHandle open_session(const ModelHandle& model) {
  sparsight_infer_session* session = nullptr;
  EXPECT_EQ(sparsight_infer_open_session(model.get(), &session), SPARSIGHT_INFER_OK);
  return SessionHandle(session);
}

// Whether the library was built with decoders (SPARSIGHT_DECODE_IMAGES).
inline bool decodes(const ModelHandle& model) {
  sparsight_infer_info info{};
  EXPECT_EQ(sparsight_infer_get_info(model.get(), &info, sizeof info), SPARSIGHT_INFER_OK);
  return info.decodes_images == 1;
}

// Logits of images in one batch; the status must be OK.
inline std::vector<float> classify(const SessionHandle& session, const std::vector<float>& pixels) {
  const int64_t images = std::ssize(pixels) / kPixels;
  std::vector<float> logits(static_cast<size_t>(images * kClasses));
  const int64_t shape[4] = {images, 3, test::kVitSide, test::kVitSide};
  const sparsight_infer_result result{sizeof result, images, logits.data(), nullptr, nullptr};
  EXPECT_EQ(sparsight_infer_classify_pixels(session.get(), pixels.data(), shape, &result), SPARSIGHT_INFER_OK)
      << sparsight_infer_last_error();
  return logits;
}

// "<status>: <text>" of a call that must fail.
inline std::string failure(int status) {
  EXPECT_NE(status, SPARSIGHT_INFER_OK);
  return std::to_string(status) + ": " + sparsight_infer_last_error();
}

}  // namespace sparsight::runtime
