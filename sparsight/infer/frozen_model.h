// Trained models as frozen files (engine/file/frozen_file.h), which `sparsight export` writes and verbs that need no
// gradients take like runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/infer/loaded_model.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {

namespace engine {
class ByteSource;
class Program;
struct FrozenHeader;
}  // namespace engine

// Whether the path is a file that begins as a frozen model; false if it cannot be read.
bool is_frozen_model(const std::string& path);

// Writes loaded.program and what a run says of its model. measured: what is known of the answers, an object. Nothing
// appears at `path` before all of it is on the disk.
void write_frozen_model(const LoadedModel& loaded, const Json& measured, const std::string& path, Existing existing);

// Whether the file says that it is of these weights in this type, whatever has been measured.
bool is_frozen_from(const std::string& path, const LoadedModel& loaded, const std::string& weight_type);

// The program, and no model. Raises Error for a file that is no frozen model, damaged, or hostile; UsageError for
// overrides of anything but [data], [loader] and [run]. pack_cache: as of read_frozen_program().
LoadedModel load_frozen_model(const std::string& path, const std::vector<std::string>& overrides = {},
                              bool pack_cache = false);

// pack_cache: keep packed weights beside the file (engine/file/pack_cache.h); a warning says where they cannot be.
engine::Program read_frozen_program(const std::string& path, std::shared_ptr<const engine::ByteSource> file,
                                    const engine::FrozenHeader& header, bool pack_cache);

}  // namespace sparsight
