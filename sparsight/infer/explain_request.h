// The arguments of explain_run (infer/explain_run.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight {

struct ExplainRequest {
  std::string run;                     // run folder, frozen model or checkpoint in several files
  std::vector<std::string> paths;      // image files and folders; none: images of the run's own data
  std::string split;                   // of the data: "train", "val" or "test"; "": test, or val where there is none
  std::string checkpoint;              // "best" or "last"; "": best, or last where there is no best
  std::string routing;                 // a file of routings that replace the routers' own, or ""
  std::string save_routing;            // a file to write the routings to, or ""
  std::vector<std::string> overrides;  // of the run's configuration: "data.root=/elsewhere"
  int64_t images = 500;                // maximum number of images of the run's data
  int64_t examples = 12;               // number of images shown as examples
};

}  // namespace sparsight
