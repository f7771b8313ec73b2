// A program (engine/program.h) on tensors: what ImageModel::forward() computes in evaluation, without gradients.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "sparsight/models/image_model.h"

namespace sparsight {

// The decision of a route step as a Routing, or as a SoftRouting in Routing::soft.
Routing to_routing(const engine::Routing& from, const std::string& layer);
// The other way.
void set_routing(engine::Routing& to, const Routing& from);

class ProgramModel {
 public:
  ProgramModel(engine::Program program, const ImageShape& image) : program_(std::move(program)), image_(image) {}

  // Whether forward() can answer: evaluation mode, no gradient of the images, no taps, no hook at the experts, images
  // in fp32 on a CPU without autocast, no per-token information.
  static bool takes(const ModelInput& input);

  // From any number of threads. Raises Error for images of another shape, and for given routings of other numbers of
  // tokens or experts or for other layers.
  ModelOutput forward(const ModelInput& input) const;

  const engine::Program& program() const { return program_; }

 private:
  engine::Program program_;
  ImageShape image_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<engine::Session>> idle_;  // sessions that no call has in use
};

}  // namespace sparsight
