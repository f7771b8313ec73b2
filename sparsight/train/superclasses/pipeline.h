// From a configuration with MoE layers to a model whose experts are super-classes, in one call. Daxberger et al. 2023,
// "Mobile V-MoEs", section 3: train a dense model, count its confusions, cluster them, train the routed model.
#pragma once

#include <iosfwd>
#include <string>

#include "sparsight/core/config.h"
#include "sparsight/train/superclasses/find.h"

namespace sparsight {

struct SuperclassTraining {
  Config config;            // of the routed model
  std::string folder;       // of all stages
  SuperclassSearch search;  // clusters.superclasses 0: [moe] experts of `config`
};

// The stages in `folder`:
//   dense/          a run of `config` without MoE layers
//   superclasses/   the files of write_superclasses()
//   moe/            a run of `config` with [moe] experts = E and [superclasses] of the map
//   pipeline.json   the settings of the call
// Finished stages are skipped and an unfinished one is resumed, so that a killed call goes on with the same call, to
// the same bits. Result tables go to `out`. Raises UsageError for a configuration without MoE layers or without
// guidance of its routers, data of fewer classes than super-classes or without held-out images (held_out_confusion()),
// before anything is trained; Error for a folder of another call.
void train_with_superclasses(SuperclassTraining training, std::ostream& out);

}  // namespace sparsight
