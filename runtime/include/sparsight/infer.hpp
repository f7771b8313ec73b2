// The C++ form of sparsight/infer.h: objects that close themselves, and exceptions. C++20, header only.
//
//   const sparsight::infer::Model model("model.sparsight");
//   sparsight::infer::Session session(model);
//   const sparsight::infer::Prediction prediction = session.classify_encoded(bytes);
//   const std::string name = model.class_name(prediction.top(1)[0]);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/infer.h"

namespace sparsight::infer {

class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& message)
      : std::runtime_error(message), status_(static_cast<sparsight_infer_status>(status)) {}
  sparsight_infer_status status() const { return status_; }

 private:
  sparsight_infer_status status_;
};

inline void check(int status) {
  if (status != SPARSIGHT_INFER_OK) throw Error(status, sparsight_infer_last_error());
}

using Info = sparsight_infer_info;

// A decision, in memory of the session: valid until its next run.
struct Routing {
  explicit Routing(const sparsight_infer_routing& routing) : raw(routing) {}
  std::string layer() const { return raw.layer; }
  std::span<const int64_t> token() const { return {raw.token, size()}; }
  std::span<const int64_t> expert() const { return {raw.expert, size()}; }
  std::span<const float> gate() const { return {raw.gate, size()}; }
  bool kept(size_t assignment) const { return raw.kept[assignment] != 0; }
  size_t size() const { return static_cast<size_t>(raw.assignments); }  // A

  sparsight_infer_routing raw;
};

// The answer for a batch.
struct Prediction {
  int64_t images = 0, classes = 0;
  std::vector<float> logits, probabilities, features;  // [B,K], [B,K], [B,D]

  std::span<const float> image_probabilities(int64_t image) const {
    return std::span(probabilities).subspan(static_cast<size_t>(image * classes), static_cast<size_t>(classes));
  }
  // The numbers of the `count` most probable classes of an image, the most probable first.
  std::vector<int64_t> top(int64_t count, int64_t image = 0) const {
    const std::span<const float> all = image_probabilities(image);
    std::vector<int64_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + std::clamp<int64_t>(count, 0, classes);
    std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
      const float x = all[static_cast<size_t>(a)], y = all[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    });
    order.erase(end, order.end());
    return order;
  }
};

class Model {
 public:
  // kept_experts: those that stay in memory where experts are read when they are chosen (sparsight/infer.h).
  // pack_cache: keep packed weights beside the model.
  explicit Model(const std::string& path, int64_t kept_experts = SPARSIGHT_INFER_ALL_EXPERTS, bool pack_cache = false) {
    constexpr int64_t kMost = int64_t{1} << 32;  // more than there are experts
    sparsight_infer_model* model = nullptr;
    check(sparsight_infer_open(
        path.c_str(), pack_cache ? std::min(kept_experts, kMost) + SPARSIGHT_INFER_PACK_CACHE : kept_experts, &model));
    model_.reset(model);
  }
  explicit Model(std::span<const std::byte> bytes) {
    sparsight_infer_model* model = nullptr;
    check(sparsight_infer_open_memory(bytes.data(), bytes.size(), &model));
    model_.reset(model);
  }

  Info info() const {
    Info info{};
    check(sparsight_infer_get_info(model_.get(), &info, sizeof info));
    return info;
  }
  std::string class_name(int64_t number) const {
    const char* const name = sparsight_infer_class_name(model_.get(), number);
    if (!name) throw Error(SPARSIGHT_INFER_BAD_ARGUMENT, sparsight_infer_last_error());
    return name;
  }
  const sparsight_infer_model* get() const { return model_.get(); }

 private:
  struct Close {
    void operator()(sparsight_infer_model* model) const { sparsight_infer_close(model); }
  };
  std::unique_ptr<sparsight_infer_model, Close> model_;
};

// For one thread at a time.
class Session {
 public:
  // false: stops the run.
  using OnRouting = std::function<bool(int64_t decision, const Routing& routing)>;

  explicit Session(const Model& model, int64_t threads = 1) : info_(model.info()) {
    sparsight_infer_session* session = nullptr;
    check(sparsight_infer_open_session(model.get(), &session));
    session_.reset(session);
    set_threads(threads);
  }

