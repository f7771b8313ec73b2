// The members of a tar archive that is read at any position: what stands where. Archives may come from anybody.
//
// ustar, GNU (long names, sizes in base 256) and pax (path, size) are read. Directories are skipped. Links, devices
// and sparse files are refused. Names are never paths of files here, so they may be any but empty, too long or with a
// NUL.
#pragma once

#include <functional>
#include <string>

#include "sparsight/engine/file/byte_source.h"

namespace sparsight {

struct TarMember {
  std::string name;
  int64_t offset = 0, bytes = 0;  // of its content
};

inline constexpr int64_t kMaxTarName = 4096;

// Calls `take` for each file, in order. Raises Error naming shard and member for what is damaged, cut off or refused.
void for_each_tar_member(const engine::ByteSource& shard, const std::function<void(const TarMember&)>& take);

}  // namespace sparsight
