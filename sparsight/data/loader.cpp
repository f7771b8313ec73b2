#include "sparsight/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/data/one_compute_thread.h"

namespace sparsight {

// Threads that prepare the batches first, first + stride, ... of an epoch and deliver them in order, at most `prefetch`
// ahead.
class Loader::Workers {
 public:
  Workers(const Loader& loader, int64_t first) : loader_(loader), taken_(first), handed_out_(first) {
    for (int64_t i = 0; i < loader.options_.workers; ++i) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error& error) {  // fewer threads produce the same batches
        if (threads_.empty()) fail("cannot start a loader thread (", error.what(), "); set loader.workers = 0");
        break;
      }
    }
  }

  ~Workers() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Prepared next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.count(handed_out_) > 0; });
    Result result = std::move(ready_.at(handed_out_));
    ready_.erase(handed_out_);
    handed_out_ += loader_.stride_;
    lock.unlock();
    changed_.notify_all();
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.prepared);
  }

 private:
  struct Result {
    Prepared prepared;
    std::exception_ptr error;
  };

  void work() {
    at::NoGradGuard no_grad;
    const OneComputeThread one_thread;
    const int64_t ahead = loader_.options_.prefetch * loader_.stride_;
    while (true) {
      int64_t batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || taken_ - handed_out_ < ahead; });
        if (stop_ || taken_ >= loader_.batches_per_epoch()) return;
        batch = std::exchange(taken_, taken_ + loader_.stride_);
      }
      Result result;
      try {
        result.prepared = loader_.make_batch(batch);
      } catch (...) {
        result.error = std::current_exception();
      }
      {
        std::lock_guard lock(mutex_);
        ready_.emplace(batch, std::move(result));
      }
      changed_.notify_all();
    }
  }

  const Loader& loader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Result> ready_;
  int64_t taken_, handed_out_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

void LoaderOptions::declare(OptionSet& set) {
  set.integer("batch", &batch, {1, 1000000}, "training batch size");
  set.integer("eval_batch", &eval_batch, {1, 1000000}, "evaluation batch size");
  set.integer("workers", &workers, {0, 256}, "threads that load batches; 0: the main thread");
  set.integer("prefetch", &prefetch, {1, 1024}, "batches loaded in advance");
  set.choice("sampling", &sampling, sampling_names(), "order and frequency of the training images");
  set.floats("class_weights", &class_weights, {0, 1e9},
             "relative frequency of each class with sampling = \"weighted\"");
  set.integer("shuffle_buffer", &shuffle_buffer, {1, int64_t{1} << 40},
              "with sampling = \"shards\": an image is moved by fewer places than this");
  set.integer(
      "views", &views, {1, 1000},
      "repeated augmentation: an epoch has this many differently augmented views of each image that it samples, "
      "and samples as many fewer images (3 in DeiT)");
  set.choice("on_bad_image", &on_bad_image, {"error", "skip"},
             "stop the run at an image that cannot be read, or skip the image with a warning");
  set.flag("drop_last", &drop_last, "drop the last training batch of an epoch if it is incomplete");
  set.flag("per_domain", &per_domain, "every step trains on one batch per domain, of `batch` images each");
  set.integers("domain_batch", &domain_batch, {1, 1000000},
               "batch size per domain with per_domain, in the order of domains; empty: `batch` for each");
}

Loader::Loader(DataSetPtr data, TransformPipeline transforms, BatchTransform batch_transform,
               const LoaderOptions& options, uint64_t seed)
    : data_(std::move(data)),
      transforms_(std::move(transforms)),
      batch_transform_(batch_transform),
      options_(options),
      seed_(seed) {
  if (data_->size() == 0) fail("the dataset ", data_->info().name, " has no images");
  if (batches_per_epoch() == 0)
    fail_usage("loader.batch = ", options_.batch, " is more than the ", data_->size(),
               " training images; lower it or set loader.drop_last = false");
  if (options_.views > 1 && options_.sampling == "sequential")
    fail_usage("loader.views = ", options_.views,
               " with loader.sampling = \"sequential\" would never train on images "
               "beyond the first ",
               (data_->size() + options_.views - 1) / options_.views, "; use another sampling, or views = 1");
}

Loader::~Loader() = default;

namespace {

// The fewest samples of an epoch, where sampling can repeat images.
int64_t fewest_samples(const LoaderOptions& options) { return options.drop_last ? options.batch : 0; }

}  // namespace

int64_t LoaderOptions::batches_per_epoch(const DataSet& data) const {
  const int64_t samples = epoch_samples(sampling, data, fewest_samples(*this));
  return drop_last ? samples / batch : (samples + batch - 1) / batch;
}

void Loader::set_domain_transforms(const std::vector<bool>& domains, TransformPipeline transforms) {
  SPARSIGHT_CHECK(domains.size() == data_->info().domains.size());
  workers_.reset();
  has_other_transforms_ = domains;
  other_transforms_ = std::move(transforms);
}

