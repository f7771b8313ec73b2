// Results that several figures of a paper, or several jobs of one, share: each is computed once and kept in a folder.
#pragma once

#include <functional>
#include <string>

#include "sparsight/io/file_lock.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight {

class KeptResults {
 public:
  // The folder `models` beside that of the run, if that has its usual name (runs/reproduce/<paper>/f1-small); else in
  // it. Created if it is missing. version: changes when what is measured changes, so that files of earlier versions are
  // not used.
  KeptResults(const FigureRun& run, const std::string& paper, std::string version);

  // The file for an identity, which must name everything that the result depends on. ending: ".json".
  std::string file(const Json& identity, const std::string& ending) const;

  // The folder for what the computation itself needs, such as the checkpoints of a training: a killed one goes on
  // from there, whichever figure asks again. Created if it is missing.
  std::string folder_for(const Json& identity) const;

  // What `compute` returned for this identity. Raises Error on an interrupt. Afterwards
  // folder_for(identity) is gone.
  Json result(const Json& identity, const std::function<Json()>& compute) const;

 private:
  std::string folder_, version_;
};

// Waits until no other process makes this file, and then keeps others from it. Raises Error on an interrupt.
FileLock kept_lock(const std::string& file);

}  // namespace sparsight
