#include "sparsight/train/spread_checkpoint.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "sparsight/io/checkpoint_parts.h"

namespace sparsight {
namespace {

constexpr int64_t kEnd = -1;  // instead of a tensor's number

// Rank 0 of a group asks the others for their parts of tensors, by numbers that mean the same to all.
class Parts {
 public:
  Parts(dist::Group& group, std::vector<at::Tensor> own) : group_(group), own_(std::move(own)) {}

  // On rank 0.
  at::Tensor fetch(size_t number) {
    tell(static_cast<int64_t>(number));
    return send(number);
  }
  void end() { tell(kEnd); }

  // On the others.
  void serve() {
    for (int64_t number = tell(kEnd); number != kEnd; number = tell(kEnd)) send(static_cast<size_t>(number));
  }

 private:
  // Returns rank 0's.
  int64_t tell(int64_t number) {
    at::Tensor told = at::full({1}, number, at::kLong);
    group_.broadcast(told);
    return told.item<int64_t>();
  }

  // Returns the whole tensor on rank 0.
  at::Tensor send(size_t number) {
    const at::Tensor& own = own_[number];
    std::vector<int64_t> sent(static_cast<size_t>(group_.size()), 0), received = sent;
    sent.front() = own.size(0);
    if (group_.leads()) std::fill(received.begin(), received.end(), own.size(0));
    return group_.all_to_all(own, sent, received);
  }

  dist::Group& group_;
  std::vector<at::Tensor> own_;
};

// Rank 0 writes tensors of spread experts of which it has the shape for all experts, and fetches the values.
void write_whole(const std::string& path, Checkpoint checkpoint, const SpreadParameters& spread,
                 const std::vector<at::Tensor>& own, Parts& parts) {
  std::vector<bool> fetched;
  for (NamedTensors* const tensors : {&checkpoint.weights, &checkpoint.training})
    for (auto& [name, tensor] : *tensors) {
      fetched.push_back(spread.is_part(name, tensor));
      if (!fetched.back()) continue;
      std::vector<int64_t> sizes = tensor.sizes().vec();
      sizes.front() *= spread.ranks().parts->size();
      tensor = at::empty(sizes, tensor.options().requires_grad(false).device(at::kMeta));
    }
  try {
    write_checkpoint(path, checkpoint, [&](size_t i) { return fetched[i] ? parts.fetch(i) : own[i]; });
  } catch (...) {
    parts.end();
    throw;
  }
  parts.end();
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const SpreadParameters& spread) {
  const dist::ExpertRanks& ranks = spread.ranks();
  if (spread.empty() || !ranks.copies->leads()) return write_checkpoint(path, checkpoint);
  std::vector<at::Tensor> own;
  for (const NamedTensors* const tensors : {&checkpoint.weights, &checkpoint.training})
    for (const auto& [name, tensor] : *tensors) own.push_back(tensor.detach());
  Parts parts(*ranks.parts, own);
  if (ranks.parts->leads()) return write_whole(path, checkpoint, spread, own, parts);
  write_checkpoint(path, checkpoint);
  parts.serve();
}

Checkpoint read_checkpoint(const std::string& path, const SpreadParameters& spread) {
  if (spread.empty()) return read_checkpoint(path);
  return read_checkpoint(path, CheckpointParts::kAll, [&](const std::string& name, const at::Tensor& tensor) {
    const at::Tensor own = spread.own_part(name, tensor);
    return own.is_same(tensor) ? tensor : own.clone();
  });
}

}  // namespace sparsight
