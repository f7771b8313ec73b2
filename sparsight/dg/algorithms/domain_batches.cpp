#include "sparsight/dg/algorithms/domain_batches.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

int64_t batch_domain(const Batch& batch) {
  if (!batch.domains.defined() || batch.domains.numel() == 0)
    fail("a batch has no images of known domain; set loader.per_domain = true");
  const int64_t domain = batch.domains[0].item<int64_t>();
  if (!batch.domains.eq(domain).all().item<bool>())
    fail("a batch has images of several domains, but this algorithm compares domains; set loader.per_domain = true");
  return domain;
}

at::Tensor joined(const std::vector<Batch>& batches, at::Tensor Batch::*field) {
  std::vector<at::Tensor> parts;
  for (const Batch& batch : batches)
    if ((batch.*field).defined()) parts.push_back(batch.*field);
  return parts.size() == batches.size() ? at::cat(parts) : at::Tensor();
}

}  // namespace

Batch join_batches(const std::vector<Batch>& batches) {
  if (batches.size() == 1) return batches[0];
  Batch all;
  for (at::Tensor Batch::*field : {&Batch::images, &Batch::labels, &Batch::targets, &Batch::domains, &Batch::indices})
    all.*field = joined(batches, field);
  for (const Batch& batch : batches) all.ids.insert(all.ids.end(), batch.ids.begin(), batch.ids.end());
  return all;
}

std::vector<Batch> batches_by_domain(Minibatches& minibatches, size_t domains) {
  std::vector<int64_t> numbers;
  std::vector<std::vector<Batch>> found;
  while (minibatches.left() > 0) {
    Batch batch = minibatches.next();
    const int64_t number = batch_domain(batch);
    const auto at = std::find(numbers.begin(), numbers.end(), number);
    if (at == numbers.end()) {
      numbers.push_back(number);
      found.push_back({std::move(batch)});
    } else {
      found[static_cast<size_t>(at - numbers.begin())].push_back(std::move(batch));
    }
  }
  if (found.size() < domains)
    fail("this algorithm needs images of at least ", domains, " training domains, got ", found.size(),
         "; train on more domains, or with algorithm.name = \"erm\"");
  std::vector<Batch> batches;
  for (const std::vector<Batch>& of_domain : found) batches.push_back(join_batches(of_domain));
  return batches;
}

std::vector<at::Tensor> split_by_domain(const at::Tensor& rows, const std::vector<Batch>& domains) {
  std::vector<int64_t> sizes;
  for (const Batch& batch : domains) sizes.push_back(batch.labels.size(0));
  return rows.split_with_sizes(sizes);
}

at::Tensor domain_positions(const std::vector<Batch>& domains) {
  std::vector<at::Tensor> positions;
  for (size_t e = 0; e < domains.size(); ++e)
    positions.push_back(at::full({domains[e].labels.size(0)}, static_cast<int64_t>(e), at::kLong));
  return at::cat(positions);
}

Batch first_images(const Batch& batch, int64_t images) {
  const auto first = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, 0, images) : x; };
  Batch part{first(batch.images), first(batch.labels), first(batch.targets), first(batch.domains),
             first(batch.indices)};
  if (!batch.ids.empty()) part.ids = {batch.ids.begin(), batch.ids.begin() + images};
  return part;
}

BatchPair equal_batches(const Batch& a, const Batch& b) {
  const int64_t images = std::min(a.labels.size(0), b.labels.size(0));
  return {first_images(a, images), first_images(b, images)};
}

}  // namespace sparsight