  void set_threads(int64_t threads) { check(sparsight_infer_set_threads(session_.get(), threads)); }
  // Called after each decision, before the experts compute. What it throws, the call that classifies throws. Empty:
  // none.
  void set_on_routing(OnRouting call) {
    auto hook = call ? std::make_unique<Hook>(Hook{std::move(call), nullptr}) : nullptr;
    check(sparsight_infer_set_on_routing(session_.get(), hook ? &Hook::run : nullptr, hook.get()));
    hook_ = std::move(hook);
  }

  // pixels: [B,C,H,W] from 0 to 1.
  Prediction classify_pixels(std::span<const float> pixels, const std::array<int64_t, 4>& shape) {
    const bool valid = std::ranges::all_of(shape, [](int64_t side) { return side > 0; }) && shape[0] <= most_images();
    if (valid && shape[1] == info_.channels && shape[2] == info_.height && shape[3] == info_.width &&
        pixels.size() != static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]))
      throw Error(SPARSIGHT_INFER_BAD_ARGUMENT, std::to_string(pixels.size()) + " pixels were given; their shape has " +
                                                    std::to_string(shape[0] * shape[1] * shape[2] * shape[3]));
    return classify(valid ? shape[0] : 1, [&](const sparsight_infer_result& result) {
      return sparsight_infer_classify_pixels(session_.get(), pixels.data(), shape.data(), &result);
    });
  }
  // Rows of interleaved bytes, grey (channels = 1) or RGB (3).
  Prediction classify_image(std::span<const uint8_t> bytes, int64_t height, int64_t width, int64_t channels) {
    const int64_t most = int64_t{1} << 30;
    if (height > 0 && width > 0 && channels > 0 && height < most && width < most && channels <= 3 &&
        bytes.size() / static_cast<size_t>(width * channels) < static_cast<size_t>(height))
      throw Error(SPARSIGHT_INFER_BAD_ARGUMENT, std::to_string(bytes.size()) + " bytes are too few for the image");
    return classify(1, [&](const sparsight_infer_result& result) {
      return sparsight_infer_classify_image(session_.get(), bytes.data(), height, width, channels, width * channels,
                                            &result);
    });
  }
  // The bytes of an image file.
  Prediction classify_encoded(std::span<const std::byte> bytes) {
    return classify(1, [&](const sparsight_infer_result& result) {
      return sparsight_infer_classify_encoded(session_.get(), bytes.data(), bytes.size(), &result);
    });
  }

  // The decisions of the last run, in the order in which they were made.
  std::vector<Routing> routings() const {
    std::vector<Routing> all;
    for (int64_t decision = 0; decision < info_.decisions; ++decision) {
      sparsight_infer_routing routing{};
      check(sparsight_infer_get_routing(session_.get(), decision, &routing, sizeof routing));
      all.emplace_back(routing);
    }
    return all;
  }
  sparsight_infer_session* get() const { return session_.get(); }

 private:
  struct Hook {
    OnRouting call;
    std::exception_ptr error;
    static int run(void* user, int64_t decision, const sparsight_infer_routing* routing) noexcept {
      auto& hook = *static_cast<Hook*>(user);
      try {
        return hook.call(decision, Routing(*routing)) ? 0 : 1;
      } catch (...) {
        hook.error = std::current_exception();
        return 1;
      }
    }
  };
  struct Close {
    void operator()(sparsight_infer_session* session) const { sparsight_infer_close_session(session); }
  };

  static constexpr int64_t most_images() { return int64_t{1} << 20; }  // the library takes fewer, and says how many

  template <class Call>
  Prediction classify(int64_t images, const Call& call) {
    const auto numbers = [&](int64_t of_image) { return std::vector<float>(static_cast<size_t>(images * of_image)); };
    Prediction prediction{images, info_.classes, numbers(info_.classes), numbers(info_.classes),
                          numbers(info_.features)};
    const int status = call({sizeof(sparsight_infer_result), images, prediction.logits.data(),
                             prediction.probabilities.data(), prediction.features.data()});
    if (hook_ && hook_->error) std::rethrow_exception(std::exchange(hook_->error, nullptr));
    check(status);
    return prediction;
  }

  Info info_;
  std::unique_ptr<Hook> hook_;  // outlives the session, which calls it
  std::unique_ptr<sparsight_infer_session, Close> session_;
};

}  // namespace sparsight::infer
