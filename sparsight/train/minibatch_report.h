// What a rank tells the others about a minibatch of its own, so that each of them counts the minibatches of all ranks
// as one process would that had them all.
#pragma once

#include <set>
#include <vector>

#include "sparsight/dist/group.h"
#include "sparsight/models/image_model.h"
#include "sparsight/nn/batch_norm.h"
#include "sparsight/train/named_means.h"

namespace sparsight {

struct MinibatchReport {
  double loss = 0, task = 0;          // with and without auxiliary losses
  std::set<std::string> not_finite;   // names of auxiliary losses
  NamedMeans means;                   // for UpdateResult::means
  Json details = Json::object();      // for UpdateResult::details
  std::vector<Routing> routings;      // for the routers' post-step updates, detached
  std::vector<BatchMoments> moments;  // of the model's batch norms, in the order of passes
};

// The reports of all ranks about one minibatch of each, in the order of ranks. Collective.
std::vector<MinibatchReport> all_reports(dist::Group& group, MinibatchReport own, const ImageModel& model);

}  // namespace sparsight
