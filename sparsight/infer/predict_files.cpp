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
#include "sparsight/dist/rank_zero.h"
#include "sparsight/infer/prediction_message.h"
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

struct ImageBatch {
  int64_t first = 0;  // position of its first image among all
  std::vector<NamedImage> images = {};
};

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

// Reads a rank's batches: of R ranks rank r has the batches r, R + r, 2R + r, ...
class BatchReader {
 public:
  BatchReader(const LoadedModel& loaded, ImageNames& names, int64_t size, const dist::Group& group)
      : loaded_(loaded), names_(names), size_(size), others_((group.size() - 1) * size) {
    skip(group.rank() * size);
  }

  // The images that are named by now, at least one; none at the end.
  ImageBatch next() {
    const at::NoGradGuard no_grad;
    const OneComputeThread one_thread;
    ImageBatch batch{position_};
    while (std::ssize(batch.images) < size_ && !interrupted()) {
      const std::optional<std::string> name = names_.next(/*wait=*/batch.images.empty());
      if (!name) break;
      batch.images.push_back(read_input(loaded_, *name));
    }
    position_ += std::ssize(batch.images);
    skip(others_);
    return batch;
  }

  // On a thread of its own, if there is anything left.
  std::future<ImageBatch> read_ahead() {
    return std::async(names_.finished() ? std::launch::deferred : std::launch::async, [this] { return next(); });
  }

 private:
  void skip(int64_t count) {
    for (; count > 0 && !names_.finished(); --count, ++position_) names_.next(/*wait=*/true);
  }

  const LoadedModel& loaded_;
  ImageNames& names_;
  int64_t size_, others_;  // images of a batch, and of the other ranks' ones between two batches
  int64_t position_ = 0;   // of the next image
};

// How many images may share a batch: predictions must not depend on the others in it.
int64_t batch_size(const LoadedModel& loaded, int64_t wanted) {
  const int64_t fitting = kMaxBatchPixels / std::max<int64_t>(1, loaded.shape.height * loaded.shape.width);
  return loaded.mixes_images ? 1 : std::clamp<int64_t>(fitting, 1, wanted);
}

class FilePredictor {
 public:
  FilePredictor(const LoadedModel& loaded, const RoutingReplay& replay, int64_t top,
                const std::function<void(const Prediction&)>& answer, dist::Group& group)
      : loaded_(loaded), replay_(replay), top_(top), answer_(answer), group_(group) {}

  PredictFilesResult result;

  // The batches of all ranks, of which this is one.
  void run(const ImageBatch& batch) {
    if (group_.size() == 1) {
      for_each_outcome(batch, [this](FileOutcome&& outcome) { say(outcome); });
      return;
    }
    std::vector<FileOutcome> own;
    for_each_outcome(batch, [&](FileOutcome&& outcome) { own.push_back(std::move(outcome)); });
    for (const std::string& bytes : dist::gather_bytes(group_, own.empty() ? "" : to_bytes(own))) {
      if (bytes.empty()) continue;
      for (const FileOutcome& outcome : file_outcomes_from(bytes)) say(outcome);
    }
  }

 private:
  // Calls `take` with what became of each image, as soon as it is known.
  void for_each_outcome(const ImageBatch& batch, FunctionRef<void(FileOutcome&&)> take) {
    std::vector<Prediction> predictions = batch_predictions(batch);
    size_t next = 0;
    for (size_t i = 0; i < batch.images.size() && !interrupted(); ++i) {
      const NamedImage& image = batch.images[i];
      if (image.input.defined() && next < predictions.size())
        take({std::move(predictions[next++])});
      else
        take(run_alone(image, batch.first + static_cast<int64_t>(i)));
    }
  }

  void say(const FileOutcome& outcome) {
    ++result.images;
    if (outcome.prediction) return answer_(*outcome.prediction);
    log_line("error", outcome.error);
    ++result.failed;
  }

  // Predictions for the images that could be read; none if one of them has no prediction.
  std::vector<Prediction> batch_predictions(const ImageBatch& batch) {
    std::vector<at::Tensor> inputs;
    std::vector<std::string> names;
    std::vector<int64_t> positions;
    for (size_t i = 0; i < batch.images.size(); ++i) {
      const NamedImage& image = batch.images[i];
      if (!image.input.defined()) continue;
      inputs.push_back(image.input);
      names.push_back(image.name);
      positions.push_back(batch.first + static_cast<int64_t>(i));
    }
    if (inputs.size() < 2) return {};
    try {
      return predict_batch(loaded_, at::stack(inputs), names, top_, replay_.of(at::tensor(positions, at::kLong)));
    } catch (const Error&) {  // run_alone() says which image it is
      return {};
    }
  }

  // An image that has no prediction yet.
  FileOutcome run_alone(const NamedImage& image, int64_t position) {
    try {
      if (!image.input.defined()) fail(image.error);
      const Routings replay = replay_.of(at::full({1}, position, at::kLong));
      return {predict_batch(loaded_, image.input.unsqueeze(0), {image.name}, top_, replay).front()};
    } catch (const Error& error) {
      return {std::nullopt, error.what()};
    }
  }

  const LoadedModel& loaded_;
  const RoutingReplay& replay_;
  int64_t top_;
  const std::function<void(const Prediction&)>& answer_;
  dist::Group& group_;
};

}  // namespace

PredictFilesResult predict_files(const LoadedModel& loaded, ImageNames& names, const RoutingReplay& replay,
                                 const PredictFilesOptions& options,
                                 const std::function<void(const Prediction&)>& answer, dist::Group& group) {
  if (group.size() > 1 && names.total() == 0)
    fail_usage("several processes share files and folders, not names from standard input (-); name the images");
  BatchReader batches(loaded, names, batch_size(loaded, options.max_batch), group);
  const OneComputeThread one_thread(names.total() == 1 && loaded.multiply_adds < kFewMultiplyAdds);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<Progress> progress;
  FilePredictor predictor(loaded, replay, options.top, answer, group);
  ImageBatch batch = batches.next();
  bool stopped = false;
  while (group.any(!batch.images.empty()) && !(stopped = group.any(interrupted()))) {
    std::future<ImageBatch> next = batches.read_ahead();
    predictor.run(batch);
    const int64_t done = predictor.result.images;
    if (!progress && std::chrono::steady_clock::now() - begin > kQuietTime)
      progress.emplace("predict", names.total(), "images").set_begin(begin);
    if (progress) progress->update(done);
    batch = next.get();
  }
  if (stopped || interrupted())
    fail("interrupted after ", predictor.result.images, names.total() > 0 ? cat(" of ", names.total()) : "", " images");
  if (progress) progress->finish();
  return predictor.result;
}

PredictFilesResult predict_files(const LoadedModel& loaded, ImageNames& names, const RoutingReplay& replay,
                                 const PredictFilesOptions& options,
                                 const std::function<void(const Prediction&)>& answer) {
  dist::Group alone;
  return predict_files(loaded, names, replay, options, answer, alone);
}

}  // namespace sparsight
