// The files of a checkpoint that several processes write together: beside checkpoints/last.safetensors, which one
// process would write,
//
//   last-7-00001-of-00004.safetensors ... and last.safetensors.index.json
//
// of the 7th such write. The index (shard_index.h) is renamed last, and only then are the files of earlier writes
// removed: a process killed at any time leaves one complete checkpoint, which is the one that the index names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sparsight {

// checkpoint: the path of the one file, everywhere here.
std::string part_index(const std::string& checkpoint);
// The index, if there is one, else `checkpoint` itself.
std::string index_or_file(const std::string& checkpoint);
// part: from 0.
std::string part_name(const std::string& checkpoint, int64_t write, int64_t part, int64_t parts);

// One more than the latest write of which there is a file.
int64_t next_part_write(const std::string& checkpoint);
// Paths of all parts there are, whether or not an index names them.
std::vector<std::string> find_parts(const std::string& checkpoint);

// Leaves of the checkpoint the index and the parts of this write: removes the one file, other parts, and temporary
// files of parts that killed processes have left.
void remove_all_but_write(const std::string& checkpoint, int64_t write);
// Leaves the one file: removes the index, and then all parts.
void remove_all_but_file(const std::string& checkpoint);

}  // namespace sparsight
