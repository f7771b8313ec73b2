// Adaptive risk minimisation with a context network (Zhang et al. 2021, "Adaptive Risk Minimization: Learning to Adapt
// to Domain Shift", ARM-CML): a small convolutional network sees the images of a support batch, all of one domain, and
// its output, averaged over the batch, tells the model about the domain:
//
//   c = mean over the support batch of context(x) [1,H,W];   logits = model(x + v c)
//
// and ERM trains all of it. Context network as in DomainBed: three 5x5 convolutions of 64, 64 and 1 channels, batch
// norm and ReLU after the first two. In evaluation the support batch are the images of a batch in pieces of the size of
// training, or the whole batch where that does not divide it.
//
// Differs from the paper, which gives c to the model as a channel of its own: here v, one number per colour, adds it to
// the pixels (in 0 to 1), so that any model and its pretrained weights can be used. v starts at 0. Prediction from a
// checkpoint knows the model only, and so leaves out v c.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct ArmOptions {
  void declare(OptionSet&) {}
};

// Photographs come in batches of 8, also in random search.
std::vector<ProtocolDefault> arm_defaults();

std::shared_ptr<Algorithm> make_arm(const ArmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
