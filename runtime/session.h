// One run at a time of a model: its memory, its threads, and the last decisions.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/model.h"
#include "sparsight/core/bytes.h"
#include "sparsight/engine/images/planes.h"
#include "sparsight/kernels/threads/own_threads.h"

namespace sparsight::runtime {

class Session {
 public:
  explicit Session(std::shared_ptr<const Model> model);

  void set_threads(int64_t count);
  void set_on_routing(sparsight_infer_on_routing call, void* user);

  // Each raises StatusError for wrong arguments, for a session that is in use and for images that are not taken, and
  // Error where experts are read on demand and the file has been damaged since.
  void classify_pixels(const float* pixels, const int64_t* shape, const sparsight_infer_result& result);
  void classify_image(const engine::InterleavedView& image, const sparsight_infer_result& result);
  void classify_encoded(ByteView bytes, const sparsight_infer_result& result);

  // A decision of the last run. Raises StatusError if it did not make one of this number.
  sparsight_infer_routing routing(int64_t decision) const;

  // Raises StatusError while a call uses the session.
  void check_unused() const;

 private:
  class Use;

  void run(const float* pixels, int64_t images, const sparsight_infer_result& result);
  void write_pixels(const engine::ByteImage& image);
  void write_result(const engine::Answer& answer, int64_t images, const sparsight_infer_result& result) const;
  sparsight_infer_routing view(int64_t decision, const engine::Routing& routing) const;

  std::shared_ptr<const Model> model_;
  engine::Session memory_;
  std::optional<cpu::OwnThreads> threads_;
  sparsight_infer_on_routing on_routing_ = nullptr;
  void* user_ = nullptr;
  std::vector<int64_t> image_numbers_, image_groups_;
  std::vector<float> pixels_;
  engine::ByteImage image_{0, 0, 0};
  std::span<const engine::Routing> routings_;  // of the last run
  std::atomic_flag in_use_;
};

}  // namespace sparsight::runtime

struct sparsight_infer_session {
  sparsight::runtime::Session session;
};
