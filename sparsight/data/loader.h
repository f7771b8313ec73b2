// Turns a dataset into batches: order, transforms, worker threads and prefetch.
//
// A batch is a function of (seed, epoch, position): neither the number of workers nor the batch at which a resumed run
// starts changes it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/data/sampler.h"
#include "sparsight/data/transforms/batch_transform.h"
#include "sparsight/data/transforms/pipeline.h"

namespace sparsight {

// What to do about an image that cannot be read, at the end of an error.
inline constexpr const char* kBadImageAdvice =
    "; `sparsight data verify` lists all such images, and loader.on_bad_image = \"skip\" goes on without them";

struct LoaderOptions {
  int64_t batch = 64;
  int64_t eval_batch = 256;
  int64_t workers = 1;
  int64_t prefetch = 4;
  std::string sampling = "shuffle";
  std::vector<double> class_weights;
  int64_t shuffle_buffer = kShuffleBuffer;
  int64_t views = 1;  // of each sampled image in an epoch: repeated() of sampler.h
  std::string on_bad_image = "error";
  bool drop_last = true;
  bool per_domain = false;            // see training_loaders.h
  std::vector<int64_t> domain_batch;  // likewise
  void declare(OptionSet& set);

  // 0 if drop_last leaves none.
  int64_t batches_per_epoch(const DataSet& data) const;
};

class Loader {
 public:
  // Batches of options.batch images in the order of options.sampling. `batch_transform` is applied to whole batches.
  // Raises Error for an empty dataset, UsageError if drop_last leaves no batch or views never reach some images.
  Loader(DataSetPtr data, TransformPipeline transforms, BatchTransform batch_transform, const LoaderOptions& options,
         uint64_t seed);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches_per_epoch() const { return options_.batches_per_epoch(*data_); }
  const DataSet& data() const { return *data_; }

  // From the next start() on, images of these domains ([domains of the data]) go through `transforms` instead.
  void set_domain_transforms(const std::vector<bool>& domains, TransformPipeline transforms);

  // (Re)starts at a batch of an epoch, of whose batches every stride-th one follows; batches that are still being
  // prepared are dropped.
  void start(int64_t epoch, int64_t first_batch = 0, int64_t stride = 1);
  int64_t epoch() const { return epoch_; }

  // The next batch of the epoch, or nothing at its end. An error of a worker (an unreadable image) is raised here; an
  // image to be skipped is named here, the first time.
  std::optional<Batch> next();

  // How many images have been missing in batches because they cannot be read (on_bad_image = "skip").
  int64_t unreadable() const { return std::ssize(unreadable_); }
  const std::set<int64_t>& unreadable_images() const { return unreadable_; }  // indices

 private:
  class Workers;
  struct Skipped {
    int64_t index;
    std::string reason;
  };
  struct Prepared {
    Batch batch;
    std::vector<Skipped> skipped;
  };
  Prepared make_batch(int64_t batch) const;
  std::optional<Sample> read(int64_t index, std::vector<Skipped>& skipped) const;  // nothing for an image to be skipped
  at::Tensor transformed(const Sample& sample, int64_t position) const;

  DataSetPtr data_;
  TransformPipeline transforms_;
  BatchTransform batch_transform_;
  LoaderOptions options_;
  uint64_t seed_;
  int64_t epoch_ = 0, next_batch_ = 0, stride_ = 1;
  std::vector<int64_t> order_;
  TransformPipeline other_transforms_;
  std::vector<bool> has_other_transforms_;  // [domains], or {}: none
  std::set<int64_t> unreadable_;            // indices
  std::unique_ptr<Workers> workers_;
};

// The loader of an evaluation: sequential, batches of options.eval_batch, the last one smaller, no batch transform.
std::unique_ptr<Loader> evaluation_loader(DataSetPtr data, TransformPipeline transforms, LoaderOptions options);

}  // namespace sparsight
