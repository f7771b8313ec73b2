// What `sparsight attack` is to do. Nothing of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/infer/bare_options.h"

namespace sparsight {

struct AttackRequest {
  std::string path;                   // a run folder, a checkpoint file, or a file of weights alone
  std::string checkpoint;             // "best", "last" or "" for best, or last if there is no best; for run folders
  std::string weights;                // one of weight_type_names() for packed weights, or ""
  std::string split = "test";         // "train", "val" or "test"
  std::string data;                   // folder of the dataset, instead of data.root of the configuration; or ""
  int64_t images = 0;                 // drawn evenly over the classes of the split; 0: all
  std::string attack = "autoattack";  // a name in attacks(), or autoattack for its cascade
  std::string norm = "linf";          // ThreatOptions
  std::string epsilon = "8/255";      // or a list, "1/255,2/255", for run_attack_curve
  std::string range = "0..1";
  std::string only_classes;            // "cat,3": attack only images of these classes; "": of all
  std::string target;                  // of a targeted attack: a class, "least_likely" or "random"; "": untargeted
  std::vector<std::string> overrides;  // "attack.steps=20" of the attack, the rest of the run's configuration
  uint64_t seed = 0;
  int64_t batch = 0;               // images attacked together; 0: as many as memory allows
  bool noise = false;              // with the noise of the routers
  std::string precision = "fp32";  // or "fp64": of the model and of the attack
  bool exact = false;              // passes of single images, so that results have the same bits for every batch
  int64_t examples = 8;            // pictures in examples.html
  double save_every = 60;          // seconds after which the state of the attack is saved again
  std::string out;                 // "": in the folder attacks/ of the run

  BareOptions bare;  // for a file of weights alone
};

}  // namespace sparsight
