// Experts that are blocks of a convolutional network: E copies of one block, each with weights, batch norms and running
// averages of its own. A row is the whole feature map of an image, flattened channel by channel, so that the images of
// a batch are grouped by expert and each group runs through its block once. These experts are made by the models
// (models/expert_block.h) and not by [experts] name. Letters: moe/axes.md.
//
// In training the batch norms of an expert see only its own images. The running averages of an expert without images
// stay as they are. A group that has a single value per channel (one image, a map of one position) is normalised with
// the running averages, which it does not update: its variance is 0, and the unbiased one 0/0.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sparsight/moe/experts.h"
#include "sparsight/nn/conv_block.h"

namespace sparsight {

// The shape of one image's feature map.
struct MapShape {
  int64_t channels = 0;
  MapSize size;
  int64_t numbers() const { return checked_product(channels, size.positions()); }
};

class BlockExperts : public Experts {
 public:
  // make: makes one block, which turns a map of the shape `in` into one of the shape `out`.
  BlockExperts(int64_t experts, const MapShape& in, const MapShape& out,
               const std::function<std::shared_ptr<ConvBlock>()>& make);
  std::unique_ptr<engine::Experts> compile(const engine::WeightForm& form) const override;
  ExpertTensors expert_tensors() const override;
  Cost cost(const ExpertUse& use) const override;

 protected:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) override;

 private:
  MapShape in_, out_;
  std::vector<std::shared_ptr<ConvBlock>> blocks_;  // "0" ... "E-1"
};

}  // namespace sparsight
