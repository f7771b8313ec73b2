// A run is a folder: config.toml (resolved), env.json, superclasses.txt (if classes have super-classes), metrics.jsonl,
// checkpoints/{last,best}.safetensors or what part_files.h says, confused.json, report.html and, at the end, done. The
// formats:
// docs/file_formats.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

// What to do with an existing run folder.
enum class IfExists { kRefuse, kResume, kOverwrite };

class RunFolder {
 public:
  // Opens a run for writing and creates parent folders. kRefuse requires a path that does not exist, is an empty folder
  // or holds a run without any checkpoint and logged step, which it overwrites. kResume requires one that holds a run.
  // kOverwrite removes the files of an earlier run, but no other file and none behind a link. Only one process can have
  // a run open for writing. Its leftover temporary files are removed.
  static RunFolder create(const std::string& path, IfExists if_exists = IfExists::kRefuse);
  // Opens a run for reading. Raises Error if `path` holds none.
  static RunFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.toml"; }
  std::string env() const { return path_ + "/env.json"; }
  std::string superclasses() const { return path_ + "/superclasses.txt"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  // "last" or "best": the index of its parts (part_files.h), if there is one, else the file.
  std::string checkpoint(const std::string& name) const;
  std::string checkpoint_file(const std::string& name) const { return checkpoints_ + "/" + name + ".safetensors"; }
  std::string confused() const { return path_ + "/confused.json"; }  // report/run/confused_file.h
  std::string report() const { return path_ + "/report.html"; }
  std::string done() const { return path_ + "/done"; }
  std::string extensions() const { return path_ + "/extensions.json"; }  // of runs that were trained for more epochs

  bool has_checkpoint(const std::string& name) const;
  // From now on the checkpoints are those of another run folder.
  void use_checkpoints_of(const std::string& path) { checkpoints_ = checkpoints_in(path); }
  bool is_done() const;
  void mark_done() const;
  void clear_done() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)), checkpoints_(checkpoints_in(path_)) {}
  static std::string checkpoints_in(const std::string& path) { return path + "/checkpoints"; }
  std::vector<std::string> files() const;  // all that a run writes in its own folder

  std::string path_, checkpoints_;
  std::shared_ptr<Descriptor> lock_;
};

// Content of env.json: versions of sparsight and torch, processor, threads, instruction set, level of the kernels, time
// and command line.
Json describe_environment();

// Warns where the run that env_file (its env.json) describes began with kernels of another level: to go on with it
// gives other bits than an unbroken run. A file that is missing or of a version that did not record the level says
// nothing.
void warn_of_other_kernels(const std::string& env_file);

}  // namespace sparsight
