// The images of a shard in the format of WebDataset (github.com/webdataset/webdataset): members of a tar archive that
// follow one another and have the same name up to the first dot of its last part are one sample: 000123.jpg,
// 000123.cls, and others that are not used (000123.json). Members without a dot, or hidden ones, belong to none.
#pragma once

#include <string>
#include <vector>

#include "sparsight/engine/file/byte_source.h"

namespace sparsight {

struct ShardImage {
  std::string name;               // of its member
  int64_t offset = 0, bytes = 0;  // of its content
  std::string label;              // what its .cls says, without blanks around it: a number or a name
  std::string checksum = {};      // XXH3 of its content, [kChecksumDigits]; or ""
};

struct ShardIndex {
  std::string shard;   // path below the folder or URL of all shards
  std::string split;   // "train", "validation", "test"; or ""
  int64_t bytes = 0;   // of the shard
  std::string sha256;  // of the shard, or ""
  std::vector<ShardImage> images;
};

// Reads the headers and labels of a shard; `shard` and `split` of the result are left to the caller. Raises Error
// naming shard and member for a damaged archive (tar_members.h), and for a sample without an image or label, with two,
// or with an image of more than kMaxImageFileBytes.
ShardIndex index_shard(const engine::ByteSource& shard);

}  // namespace sparsight
