// A trained model in the layout of Hugging Face's hub, for others to find, check and load: weights, configuration and a
// model card (Mitchell et al. 2019).
#pragma once

#include <string>

#include "sparsight/core/options.h"

namespace sparsight {

struct PublishRequest {
  std::string run;         // a run folder
  std::string checkpoint;  // "best", "last" or "": best, if there is one
  std::string out;         // the folder to make
  std::string name;        // of the model; "": that of the run's folder
  std::string license;     // as the hub names it, "apache-2.0"; "": the card says that none is given
};

// Writes, all or nothing:
//   model.safetensors  the weights alone, averaged ones where the run has them, under their names, which are timm's
//   where
//                      timm has the model
//   config.json        the resolved configuration, classes, image and normalisation
//   config.toml        the configuration, for the verbs that take weights alone
//   README.md          the card: results with intervals, data, training, size and cost, SHA-256 of the weights, use
// Returns {"out", "sha256", "bytes", "parameters"}. Raises Error where something is at `out`, and for a path that is no
// run folder.
Json publish_run(const PublishRequest& request);

}  // namespace sparsight
