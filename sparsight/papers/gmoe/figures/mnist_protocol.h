// ERM on the two sets that DomainBed makes of MNIST, beside its published average: what their figures share.
#pragma once

#include <string>

#include "sparsight/dg/results/published_results.h"
#include "sparsight/papers/gmoe/figures/protocol_jobs.h"

namespace sparsight::gmoe {

using MnistDefaults = ProtocolOptions (*)(Scale scale);

// The figure without name, title and claims. set: rotated_mnist or colored_mnist.
Figure mnist_figure(const std::string& set, MnistDefaults defaults);

// The average of ERM with DomainBed's CNN by training-domain validation.
const PublishedResult& published_average(const std::string& set);

// Our average is within `points` of it.
Claim near_published(const ResultTable& table, const std::string& set, double points);

// small: what is shortened at scale small. DomainBed's own lengths at scale paper.
ProtocolOptions mnist_options(Scale scale, const ProtocolOptions& small);

}  // namespace sparsight::gmoe
