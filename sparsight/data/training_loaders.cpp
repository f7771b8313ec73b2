#include "sparsight/data/training_loaders.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "sparsight/core/error.h"
#include "sparsight/data/decorators/subset.h"

namespace sparsight {
namespace {

struct Domain {
  size_t number = 0;
  std::vector<int64_t> images;  // indices in the whole dataset
};

std::vector<Domain> domains_with_images(const DataSet& data) {
  std::vector<Domain> domains(data.info().domains.size());
  for (size_t d = 0; d < domains.size(); ++d) domains[d].number = d;
  for (int64_t i = 0; i < data.size(); ++i) domains.at(static_cast<size_t>(data.domain(i))).images.push_back(i);
  std::erase_if(domains, [](const Domain& domain) { return domain.images.empty(); });
  return domains;
}

EndlessLoader domain_loader(const DataSetPtr& data, const Domain& domain, const TransformPipeline& transforms,
                            const BatchTransform& batch_transform, const LoaderOptions& options, uint64_t seed) {
  const auto images = std::make_shared<SubsetDataSet>(data, domain.images);
  if (options.batches_per_epoch(*images) == 0)
    fail_usage("the domain ", data->info().domains[domain.number], " has ", images->size(),
               " training images, fewer than its batch size of ", options.batch,
               "; lower loader.batch or loader.domain_batch, or set loader.drop_last = false");
  return EndlessLoader(std::make_unique<Loader>(images, transforms, batch_transform, options,
                                                RandomStream(seed, "domain", domain.number).seed()),
                       at::tensor(domain.images, at::kLong));
}

}  // namespace

EndlessLoader::EndlessLoader(std::unique_ptr<Loader> loader, at::Tensor positions)
    : loader_(std::move(loader)), positions_(std::move(positions)) {}

void EndlessLoader::start(int64_t batches, int64_t stride) {
  next_ = batches, stride_ = stride;
  loader_->start(batches / batches_per_epoch(), batches % batches_per_epoch(), stride);
}

Batch EndlessLoader::next() {
  std::optional<Batch> batch = loader_->next();
  if (!batch) {
    start(next_, stride_);
    batch = loader_->next();
  }
  next_ += stride_;
  if (positions_.defined()) batch.value().indices = positions_.index_select(0, batch->indices);
  return std::move(batch.value());
}

std::vector<EndlessLoader> training_loaders(const DataSetPtr& data, const TransformPipeline& transforms,
                                            const BatchTransform& batch_transform, const LoaderOptions& options,
                                            uint64_t seed) {
  std::vector<EndlessLoader> loaders;
  if (!options.per_domain) {
    if (!options.domain_batch.empty())
      fail_usage("loader.domain_batch sets a batch size per domain; set loader.per_domain = true, or leave it out");
    loaders.emplace_back(std::make_unique<Loader>(data, transforms, batch_transform, options, seed));
    return loaders;
  }
  const std::vector<Domain> domains = domains_with_images(*data);
  if (!options.domain_batch.empty() && options.domain_batch.size() != domains.size())
    fail_usage("loader.domain_batch has ", options.domain_batch.size(), " numbers, but ", domains.size(),
               " domains have training images; give one for each");
  for (size_t d = 0; d < domains.size(); ++d) {
    LoaderOptions own = options;
    if (!options.domain_batch.empty()) own.batch = options.domain_batch[d];
    loaders.push_back(domain_loader(data, domains[d], transforms, batch_transform, own, seed));
  }
  return loaders;
}

}  // namespace sparsight
