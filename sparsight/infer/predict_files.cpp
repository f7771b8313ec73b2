#include "sparsight/infer/predict_files.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/progress.h"
#include "sparsight/data/one_compute_thread.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/readers/image.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {
namespace {

constexpr int64_t kMaxBatchPixels = 1 << 21;  // 41 images of 224 x 224
constexpr std::chrono::seconds kQuietTime{2};
constexpr int64_t kFewMultiplyAdds = 50'000'000;  // a millisecond of one thread

struct NamedImage {
  std::string name;
  at::Tensor input;   // [C,H,W]; undefined where reading failed
  std::string error;  // then why
};

using ImageBatch = std::vector<NamedImage>;

NamedImage read_input(const LoadedModel& loaded, const std::string& name) {
  const ImageDecoding decoding{.channels = loaded.data.channels == 1 ? 1 : 3};
  NamedImage image{printable(name), {}, ""};
  try {
    const at::Tensor pixels = read_image(name, decoding);
    try {
      image.input = model_image(loaded, pixels);
    } catch (const Error& error) {
      fail(image.name, ": ", error.what());
    }
  } catch (const Error& error) {
    image.error = error.what();
  }
  return image;
}

// The images that are named by now, at least one; none at the end.
ImageBatch read_batch(const LoadedModel& loaded, ImageNames& names, int64_t size) {
  const at::NoGradGuard no_grad;
  const OneComputeThread one_thread;
  ImageBatch batch;
  while (static_cast<int64_t>(batch.size()) < size && !interrupted()) {
    const std::optional<std::string> name = names.next(/*wait=*/batch.empty());
    if (!name) break;
    batch.push_back(read_input(loaded, *name));
  }
  return batch;
}

// How many images may share a batch: predictions must not depend on the others in it.
int64_t batch_size(const LoadedModel& loaded, int64_t wanted) {
  const int64_t fitting = kMaxBatchPixels / std::max<int64_t>(1, loaded.shape.height * loaded.shape.width);
  return loaded.mixes_images ? 1 : std::clamp<int64_t>(fitting, 1, wanted);
}

class FilePredictor {
 public:
  FilePredictor(const LoadedModel& loaded, const RoutingReplay& replay, int64_t top,
                const std::function<void(const Prediction&)>& answer)
      : loaded_(loaded), replay_(replay), top_(top), answer_(answer) {}

  PredictFilesResult result;

  void run(const ImageBatch& batch) {
    std::vector<Prediction> predictions = batch_predictions(batch);
    size_t next = 0;
    for (const NamedImage& image : batch) {
      if (interrupted()) return;
      ++result.images;
      if (image.input.defined() && next < predictions.size())
        answer_(predictions[next++]);
      else
        run_alone(image);
    }
  }

 private:
  // Predictions for the images that could be read; none if one of them has no prediction.
  std::vector<Prediction> batch_predictions(const ImageBatch& batch) {
    std::vector<at::Tensor> inputs;
    std::vector<std::string> names;
    std::vector<int64_t> positions;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!batch[i].input.defined()) continue;
      inputs.push_back(batch[i].input);
      names.push_back(batch[i].name);
      positions.push_back(result.images + static_cast<int64_t>(i));
    }
    if (inputs.size() < 2) return {};
    try {
      return predict_batch(loaded_, at::stack(inputs), names, top_, replay_.of(at::tensor(positions, at::kLong)));
    } catch (const Error&) {  // run_alone() says which image it is
      return {};
    }
  }

  // An image that has no prediction yet.
  void run_alone(const NamedImage& image) {
    try {
      if (!image.input.defined()) fail(image.error);
      const at::Tensor position = at::full({1}, result.images - 1, at::kLong);
      answer_(predict_batch(loaded_, image.input.unsqueeze(0), {image.name}, top_, replay_.of(position)).front());
    } catch (const Error& error) {
      log_line("error", error.what());
      ++result.failed;
    }
  }

  const LoadedModel& loaded_;
  const RoutingReplay& replay_;
  int64_t top_;
  const std::function<void(const Prediction&)>& answer_;
};

}  // namespace

PredictFilesResult predict_files(const LoadedModel& loaded, ImageNames& names, const RoutingReplay& replay,
                                 const PredictFilesOptions& options,
                                 const std::function<void(const Prediction&)>& answer) {
  const int64_t size = batch_size(loaded, options.max_batch);
  const auto read_ahead = [&] {  // on a thread of its own, if there is anything left
    return std::async(names.finished() ? std::launch::deferred : std::launch::async,
                      [&] { return read_batch(loaded, names, size); });
  };
  const OneComputeThread one_thread(names.total() == 1 && loaded.multiply_adds < kFewMultiplyAdds);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Progress> progress;
  FilePredictor predictor(loaded, replay, options.top, answer);
  for (ImageBatch batch = read_batch(loaded, names, size); !batch.empty() && !interrupted();) {
    std::future<ImageBatch> next = read_ahead();
    predictor.run(batch);
    const int64_t done = predictor.result.images;
    if (!progress && std::chrono::steady_clock::now() - begin > kQuietTime)
      progress.emplace("predict", names.total(), "images").set_begin(begin);
    if (progress) progress->update(done);
    batch = next.get();
  }
  if (interrupted())
    fail("interrupted after ", predictor.result.images, names.total() > 0 ? cat(" of ", names.total()) : "", " images");
  if (progress) progress->finish();
  return predictor.result;
}

}  // namespace sparsight
