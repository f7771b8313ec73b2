// The datasets that `data fetch` knows: where their owners publish them, their checksums and their licences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/core/limits.h"

namespace sparsight {

// A file inside an archive.
struct ArchiveMember {
  std::string path;    // in the archive
  std::string name;    // in the dataset's folder
  std::string sha256;  // "" where its owner published none and nobody needs one (lists of names)
};

struct RemoteFile {
  std::string name;                    // after a mirror's address, and in the dataset's folder
  std::string digest;                  // SHA-256 or MD5 of what is downloaded
  std::string unpacked_sha256;         // of what a .gz file holds, for copies packed by others; or ""
  std::vector<ArchiveMember> members;  // of a .tar.gz archive, which is not kept; or empty
  // Neither what is downloaded nor what it unpacks to has more.
  int64_t max_bytes = kMaxDownloadBytes;
};

struct RemoteSet {
  std::string name;  // its folder
  std::string title;
  std::string licence;  // as its owner states it
  std::string home;
  std::vector<std::string> mirrors;  // base addresses, ending in /, tried in this order
  std::vector<RemoteFile> files;
};

const std::vector<RemoteSet>& remote_sets();

// Raises UsageError naming the nearest one.
const RemoteSet& find_remote_set(const std::string& name);

}  // namespace sparsight