void Loader::start(int64_t epoch, int64_t first_batch, int64_t stride) {
  workers_.reset();
  epoch_ = epoch;
  next_batch_ = first_batch, stride_ = stride;
  order_ = repeated(epoch_order(options_.sampling, *data_, options_.class_weights, seed_, epoch,
                                fewest_samples(options_), options_.shuffle_buffer),
                    options_.views);
  if (options_.workers > 0) workers_ = std::make_unique<Workers>(*this, first_batch);
}

std::optional<Batch> Loader::next() {
  if (next_batch_ >= batches_per_epoch()) return std::nullopt;
  const int64_t batch = std::exchange(next_batch_, next_batch_ + stride_);
  Prepared prepared;
  if (workers_) {
    prepared = workers_->next();
  } else {
    const OneComputeThread one_thread;
    prepared = make_batch(batch);
  }
  for (const Skipped& image : prepared.skipped)
    if (unreadable_.insert(image.index).second) log_warning("skipped an image: ", image.reason);
  return std::move(prepared.batch);
}

Loader::Prepared Loader::make_batch(int64_t number) const {
  const int64_t first = number * options_.batch;
  const int64_t count = std::min(options_.batch, static_cast<int64_t>(order_.size()) - first);
  Prepared prepared;
  Batch& batch = prepared.batch;
  batch.labels = at::empty({count}, at::kLong);
  batch.domains = at::empty({count}, at::kLong);
  batch.indices = at::empty({count}, at::kLong);
  const int64_t classes = std::ssize(data_->info().classes);
  if (data_->info().multi_label) batch.label_sets = at::zeros({count, classes}, at::kBool);
  int64_t row = 0;
  for (int64_t position = first; position < first + count; ++position) {
    const std::optional<Sample> sample = read(order_[position], prepared.skipped);
    if (!sample) continue;
    const at::Tensor image = transformed(*sample, position);
    if (row == 0) batch.images = at::empty({count, image.size(0), image.size(1), image.size(2)}, at::kFloat);
    if (image.sizes() != batch.images.sizes().slice(1))
      fail("the images of a batch must have one shape, but ", sample->id, " has ", image.sizes(), " and another has ",
           batch.images.sizes().slice(1), "; add {op = \"resize\", size = [height, width]} to the transforms");
    std::memcpy(batch.images.data_ptr<float>() + row * image.numel(), image.const_data_ptr<float>(),
                sizeof(float) * static_cast<size_t>(image.numel()));
    batch.labels.data_ptr<int64_t>()[row] = sample->label;
    batch.domains.data_ptr<int64_t>()[row] = sample->domain;
    batch.indices.data_ptr<int64_t>()[row] = order_[position];
    if (batch.label_sets.defined())
      for (const int64_t label : sample->labels) batch.label_sets.data_ptr<bool>()[row * classes + label] = true;
    batch.ids.push_back(sample->id);
    ++row;
  }
  if (row == 0)
    fail("none of the ", count, " images of a batch can be read, the first because ", prepared.skipped[0].reason);
  if (row < count)
    for (at::Tensor* part : {&batch.images, &batch.labels, &batch.domains, &batch.indices})
      *part = part->narrow(0, 0, row);
  if (batch.label_sets.defined()) batch.label_sets = batch.label_sets.narrow(0, 0, row);
  RandomStream random(seed_, "batch transform",
                      hash_combine(static_cast<uint64_t>(epoch_), static_cast<uint64_t>(number)));
  batch_transform_(batch, random);
  return prepared;
}

std::optional<Sample> Loader::read(int64_t index, std::vector<Skipped>& skipped) const {
  try {
    return data_->get(index);
  } catch (const Error& error) {
    if (options_.on_bad_image != "skip") fail(error.what(), kBadImageAdvice);
    skipped.push_back({index, error.what()});
    return std::nullopt;
  }
}

at::Tensor Loader::transformed(const Sample& sample, int64_t position) const {
  // The position makes repeated samples of one image in an epoch differ.
  const auto image = static_cast<uint64_t>(order_[static_cast<size_t>(position)]);
  ViewRandom random({seed_, "transform", hash_combine(static_cast<uint64_t>(epoch_), static_cast<uint64_t>(position))},
                    {seed_, "transform.image", image}, epoch_);
  try {
    const bool other = !has_other_transforms_.empty() && has_other_transforms_.at(static_cast<size_t>(sample.domain));
    return (other ? other_transforms_ : transforms_)(sample.image, random);
  } catch (const UsageError& error) {
    throw UsageError(cat(error.what(), " (image ", sample.id, ")"));
  } catch (const Error& error) {
    throw Error(cat(error.what(), " (image ", sample.id, ")"));
  }
}

std::unique_ptr<Loader> evaluation_loader(DataSetPtr data, TransformPipeline transforms, LoaderOptions options) {
  options.batch = options.eval_batch;
  options.sampling = "sequential";
  options.views = 1;
  options.drop_last = false;
  return std::make_unique<Loader>(std::move(data), std::move(transforms), BatchTransform(), options, 0);
}

}  // namespace sparsight
