// A run is a folder: config.toml (resolved), env.json, metrics.jsonl, checkpoints/{last,best}.safetensors, report.html
// and, at the end, done. The formats: docs/file_formats.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/core/options.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

// What to do with a run folder that exists already.
enum class IfExists { kRefuse, kResume, kOverwrite };

class RunFolder {
 public:
  // Opens a run for writing; its parents are made. kRefuse takes a path that does not exist, an empty folder, or what a
  // process left that was killed before it wrote the configuration, kResume one that holds a run. kOverwrite removes
  // the files of an earlier run, and no other file, nor any behind a link. Only one process can have a run open for
  // writing. Remains of its half-written files are removed.
  static RunFolder create(const std::string& path, IfExists if_exists = IfExists::kRefuse);
  // Opens a run for reading. Raises Error where `path` holds none.
  static RunFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string config() const { return path_ + "/config.toml"; }
  std::string env() const { return path_ + "/env.json"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string checkpoint(const std::string& name) const { return path_ + "/checkpoints/" + name + ".safetensors"; }
  std::string report() const { return path_ + "/report.html"; }
  std::string done() const { return path_ + "/done"; }

  bool has_checkpoint(const std::string& name) const;
  bool is_done() const;
  void mark_done() const;
  void clear_done() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> files() const;  // all that a run writes in its own folder

  std::string path_;
  std::shared_ptr<Descriptor> lock_;
};

// What env.json holds: versions of sparsight and torch, processor, threads, instruction set, time and command line.
Json describe_environment();

}  // namespace sparsight
